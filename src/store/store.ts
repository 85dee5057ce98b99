/**
 * What is kept. The log is the authority; the rows beside it are implied by it and stand in the same transaction.
 * Its comments are the contract, and `conformance.ts` says the same in tests that every store runs.
 */
import { HoldpointError } from "../errors.ts";
import { chainHash } from "../task/digest.ts";
import { encodeEvent, type TaskEvent, type TaskKey } from "../task/event.ts";
import type { Digest, Outcome, RequestKind } from "../task/request.ts";
import type { Rows } from "../task/rows.ts";
import type { TaskState } from "../task/task.ts";

export interface TaskStore {
  /** Random, made with the database: an approval from another database never fits. A copy of the file keeps it. */
  readonly epoch: string;

  /**
   * Events after `version`, in order and without gaps, the hash of the last of them, and the database's clock, which
   * never goes back behind what it has committed. No events when the task is unknown; the fault `log-purged` when its content was forgotten.
   */
  read(key: TaskKey, version?: number): Promise<Reading>;

  /**
   * Append all entries and the rows they imply, or nothing, and only if the log is still exactly `expected` events
   * long, every closed request is open in its row too, and every effect is free to claim. Losing the race is ordinary,
   * so it is a result and not an error: re-read and decide again. With `fence`, only while that lease is the newest.
   */
  append(key: TaskKey, expected: number, entries: readonly Entry[], rows: Rows, fence?: number): Promise<AppendResult>;

  /** The task that holds this message of a principal, for answering a repeated send. */
  findMessage(tenant: string, messageKey: string): Promise<string | undefined>;

  /** How long each of these logs is, in their order; 0 for a task that is unknown. For whoever follows many. */
  readVersions(keys: readonly TaskKey[]): Promise<readonly number[]>;

  /** A result that was too large for the log. */
  readBlob(key: TaskKey, sha256: string): Promise<string | undefined>;

  /** Throws a fault when the database cannot be reached or written. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface Reading {
  readonly events: readonly TaskEvent[];
  readonly head: string | undefined;
  readonly nowMs: number;
}

export type AppendResult = "appended" | "conflict" | "fenced";

/** An event as it is written: its text, its place in the hash chain, and the client's message id if it has one. */
export interface Entry {
  readonly event: TaskEvent;
  readonly body: string;
  readonly hash: string;
  readonly messageKey?: string;
}

/** The right to work on a task for a while. A newer lease has a higher fence and shuts out the older one. */
export interface Lease {
  readonly key: TaskKey;
  readonly fence: number;
  /** How often working on it has failed in a row. */
  readonly attempts: number;
  /** Whoever held it before never gave it back: work on the task was cut off. */
  readonly abandoned: boolean;
}

export interface Retry {
  readonly afterMs: number;
  readonly attempts: number;
}

/** `wake_at` is the truth; a lease only says who looks after it now. */
export interface Leases {
  /**
   * Up to `limit` tasks that are due and held by nobody, or by somebody whose lease has run out; the longest due first.
   * Never one of `working`: a process does not take over from itself (I23).
   */
  claimDue(limit: number, leaseMs: number, working: readonly Lease[]): Promise<readonly Lease[]>;
  /** Hold on to these, even if they had run out; what another has taken over is lost. */
  renew(working: readonly Lease[], leaseMs: number): Promise<void>;
  /**
   * Give it back; with `retry` it is not due before then, unless something is appended meanwhile, and has failed so
   * many times by now. A lease that was lost changes nothing.
   */
  release(lease: Lease, retry?: Retry): Promise<void>;
}

const PAGE_SIZE_MAX = 200;

export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor?: string;
}

export interface RequestQuery {
  readonly tenant: string;
  readonly agent?: string;
  readonly kind?: RequestKind;
  readonly limit?: number;
  readonly cursor?: string;
}

export interface OpenRequestRow {
  readonly taskId: string;
  readonly n: number;
  readonly kind: RequestKind;
  readonly agent: string;
  readonly digest: Digest;
  readonly openedAtMs: number;
  readonly expiresAtMs: number | null;
}

export interface TaskFilter {
  readonly tenant: string;
  readonly agent?: string;
  readonly contextId?: string;
  readonly state?: TaskState;
  /** Only those that have changed at or after this time. */
  readonly changedFromMs?: number;
}

