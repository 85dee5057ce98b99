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
    // What belongs to a task names it by its `pk`. The tenant is part of that key all the same: the only way to a
    // `pk` is `tasks_key`. `requests` repeats the tenant for its listings. The `pk` of a task is never used again, or
    // what somebody left behind when deleting a task by hand would become another's.
    // There is one writer, so `events.pk` is the order of the commits, and a seal covers those after the one before
    // it up to `last_event`. Its `pk` is used again only after somebody deleted the newest events; their seal finds it.
    // `newest_seal` repeats where the chain ends, so that the loss of its last seal is seen.
    sql: `
      create table tasks (
        pk integer primary key autoincrement,
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
        task integer not null,
        seq integer not null,
        at integer not null,
        body text,
        hash blob not null,
        message_hash blob
      ) strict;
      create unique index events_key on events (task, seq);
      create unique index events_message on events (message_hash) where message_hash is not null;

      create table requests (
        pk integer primary key,
        task integer not null,
        n integer not null,
        tenant text not null,
        kind text not null,
        agent text not null,
        status text not null,
        digest blob not null,
        opened_at integer not null,
        expires_at integer
      ) strict;
      create unique index requests_key on requests (task, n);
      create index requests_open on requests (tenant, kind, opened_at) where status = 'open';
      create index requests_open_by_agent on requests (tenant, agent, kind, opened_at) where status = 'open';
      create index requests_by_deadline on requests (tenant, expires_at) where status = 'open' and expires_at is not null;
      create view listed_requests as
        select requests.*, id as task_id from requests cross join tasks on tasks.pk = task;

      create table effects (
        task integer not null,
        effect_id text not null,
        status text not null,
        token text not null,
        digest blob not null,
        primary key (task, effect_id)
      ) strict, without rowid;

      create table blobs (
        task integer not null,
        sha256 text not null,
        content text not null,
        primary key (task, sha256)
      ) strict;

      create table seals (
        n integer primary key,
        at integer not null,
        count integer not null,
        previous text not null,
        hash text not null,
        last_event integer not null
      ) strict;
      create index seals_by_event on seals (last_event);
      create table newest_seal (n integer not null, last_event integer not null) strict;
      insert into newest_seal values (0, 0);
    `,
  },
  {
    version: 2,
    minReader: 1,
    // A mount of an agent lists its tasks only.
    sql: "create index tasks_by_agent on tasks (tenant, agent, updated_at);",
  },
];
