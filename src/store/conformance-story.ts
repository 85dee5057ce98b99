/** What the conformance cases are made of: a task that is submitted, asked about, decided. */
import assert from "node:assert/strict";
import type { Command } from "../task/command.ts";
import type { TaskEvent, TaskKey } from "../task/event.ts";
import { advanceLog, replay } from "../task/log.ts";
import type { Principal, RequestDraft, RequestId } from "../task/request.ts";
import { type Rows, rowsOf } from "../task/rows.ts";
import type { Task } from "../task/task.ts";
import { type AppendResult, type Entry, type Lease, type Store, toEntries } from "./store.ts";

export interface StoreCase {
  readonly name: string;
  run(store: Store): Promise<void>;
}

export const owner: Principal = { name: "owner", issuer: "test", tenant: "default", via: "api" };
/** The same person, as another tenant knows them. */
export const stranger: Principal = { ...owner, tenant: "other" };
export const keyOf = (id: string, tenant = "default"): TaskKey => ({ tenant, id });
const facts = { identity: "test", schemaHash: "s", policyVersion: "p", plan: {} };

export function submit(messageId: string, contextId = "context-1", principal = owner): Command {
  const message = { messageId, role: "user", parts: [{ text: "Refund order 7" }] } as const;
  return { type: "submit", agent: "assistant", contextId, principal, message };
}

export const reply: Command = {
  type: "reply",
  turn: 1,

  text: "",
  calls: [{ tool: "refund", args: { order: 7 } }],
};

export function ask(expiresAtMs: number | null = null): Command {
  const draft: RequestDraft = {
    kind: "approval",
    callId: "call-1-1",
    tool: "refund",
    args: { order: 7 },
    facts,
    editable: true,
    title: "refund",
    prompt: "Refund?",
    risk: "low",
    expiresAtMs,
    onTimeout: "deny",
  };
  return { type: "open", drafts: [draft] };
}

export function choose(taskId: string, choice: "approve" | "deny", principal = owner): Command {
  const requestId: RequestId = `input-${taskId}-1`;
  return { type: "choose", choice: { requestId, choice }, principal };
}

export const claim: Command = {
  type: "claim",
  callId: "call-1-1",
  token: "token-1",
  gated: true,
  facts,
  mayRetry: false,
};

export interface Prepared {
  readonly expected: number;
  readonly entries: readonly Entry[];
  readonly rows: Rows;
  readonly task: Task;
}

/** Reads and decides, but does not append: two of these from the same state are a race. */
export async function prepare(store: Store, key: TaskKey, ...commands: Command[]): Promise<Prepared> {
  const { events, head, nowMs } = await store.read(key);
  const before = replay(key, events);
  const result = advanceLog(before, commands, { key, nowMs, epoch: store.epoch });
  assert.ok(result.ok, `refused: ${JSON.stringify(result)}`);
  assert.ok(result.task);
  return {
    expected: before?.version ?? 0,
    entries: toEntries(key, head, result.events),
    rows: rowsOf(result.task, result.events, result.blobs),
    task: result.task,
  };
}

export function append(
  store: Store,
  key: TaskKey,
  { expected, entries, rows }: Prepared,
  fence?: number,
): Promise<AppendResult> {
  return store.append(key, expected, entries, rows, fence);
}

export async function commit(store: Store, key: TaskKey, ...commands: Command[]): Promise<void> {
  assert.equal(await append(store, key, await prepare(store, key, ...commands)), "appended");
}

export async function pause(
  store: Store,
  id: string,
  expiresAtMs: number | null = null,
  contextId?: string,
): Promise<TaskKey> {
  const key = keyOf(id);
  await commit(store, key, submit(`message-${id}`, contextId), reply, ask(expiresAtMs));
  return key;
}

export async function take(store: Store, leaseMs = 60_000): Promise<Lease> {
  const [lease] = await store.claimDue(1, leaseMs, []);
  assert.ok(lease, "nothing is due");
  return lease;
}

export async function logOf(store: Store, key: TaskKey): Promise<readonly TaskEvent[]> {
  return (await store.read(key)).events;
}

export function firstDigest(events: readonly TaskEvent[]) {
  const opened = events.find((event) => event.type === "request-opened");
  assert.ok(opened?.type === "request-opened");
  return opened.request.digest;
}

export function cursorOf({ nextCursor }: { nextCursor?: string }): { cursor?: string } {
  return nextCursor === undefined ? {} : { cursor: nextCursor };
}
