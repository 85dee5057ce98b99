/** The PostgreSQL schema, as the steps that lead to it. A step never changes once released; add the next one. */
import { APPEND_FUNCTION } from "./postgres-append.ts";
import type { Migration } from "./sqlite-schema.ts";

export const POSTGRES_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    minReader: 1,
    // Keys sort by their bytes (`collate "C"`), whatever the database's own collation is: the audit depends on it.
    // `fence` counts the leases a task has had: the newest is held while `lease_until` is set, even after that time,
    // and until another takes it over.
    sql: `
      create table holdpoint.tasks (
        pk bigint generated always as identity primary key,
        tenant text collate "C" not null,
        id text collate "C" not null,
        agent text collate "C" not null,
        context_id text collate "C" not null,
        state text collate "C" not null,
        version bigint not null,
        created_at bigint not null,
        updated_at bigint not null,
        wake_at bigint,
        attempts bigint not null default 0,
        retry_at bigint,
        lease_until bigint,
        fence bigint not null default 0,
        purged boolean not null default false
      );
      create unique index tasks_key on holdpoint.tasks (tenant, id);
      create index tasks_by_context on holdpoint.tasks (tenant, context_id, updated_at, pk);
      create index tasks_by_state on holdpoint.tasks (tenant, state, updated_at, pk);
      create index tasks_by_time on holdpoint.tasks (tenant, updated_at, pk);
      create index tasks_due on holdpoint.tasks (wake_at) where wake_at is not null;
      create index tasks_purgeable on holdpoint.tasks (updated_at)
        where state in ('completed', 'failed', 'canceled', 'rejected') and not purged;

      create table holdpoint.events (
        pk bigint generated always as identity primary key,
        tenant text collate "C" not null,
        task_id text collate "C" not null,
        seq bigint not null,
        at bigint not null,
        body text,
        hash bytea not null,
        message_hash bytea,
        seal bigint
      );
      create unique index events_key on holdpoint.events (tenant, task_id, seq);
      create unique index events_message on holdpoint.events (tenant, message_hash) where message_hash is not null;
      create index events_unsealed on holdpoint.events (tenant, task_id, seq) where seal is null;
      create index events_sealed on holdpoint.events (seal) where seal is not null;

      create table holdpoint.requests (
        pk bigint generated always as identity primary key,
        tenant text collate "C" not null,
        task_id text collate "C" not null,
        n bigint not null,
        kind text collate "C" not null,
        agent text collate "C" not null,
        status text collate "C" not null,
        digest bytea not null,
        opened_at bigint not null,
        expires_at bigint
      );
      create unique index requests_key on holdpoint.requests (tenant, task_id, n);
      create index requests_open on holdpoint.requests (tenant, kind, opened_at, pk) where status = 'open';
      create index requests_open_by_agent on holdpoint.requests (tenant, agent, kind, opened_at, pk)
        where status = 'open';
      create index requests_by_deadline on holdpoint.requests (tenant, expires_at, pk)
        where status = 'open' and expires_at is not null;

      create table holdpoint.effects (
        tenant text collate "C" not null,
        task_id text collate "C" not null,
        effect_id text collate "C" not null,
        status text collate "C" not null,
        token text collate "C" not null,
        digest bytea not null,
        primary key (tenant, task_id, effect_id)
      );

      create table holdpoint.blobs (
        tenant text collate "C" not null,
        task_id text collate "C" not null,
        sha256 text collate "C" not null,
        content text not null,
        primary key (tenant, task_id, sha256)
      );

      create table holdpoint.seals (
        n bigint primary key,
        at bigint not null,
        count bigint not null,
        previous text not null,
        hash text not null
      );

      -- Not now(), which stands still in a transaction that waits for a lock.
      create function holdpoint.clock_ms() returns bigint language sql volatile
        as 'select floor(extract(epoch from clock_timestamp()) * 1000)::bigint';

      ${APPEND_FUNCTION}
    `,
  },
  {
    version: 2,
    minReader: 1,
    // A mount of an agent lists its tasks only.
    sql: "create index tasks_by_agent on holdpoint.tasks (tenant, agent, updated_at, pk);",
  },
];
