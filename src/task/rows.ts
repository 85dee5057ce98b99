/**
 * What the store keeps beside the log so that it can be listed, swept and guarded. Computed purely from the events;
 * the store knows columns, not rules.
 */
import type { TaskEvent } from "./event.ts";
import { type Digest, type Outcome, parseRequestId, type RequestKind } from "./request.ts";
import { claimedEffects, isOver, openRequests, stateOf, type Task, type TaskState } from "./task.ts";
import type { Blob } from "./verdict.ts";

export interface TaskRow {
  readonly agent: string;
  readonly contextId: string;
  readonly state: TaskState;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** When somebody must look at the task again; null: never by itself. */
  readonly wakeAtMs: number | null;
}

export interface OpenedRow {
  readonly n: number;
  readonly kind: RequestKind;
  readonly agent: string;
  readonly digest: Digest;
  readonly openedAtMs: number;
  readonly expiresAtMs: number | null;
}

/** The second gate: the row changes only if it is open, has this digest, and its deadline is where it must be. */
export interface ClosedRow {
  readonly n: number;
  readonly digest: Digest;
  readonly outcome: Outcome;
  /** By the database's own clock: a person is in time, the sweeper is not early. */
  readonly deadline: "ahead" | "passed" | "any";
}

export type EffectRow =
  | { readonly type: "claimed"; readonly effectId: string; readonly token: string; readonly digest: Digest }
  | {
      readonly type: "ended";
      readonly effectId: string;
      readonly token: string;
      readonly outcome: "done" | "failed" | "unknown";
    };

export interface Rows {
  readonly task: TaskRow;
  readonly opened: readonly OpenedRow[];
  readonly closed: readonly ClosedRow[];
  readonly effects: readonly EffectRow[];
  readonly blobs: readonly Blob[];
}

/** The rows that `events` imply; `task` is the task after them. */
export function rowsOf(task: Task, events: readonly TaskEvent[], blobs: readonly Blob[] = []): Rows {
  const opened: OpenedRow[] = [];
  const closed: ClosedRow[] = [];
  const effects: EffectRow[] = [];
  for (const event of events) {
    switch (event.type) {
      case "request-opened": {
        const { id, kind, digest, expiresAtMs } = event.request;
        opened.push({ n: counterOf(id), kind, agent: task.agent, digest, openedAtMs: event.at, expiresAtMs });
        break;
      }
      case "request-decided":
        closed.push({
          n: counterOf(event.requestId),
          digest: event.digest,
          outcome: event.outcome,
          deadline: event.by === undefined ? "ahead" : event.by === "deadline" ? "passed" : "any",
        });
        break;
      case "effect-claimed": {
        const { effectId, token, digest } = event;
        effects.push({ type: "claimed", effectId, token, digest });
        break;
      }
      case "effect-finished":
      case "effect-unknown": {
        const token = task.effects[event.effectId]?.token ?? "";
        const outcome = event.type === "effect-finished" ? event.outcome : "unknown";
        effects.push({ type: "ended", effectId: event.effectId, token, outcome });
        break;
      }
    }
  }
  const { agent, contextId, createdAtMs, updatedAtMs } = task;
  const row = { agent, contextId, state: stateOf(task), createdAtMs, updatedAtMs, wakeAtMs: wakeAtMs(task) };
  return { task: row, opened, closed, effects, blobs };
}

/**
 * A paused task wakes at its earliest deadline, a working one at once, one that is over never. One that waits in its
 * worker's slot stays due: whoever can take it has found that its worker is gone.
 */
export function wakeAtMs(task: Task): number | null {
  if (isOver(task)) return null;
  const open = openRequests(task);
  const isWaiting = open.length > 0 && claimedEffects(task).length === 0 && !task.cancelRequestedBy;
  if (!isWaiting || task.mode === "blocking") return task.updatedAtMs;
  const deadlines = open.flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]));
  return deadlines.length === 0 ? null : Math.min(...deadlines);
}

function counterOf(id: string): number {
  const parsed = parseRequestId(id);
  if (!parsed) throw new Error(`not a request id: ${id}`);
  return parsed.n;
}
