/** Everything in a PostgreSQL database, page by page, inside one snapshot. */
import type { TaskKey } from "../task/event.ts";
import type { Run } from "./postgres-connection.ts";
import { POSTGRES } from "./postgres-statements.ts";
import type { AuditEntry, AuditTrail, Seal } from "./store.ts";

const PAGE = 1000;

export function createPostgresTrail(run: Run): AuditTrail {
  return {
    scanSeals: () => scan<SealRow, Seal>(run, POSTGRES.sealsAfter, [0], ({ n }) => [n], toSeal),
    scanEvents: () => scan(run, POSTGRES.eventsAfter, ["", "", 0], placeOf, toAuditEntry),
    scanSealed: () =>
      scan(run, POSTGRES.sealedAfter, [0, "", "", 0], (row) => [row.seal, ...placeOf(row)], toAuditEntry),
    scanTasks: () => scan(run, POSTGRES.tasksAfter, ["", ""], ({ tenant, id }) => [tenant, id], toTask),
  };
}

async function* scan<Row extends object, Item>(
  run: Run,
  statement: Parameters<Run>[0],
  start: readonly unknown[],
  placeAfter: (row: Row) => readonly unknown[],
  toItem: (row: Row) => Item,
): AsyncIterable<Item> {
  for (let place = start; ; ) {
    const rows = await run<Row>(statement, [...place, PAGE]);
    yield* rows.map(toItem);
    const last = rows.at(-1);
    if (!last) return;
    place = placeAfter(last);
  }
}

function placeOf({ tenant, task_id, seq }: EventRow): readonly unknown[] {
  return [tenant, task_id, seq];
}

function toTask({ tenant, id, version, ended }: { tenant: string; id: string; version: number; ended: boolean }) {
  return { key: { tenant, id }, version, ended };
}

export interface EventRow {
  readonly tenant: string;
  readonly task_id: string;
  readonly seq: number;
  readonly at: number;
  readonly body: string | null;
  readonly hash: Buffer;
  readonly seal: number | null;
}

export interface SealRow {
  readonly n: number;
  readonly at: number;
  readonly count: number;
  readonly previous: string;
  readonly hash: string;
}

export function keyOf({ tenant, task_id }: EventRow): TaskKey {
  return { tenant, id: task_id };
}

function toAuditEntry(row: EventRow): AuditEntry {
  const { seq, at, body, hash, seal } = row;
  return { key: keyOf(row), seq, at, body, hash: hash.toString("hex"), seal };
}

export function toSeal({ n, at, count, previous, hash }: SealRow): Seal {
  return { n, atMs: at, count, previous, hash };
}
