/** Everything in a SQLite database as it stood at one moment, on a connection of its own. */
import { DatabaseSync } from "node:sqlite";
import type { AuditEntry, AuditTrail, Seal } from "./store.ts";

const SEALS = "select n, at, count, previous, hash from seals order by n";
/** Those of the seals; and one more for the newest, if its row is gone. */
const RANGES = `select n, last_event from seals
  union all select n, last_event from newest_seal where n > (select coalesce(max(n), 0) from seals) order by n`;
const EVENTS = `select tenant, id as task_id, seq, at, body, hash,
    (select n from seals where last_event >= events.pk order by last_event limit 1) as seal
  from tasks cross join events on task = tasks.pk order by tenant, id, seq`;
/** Their task's row is gone, and its name with it. */
const ORPHANS = `select '' as tenant, '#' || task as task_id, seq, at, body, hash, null as seal
  from events where task not in (select pk from tasks) order by task, seq`;
const SEALED = `select coalesce(tenant, '') as tenant, coalesce(id, '#' || task) as task_id, seq, at, null as body, hash,
    ? as seal
  from events left join tasks on tasks.pk = task where events.pk > ? and events.pk <= ? order by tenant, id, seq`;
const TASKS = `select tenant, id, version, state in ('completed', 'failed', 'canceled', 'rejected') as ended
  from tasks order by tenant, id`;

type Row = Record<string, unknown>;

export async function readSqliteTrail<T>(path: string, read: (trail: AuditTrail) => Promise<T>): Promise<T> {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5000 });
  async function* scan<Item>(sql: string, toItem: (row: Row) => Item): AsyncIterable<Item> {
    for (const row of db.prepare(sql).iterate()) yield toItem(row);
  }
  try {
    // In WAL mode a reader's transaction keeps seeing what it saw first.
    db.exec("begin");
    return await read({
      scanSeals: () => scan(SEALS, (row) => toSeal(row)),
      async *scanEvents() {
        yield* scan(ORPHANS, toAuditEntry);
        yield* scan(EVENTS, toAuditEntry);
      },
      scanSealed: () => scanSealed(db),
      scanTasks: () => scan(TASKS, toTask),
    });
  } finally {
    db.close();
  }
}

async function* scanSealed(db: DatabaseSync): AsyncIterable<AuditEntry> {
  const events = db.prepare(SEALED);
  let after = 0;
  for (const { n, last_event } of db.prepare(RANGES).iterate()) {
    for (const row of events.iterate(Number(n), after, Number(last_event))) yield toAuditEntry(row);
    after = Number(last_event);
  }
}

export function toSeal(row: Row): Seal {
  return {
    n: Number(row.n),
    atMs: Number(row.at),
    count: Number(row.count),
    previous: String(row.previous),
    hash: String(row.hash),
  };
}

export function toHex(bytes: unknown): string {
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString("hex") : "";
}

function toTask({ tenant, id, version, ended }: Row) {
  return { key: { tenant: String(tenant), id: String(id) }, version: Number(version), ended: ended === 1 };
}

function toAuditEntry({ tenant, task_id, seq, at, body, hash, seal }: Row): AuditEntry {
  return {
    key: { tenant: String(tenant), id: String(task_id) },
    seq: Number(seq),
    at: Number(at),
    body: typeof body === "string" ? body : null,
    hash: toHex(hash),
    seal: seal === null ? null : Number(seal),
  };
}
