/** The statements of the SQLite store, prepared once. */
import type { DatabaseSync, StatementSync } from "node:sqlite";

const STATEMENTS = {
  readVersion: "select version from tasks where tenant = ? and id = ?",
  readEvents: "select seq, at, body, hash from events where tenant = ? and task_id = ? and seq > ? order by seq",
  insertTask: `insert into tasks (tenant, id, agent, context_id, state, version, created_at, updated_at, wake_at)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  updateTask: `update tasks set state = ?, version = ?, updated_at = ?, wake_at = ?, retry_at = null
    where tenant = ? and id = ?`,
  insertEvent: `insert into events (tenant, task_id, seq, at, body, hash, message_key) values (?, ?, ?, ?, ?, ?, ?)
    on conflict do nothing`,
  insertRequest: `insert into requests (tenant, task_id, n, kind, agent, status, digest, opened_at, expires_at)
    values (?, ?, ?, ?, ?, 'open', ?, ?, ?)`,
  closeRequest: `update requests set status = ?1
    where tenant = ?2 and task_id = ?3 and n = ?4 and status = 'open' and digest = ?5 and case ?6
      when 'ahead' then expires_at is null or expires_at > ?7
      when 'passed' then expires_at <= ?7
      else true end`,
  readRequest: "select status from requests where tenant = ? and task_id = ? and n = ?",
  insertEffect: `insert into effects (tenant, task_id, effect_id, status, token, digest) values (?, ?, ?, 'claimed', ?, ?)
    on conflict do nothing`,
  endEffect: `update effects set status = ?
    where tenant = ? and task_id = ? and effect_id = ? and token = ? and status = 'claimed'`,
  insertBlob: "insert into blobs (tenant, task_id, sha256, content) values (?, ?, ?, ?) on conflict do nothing",
  readBlob: "select content from blobs where tenant = ? and task_id = ? and sha256 = ?",
  findMessage: "select task_id from events where tenant = ? and message_key = ?",
  /** The newest change of any tenant, by one index seek for each. */
  newestChange: `with recursive t (tenant) as (
      select min(tenant) from tasks
      union all select (select min(tenant) from tasks where tasks.tenant > t.tenant) from t where t.tenant is not null)
    select max((select max(updated_at) from tasks where tasks.tenant = t.tenant)) as newest from t`,
  dueTasks: `select tenant, id, attempts from tasks where wake_at <= ?1 and (retry_at is null or retry_at <= ?1)
    order by wake_at limit ?2`,
  retryTask: "update tasks set attempts = ?, retry_at = ? where tenant = ? and id = ?",
  resetAttempts: "update tasks set attempts = 0 where tenant = ? and id = ?",
  unsealedEvents: `select pk, tenant, task_id, seq, at, hash from events where seal is null
    order by tenant, task_id, seq limit ?`,
  setSeal: "update events set seal = ? where pk = ?",
  insertSeal: "insert into seals (n, at, count, previous, hash) values (?, ?, ?, ?, ?)",
  lastSeal: "select * from seals order by n desc limit 1",
  purgeable: `select tenant, id from tasks
    where state in ('completed', 'failed', 'canceled', 'rejected') and updated_at < ?
      and exists (select 1 from events
        where events.tenant = tasks.tenant and task_id = tasks.id and seq = 1 and body is not null)
    limit ?`,
  purgeEvents: "update events set body = null where tenant = ? and task_id = ?",
  purgeBlobs: "delete from blobs where tenant = ? and task_id = ?",
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
