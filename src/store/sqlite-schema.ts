/** The SQLite schema, as the steps that lead to it. A step never changes once released; add the next one. */

export interface Migration {
  readonly version: number;
  /** The oldest schema version whose program may still work on this one: for rolling back and for replicas. */
  readonly minReader: number;
  readonly sql: string;
}

export const SQLITE_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    minReader: 1,
    // Tables keep their rowid (`pk`): index entries then end in a small integer instead of a 36-byte id, and long
    // event bodies stay in their page.
    sql: `
      create table tasks (
        pk integer primary key,
        tenant text not null,
        id text not null,
        agent text not null,
        context_id text not null,
        state text not null,
        version integer not null,
        created_at integer not null,
        updated_at integer not null,
        wake_at integer,
        attempts integer not null default 0,
        retry_at integer
      ) strict;
      create unique index tasks_key on tasks (tenant, id);
      create index tasks_by_context on tasks (tenant, context_id, updated_at);
      create index tasks_by_state on tasks (tenant, state, updated_at);
      create index tasks_by_time on tasks (tenant, updated_at);
      create index tasks_due on tasks (wake_at) where wake_at is not null;

      create table events (
        pk integer primary key,
        tenant text not null,
        task_id text not null,
        seq integer not null,
        at integer not null,
        body text,
        hash blob not null,
        message_key text,
        seal integer
      ) strict;
      create unique index events_key on events (tenant, task_id, seq);
      create unique index events_message on events (tenant, message_key) where message_key is not null;
      create index events_unsealed on events (tenant, task_id, seq) where seal is null;

      create table requests (
        pk integer primary key,
        tenant text not null,
        task_id text not null,
        n integer not null,
        kind text not null,
        agent text not null,
        status text not null,
        digest blob not null,
        opened_at integer not null,
        expires_at integer
      ) strict;
      create unique index requests_key on requests (tenant, task_id, n);
      create index requests_open on requests (tenant, kind, opened_at) where status = 'open';
      create index requests_open_by_agent on requests (tenant, agent, kind, opened_at) where status = 'open';
      create index requests_by_deadline on requests (tenant, expires_at) where status = 'open' and expires_at is not null;

      create table effects (
        tenant text not null,
        task_id text not null,
        effect_id text not null,
        status text not null,
        token text not null,
        digest blob not null,
        primary key (tenant, task_id, effect_id)
      ) strict, without rowid;

      create table blobs (
        tenant text not null,
        task_id text not null,
        sha256 text not null,
        content text not null,
        primary key (tenant, task_id, sha256)
      ) strict;

      create table seals (
        n integer primary key,
        at integer not null,
        count integer not null,
        previous text not null,
        hash text not null
      ) strict;
    `,
  },
];
