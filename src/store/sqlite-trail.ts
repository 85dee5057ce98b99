/** Everything in a SQLite database as it stood at one moment, on a connection of its own. */
import { DatabaseSync } from "node:sqlite";
import type { AuditEntry, AuditTrail, Seal } from "./store.ts";

const SEALS = "select n, at, count, previous, hash from seals order by n";
const EVENTS = "select tenant, task_id, seq, at, body, hash, seal from events order by tenant, task_id, seq";
const SEALED = `select tenant, task_id, seq, at, null as body, hash, seal from events where seal is not null
  order by seal, tenant, task_id, seq`;
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
      scanEvents: () => scan(EVENTS, toAuditEntry),
      scanSealed: () => scan(SEALED, toAuditEntry),
      scanTasks: () => scan(TASKS, toTask),
    });
  } finally {
    db.close();
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
