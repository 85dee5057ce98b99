/** The statements of the SQLite store, prepared once. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { sha256 } from "../task/digest.ts";

const STATEMENTS = {
  readVersion: "select pk, version from tasks where tenant = ? and id = ?",
  readEvents: `select seq, at, body, hash from tasks cross join events on task = tasks.pk
    where tenant = ? and id = ? and seq > ? order by seq`,
  insertTask: `insert into tasks (tenant, id, agent, context_id, state, version, created_at, updated_at, wake_at)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  updateTask: `update tasks set state = ?, version = ?, updated_at = ?, wake_at = ?, retry_at = null
    where pk = ?`,
  insertEvent: `insert into events (task, seq, at, body, hash, message_hash) values (?, ?, ?, ?, ?, ?)
    on conflict do nothing`,
  insertRequest: `insert into requests (task, n, tenant, kind, agent, status, digest, opened_at, expires_at)
    values (?, ?, ?, ?, ?, 'open', ?, ?, ?)`,
  closeRequest: `update requests set status = ?1
    where task = ?2 and n = ?3 and status = 'open' and digest = ?4 and case ?5
      when 'ahead' then expires_at is null or expires_at > ?6
      when 'passed' then expires_at <= ?6
      else true end`,
  readRequest: `select status from tasks cross join requests on task = tasks.pk
    where tasks.tenant = ? and id = ? and n = ?`,
  insertEffect: `insert into effects (task, effect_id, status, token, digest) values (?, ?, 'claimed', ?, ?)
    on conflict do nothing`,
  endEffect: `update effects set status = ?
    where task = ? and effect_id = ? and token = ? and status = 'claimed'`,
  insertBlob: "insert into blobs (task, sha256, content) values (?, ?, ?) on conflict do nothing",
  readBlob: `select content from tasks cross join blobs on task = tasks.pk
    where tenant = ? and id = ? and sha256 = ?`,
  findMessage: `select id from events cross join tasks on tasks.pk = task
    where message_hash = ? and tenant = ?`,
  /** The newest change of any tenant, by one index seek for each. */
  newestChange: `with recursive t (tenant) as (
      select min(tenant) from tasks
      union all select (select min(tenant) from tasks where tasks.tenant > t.tenant) from t where t.tenant is not null)
    select max((select max(updated_at) from tasks where tasks.tenant = t.tenant)) as newest from t`,
  dueTasks: `select tenant, id, attempts, version > 1 and updated_at < ?3 as is_left from tasks where wake_at <= ?1 and (retry_at is null or retry_at <= ?1)
    order by wake_at limit ?2`,
  retryTask: "update tasks set attempts = ?, retry_at = ? where tenant = ? and id = ?",
  resetAttempts: "update tasks set attempts = 0 where tenant = ? and id = ?",
  /** The next ones, but in the order that a seal has them. */
  unsealedEvents: `with next as materialized (select pk, task, seq, at, hash from events where pk > ? order by pk limit ?)
    select next.pk, tenant, id as task_id, seq, at, hash from next cross join tasks on tasks.pk = task
    order by tenant, id, seq`,
  insertSeal: "insert into seals (n, at, count, previous, hash, last_event) values (?, ?, ?, ?, ?, ?)",
  setNewestSeal: "update newest_seal set n = ?, last_event = ?",
  lastSealedEvent: `select coalesce(max(last_event), 0) as pk
    from (select last_event from newest_seal union all select max(last_event) from seals)`,
  lastSeal: "select * from seals order by n desc limit 1",
  purgeable: `select pk from tasks
    where state in ('completed', 'failed', 'canceled', 'rejected') and updated_at < ?
      and exists (select 1 from events where task = tasks.pk and seq = 1 and body is not null)
    limit ?`,
  purgeEvents: "update events set body = null where task = ?",
  purgeBlobs: "delete from blobs where task = ?",
  ping: "update meta set value = value where key = 'schema'",
} as const;

export type Statements = Record<keyof typeof STATEMENTS, StatementSync> & {
  /** A statement that was built at run time, prepared at its first use. There are only as many as shapes of queries. */
  cached(sql: string): StatementSync;
};

export function prepareStatements(db: DatabaseSync): Statements {
  const built = new Map<string, StatementSync>();
  const cached = (sql: string): StatementSync => {
    const known = built.get(sql);
    if (known) return known;
    const statement = db.prepare(sql);
    built.set(sql, statement);
    return statement;
  };
  const fixed = Object.entries(STATEMENTS).map(([name, sql]) => [name, db.prepare(sql)] as const);
  // Object.fromEntries forgets the keys; they are those of STATEMENTS.
  return { ...(Object.fromEntries(fixed) as Record<keyof typeof STATEMENTS, StatementSync>), cached };
}

/** A message's key is long, and looked up as a whole only: half of a SHA-256 takes its place, the tenant's included. */
export function messageHash(tenant: string, messageKey: string): Buffer {
  return Buffer.from(sha256(JSON.stringify([tenant, messageKey])).slice(0, 32), "hex");
}