export interface TaskQuery extends TaskFilter {
  readonly limit?: number;
  readonly cursor?: string;
}

export interface TaskListRow {
  readonly taskId: string;
  readonly agent: string;
  readonly contextId: string;
  readonly state: TaskState;
  readonly version: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Keyset pages from indexes; no listing gets slower with the number of tasks. */
export interface Listings {
  /** Oldest first. */
  listOpenRequests(query: RequestQuery): Promise<Page<OpenRequestRow>>;
  /** Those with a deadline, the nearest first. */
  listByDeadline(query: Omit<RequestQuery, "agent" | "kind">): Promise<Page<OpenRequestRow>>;
  /** Newest change first. */
  listTasks(query: TaskQuery): Promise<Page<TaskListRow>>;
  /** How many there are, counted up to `max`. */
  countTasks(filter: TaskFilter, max: number): Promise<number>;
}

/** One link of the global chain, over all events that were new when it was made. */
export interface Seal {
  readonly n: number;
  readonly atMs: number;
  readonly count: number;
  readonly previous: string;
  readonly hash: string;
}

export interface AuditEntry {
  readonly key: TaskKey;
  readonly seq: number;
  readonly at: number;
  /** Null after a purge; the hash stays. */
  readonly body: string | null;
  readonly hash: string;
  readonly seal: number | null;
}

/** All logs and seals, for checking. In byte order. */
export interface AuditTrail {
  scanSeals(): AsyncIterable<Seal>;
  /** Every event, by tenant, task and seq. */
  scanEvents(): AsyncIterable<AuditEntry>;
  /** Every sealed event, by seal, then tenant, task and seq. */
  scanSealed(): AsyncIterable<AuditEntry>;
  /** Every task with the version that its row claims, by tenant and id. */
  scanTasks(): AsyncIterable<{ readonly key: TaskKey; readonly version: number; readonly ended: boolean }>;
}

export interface Audit {
  /** Seals up to `limit` events that no seal covers yet; undefined when there are none. */
  sealNext(limit: number): Promise<Seal | undefined>;
  lastSeal(): Promise<Seal | undefined>;
  /** Everything that was written, as it stood at one moment, while others go on writing. */
  readTrail<T>(read: (trail: AuditTrail) => Promise<T>): Promise<T>;
  /** Forget what ended before `endedBeforeMs`: bodies and results go, hashes stay. Answers how many tasks. */
  purge(endedBeforeMs: number, limit: number): Promise<number>;
}

/** Everything a store does; memory, SQLite and PostgreSQL all do all of it. */
export interface Store extends TaskStore, Leases, Listings, Audit {
  /** The closed outcome in the request's own row, for the checker that compares it with the log. */
  readRequestRow(key: TaskKey, n: number): Promise<"open" | Outcome | undefined>;
}

/** Writes events into the chain, after the one whose hash is `head`. */
export function toEntries(key: TaskKey, head: string | undefined, events: readonly TaskEvent[]): Entry[] {
  let previous = head ?? "";
  return events.map((event) => {
    const body = encodeEvent(event);
    previous = chainHash(previous, key, event.seq, event.at, body);
    const messageKey = messageKeyOf(event);
    return { event, body, hash: previous, ...(messageKey === undefined ? {} : { messageKey }) };
  });
}

/** One message of one principal counts once: the id is the client's, so it is unique only for that client. */
export function messageKey(principal: { issuer: string; name: string }, messageId: string): string {
  return JSON.stringify([principal.issuer, principal.name, messageId]);
}

function messageKeyOf(event: TaskEvent): string | undefined {
  if (event.type !== "task-submitted" && event.type !== "message-received") return undefined;
  return messageKey(event.principal, event.message.messageId);
}

/** A cursor is only good where it was given out. */
export function foreignCursor(cursor: string): HoldpointError {
  return new HoldpointError(
    "usage-invalid",
    `the cursor "${cursor.slice(0, 40)}" is not one of ours; start without one`,
  );
}

export function pageSize(limit: number | undefined): number {
  return Math.min(Math.max(1, Math.trunc(limit ?? 50)), PAGE_SIZE_MAX);
}
