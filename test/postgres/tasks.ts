/** Small tasks for the tests of the PostgreSQL store, and what surrounds them. */
import pg from "pg";
import { expect } from "vitest";
import { type AppendResult, type Store, toEntries } from "../../src/store/store.ts";
import type { Command } from "../../src/task/command.ts";
import type { TaskKey } from "../../src/task/event.ts";
import { advanceLog, replay } from "../../src/task/log.ts";
import type { Principal, RequestDraft } from "../../src/task/request.ts";
import { rowsOf } from "../../src/task/rows.ts";

export const person: Principal = { name: "ana", issuer: "test", tenant: "default", via: "api" };

export function submit(messageId: string, contextId = "context-1"): Command {
  const message = { messageId, role: "user", parts: [{ text: "Refund order 7" }] } as const;
  return { type: "submit", agent: "assistant", contextId, principal: person, message };
}

export function choose(key: TaskKey, principal = person): Command {
  return { type: "choose", choice: { requestId: `input-${key.id}-1`, choice: "approve" }, principal };
}

export async function pause(store: Store, id: string, expiresAtMs: number | null = null): Promise<TaskKey> {
  const key = { tenant: "default", id };
  const draft: RequestDraft = {
    kind: "approval",
    callId: "call-1-1",
    tool: "refund",
    args: { order: 7 },
    facts: { identity: "test", schemaHash: "s", policyVersion: "p", plan: {} },
    editable: true,
    title: "refund",
    prompt: "Refund?",
    risk: "low",
    expiresAtMs,
    onTimeout: "deny",
  };
  const reply: Command = { type: "reply", turn: 1, text: "", calls: [{ tool: "refund", args: { order: 7 } }] };
  await commit(store, key, submit(`message-${id}`), reply, { type: "open", drafts: [draft] });
  return key;
}

/** Reads and decides; what it gives appends, `ahead` events beyond where it should. */
export async function prepare(
  store: Store,
  key: TaskKey,
  ...commands: Command[]
): Promise<(ahead?: number) => Promise<AppendResult>> {
  const { events, head, nowMs } = await store.read(key);
  const before = replay(key, events);
  const result = advanceLog(before, commands, { key, nowMs, epoch: store.epoch });
  if (!result.ok || !result.task) throw new Error(`refused: ${JSON.stringify(result)}`);
  const entries = toEntries(key, head, result.events);
  const rows = rowsOf(result.task, result.events, result.blobs);
  return (ahead = 0) => {
    const moved = entries.map((entry) => ({ ...entry, event: { ...entry.event, seq: entry.event.seq + ahead } }));
    return store.append(key, (before?.version ?? 0) + ahead, moved, rows);
  };
}

export async function commit(store: Store, key: TaskKey, ...commands: Command[]): Promise<void> {
  expect(await (await prepare(store, key, ...commands))()).toBe("appended");
}

/** The test's roles have their name as password. */
export function asRole(url: string, role: string): string {
  return url.replace(/\/\/.*@/, `//${role}:${role}@`);
}

export function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}
