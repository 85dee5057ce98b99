/** A process with one SqliteStore, that does what it is told: for worlds in which a test itself cannot live. */
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { type HoldpointNode, startNode } from "../../src/runtime/node.ts";
import { Runtime } from "../../src/runtime/runtime.ts";
import { verifyAudit } from "../../src/store/seal.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { requestId } from "../../src/task/request.ts";
import { stateOf, type TaskState } from "../../src/task/task.ts";
import { serve, tell } from "./line-protocol.ts";
import { AGENT, createAgent, createPrincipal, TENANT } from "./story.ts";

const ME = createPrincipal("ana");
const FILL_STEP_BYTES = 4096;

let path = "";
let store: Store;
let runtime: Runtime;
let node: HoldpointNode | undefined;
let onAct = () => {};

/** `works`: with a worker whose tasks each ask for one refund; without, tasks are only kept. */
interface Opening {
  readonly path: string;
  readonly synchronous?: "full" | "normal";
  readonly readOnly?: boolean;
  readonly works?: boolean;
}

const operations = {
  open({ works, ...options }: Opening): number {
    path = options.path;
    store = SqliteStore.open({ clock: systemClock, ids: systemIds, ...options });
    const turns = [{ text: "May I?", calls: [{ tool: "refund", args: {} }] }];
    const agents = new Map([[AGENT, createAgent({ messageIds: [], turns }, () => onAct())]]);
    const parts = { store, clock: systemClock, ids: systemIds, agents };
    node = works ? startNode({ ...parts, waker: { pollMs: 20, leaseMs: 500, heartbeatMs: 100 } }) : undefined;
    runtime = node?.runtime ?? new Runtime(parts);
    return process.pid;
  },

  /** Answers the task's id. */
  async submit({ messageId, bytes = 0 }: { messageId: string; bytes?: number }): Promise<string> {
    const message = { messageId, role: "user", parts: [{ text: "x".repeat(bytes) }] } as const;
    const result = await runtime.submit({ tenant: TENANT, agent: AGENT, contextId: "test", principal: ME, message });
    if (!result.ok) throw new Error(result.refusal.code);
    return result.task.key.id;
  },

  /** One after the other, each acknowledged before the next; or all at once. */
  async submitMany({ count, atOnce }: { count: number; atOnce: boolean }): Promise<void> {
    const sent: Promise<string>[] = [];
    for (let i = 0; i < count; i++) {
      sent.push(operations.submit({ messageId: `message ${i}` }));
      if (!atOnce) await sent.at(-1);
    }
    await Promise.all(sent);
  },

  /** The types of its events, and what they amount to. */
  async read(taskId: string): Promise<{ state: TaskState; events: readonly string[] } | undefined> {
    const key = { tenant: TENANT, id: taskId };
    const { task } = await runtime.load(key);
    const { events } = await store.read(key);
    return task && { state: stateOf(task), events: events.map(({ type }) => type) };
  },

  async count(): Promise<number> {
    return (await store.listTasks({ tenant: TENANT, limit: 200 })).items.length;
  },

  /** Approves what the task asks first. */
  async approve(taskId: string): Promise<void> {
    const result = await runtime.choose(TENANT, requestId(taskId, 1), { choice: "approve" }, ME);
    if (!result.ok) throw new Error(result.refusal.code);
  },

  /** Takes all the space that is left where `path` is; answers how much that was. */
  fill(path: string): number {
    const file = openSync(path, "a");
    let bytes = 0;
    try {
      for (;;) bytes += writeSync(file, Buffer.alloc(FILL_STEP_BYTES));
    } catch {
      return bytes;
    } finally {
      closeSync(file);
    }
  },

  fillWhenToolRuns(path: string): void {
    onAct = () => {
      operations.fill(path);
      tell("filled");
    };
  },

  free(path: string): void {
    rmSync(path);
  },

  async verify(): Promise<readonly string[]> {
    const db = new DatabaseSync(path, { readOnly: true });
    const integrity = String(db.prepare("pragma integrity_check").get()?.integrity_check);
    db.close();
    return [...(await verifyAudit(store)).problems, ...(integrity === "ok" ? [] : [integrity])];
  },

  async close(): Promise<void> {
    await node?.stop();
    await store.close();
  },
};

export type StoreOperations = typeof operations;

await serve(operations);
