/** The global chain over all logs: how a seal is made, and how everything is checked again. */
import { chainHash, sha256 } from "../task/digest.ts";
import type { TaskKey } from "../task/event.ts";
import type { Audit, AuditEntry, AuditTrail, Seal } from "./store.ts";

export interface SealedEvent {
  readonly key: TaskKey;
  readonly seq: number;
  readonly at: number;
  readonly hash: string;
}

/** The next seal over `events`, which stand in byte order of tenant, task and seq. */
export function nextSeal(last: Seal | undefined, events: readonly SealedEvent[], atMs: number): Seal {
  const n = (last?.n ?? 0) + 1;
  const previous = last?.hash ?? "";
  return { n, atMs, count: events.length, previous, hash: sealHash(n, previous, atMs, events) };
}

export function sealHash(n: number, previous: string, atMs: number, events: readonly SealedEvent[]): string {
  const lines = events.map(({ key, seq, at, hash }) => JSON.stringify([key.tenant, key.id, seq, at, hash]));
  return sha256([JSON.stringify([n, atMs, previous]), ...lines].join("\n"));
}

export interface AuditReport {
  readonly ok: boolean;
  readonly events: number;
  readonly tasks: number;
  readonly seals: number;
  readonly purged: number;
  readonly unsealed: number;
  readonly problems: readonly string[];
}

/** What was exported earlier: the chain must still hold it. */
export type Head = Pick<Seal, "n" | "hash">;

const PROBLEMS_MAX = 20;

/** Finds edits, deletions, reorders and truncation; with `head`, exported earlier, also a chain that was cut or rewritten. */
export function verifyAudit(audit: Pick<Audit, "readTrail">, head?: Head): Promise<AuditReport> {
  return audit.readTrail((trail) => verifyTrail(trail, head));
}

export async function verifyTrail(trail: AuditTrail, head?: Head): Promise<AuditReport> {
  const problems: string[] = [];
  const report = (text: string) => {
    if (problems.length < PROBLEMS_MAX) problems.push(text);
  };
  const logs = await verifyLogs(trail, report);
  const seals = await verifySeals(trail, report, head);
  return { ok: problems.length === 0, ...logs, seals, problems };
}

async function verifyLogs(trail: AuditTrail, report: (text: string) => void) {
  const tasks = trail.scanTasks()[Symbol.asyncIterator]();
  let row = await tasks.next();
  let current: { key: TaskKey; seq: number; hash: string; erased: number } | undefined;
  let events = 0;
  let count = 0;
  let purged = 0;
  let unsealed = 0;

  /** The log of one task has been read to its end: does the row agree? Rows in between have lost their whole log. */
  const close = async () => {
    if (!current) return;
    while (!row.done && compare(row.value.key, current.key) < 0) {
      report(`task ${row.value.key.id}: all ${row.value.version} events are missing`);
      row = await tasks.next();
    }
    if (row.done || compare(row.value.key, current.key) !== 0) {
      report(`task ${current.key.id}: has events but no row`);
      return;
    }
    if (current.erased > 0 && (current.erased !== current.seq || !row.value.ended)) {
      report(`task ${current.key.id}: the content of ${current.erased} of its ${current.seq} events was erased`);
    }
    if (row.value.version !== current.seq) {
      report(`task ${current.key.id}: ends at event ${current.seq}, but had ${row.value.version}`);
    }
    row = await tasks.next();
  };

  for await (const event of trail.scanEvents()) {
    if (!current || compare(current.key, event.key) !== 0) {
      await close();
      current = { key: event.key, seq: 0, hash: "", erased: 0 };
      count++;
    }
    events++;
    if (event.seal === null) unsealed++;
    if (event.seq !== current.seq + 1) report(`task ${event.key.id}: event ${current.seq + 1} is missing`);
    else verifyEvent(event, current.hash, report);
    const erased = current.erased + (event.body === null ? 1 : 0);
    purged += erased - current.erased;
    current = { key: event.key, seq: event.seq, hash: event.hash, erased };
  }
  await close();
  for (; !row.done; row = await tasks.next()) {
    report(`task ${row.value.key.id}: all ${row.value.version} events are missing`);
  }
  return { events, tasks: count, purged, unsealed };
}

function verifyEvent({ key, seq, at, body, hash }: AuditEntry, previous: string, report: (text: string) => void): void {
  if (body !== null && chainHash(previous, key, seq, at, body) !== hash) {
    report(`task ${key.id}: event ${seq} was changed, or does not follow the one before it`);
  }
}

async function verifySeals(trail: AuditTrail, report: (text: string) => void, head?: Head) {
  const sealed = trail.scanSealed()[Symbol.asyncIterator]();
  let event = await sealed.next();
  let last: Seal | undefined;
  let headFound = head === undefined;
  for await (const seal of trail.scanSeals()) {
    if (seal.n !== (last?.n ?? 0) + 1 || seal.previous !== (last?.hash ?? "")) {
      report(`seal ${seal.n}: does not follow seal ${last?.n ?? 0}`);
    }
    const events: SealedEvent[] = [];
    while (!event.done && (event.value.seal ?? 0) <= seal.n) {
      if (event.value.seal === seal.n) events.push(event.value);
      else
        report(`task ${event.value.key.id}: event ${event.value.seq} names seal ${event.value.seal}, which is missing`);
      event = await sealed.next();
    }
    if (events.length !== seal.count)
      report(`seal ${seal.n}: covered ${seal.count} events, ${events.length} are there`);
    else if (sealHash(seal.n, seal.previous, seal.atMs, events) !== seal.hash) {
      report(`seal ${seal.n}: an event under it was changed or exchanged`);
    }
    if (head && seal.n === head.n) headFound = seal.hash === head.hash;
    last = seal;
  }
  if (!event.done)
    report(`task ${event.value.key.id}: event ${event.value.seq} names seal ${event.value.seal}, which is missing`);
  if (head && !headFound) {
    report(`the exported head (seal ${head.n}) is not in this chain: it was cut or written anew since then`);
  }
  return last?.n ?? 0;
}

function compare(a: TaskKey, b: TaskKey): number {
  return compareText(a.tenant, b.tenant) || compareText(a.id, b.id);
}

/** Byte order of UTF-8, which is what the databases sort by. */
export function compareText(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
