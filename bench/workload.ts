/**
 * The work that is measured: a customer asks, the model calls `refund{order, amount}`, the task pauses, a person
 * approves, the refund runs, the model says so.
 */
import { randomUUID } from "node:crypto";
import { systemClock } from "../src/ports/clock.ts";
import { systemIds } from "../src/ports/ids.ts";
import type { Agent, Agents } from "../src/runtime/agent.ts";
import { type HoldpointNode, startNode } from "../src/runtime/node.ts";
import type { Runtime } from "../src/runtime/runtime.ts";
import type { Store } from "../src/store/store.ts";
import type { TaskKey } from "../src/task/event.ts";
import { type Digest, type Principal, type RequestId, requestId } from "../src/task/request.ts";
import { stateOf, type Task } from "../src/task/task.ts";
import { createScriptedAgent, createScriptedTool } from "../src/testing/scripted-agent.ts";
import type { Tool } from "../src/tools/tool.ts";

export const TENANT = "default";
const CUSTOMER: Principal = { name: "cust-20831", issuer: "https://login.example.com", tenant: TENANT, via: "a2a" };
const PERSON: Principal = { name: "ana@example.com", issuer: "https://login.example.com", tenant: TENANT, via: "api" };

export type Order = Parameters<Runtime["submit"]>[0];

export function createOrders(count: number): Order[] {
  return Array.from({ length: count }, (_, i) => ({
    tenant: TENANT,
    agent: "support",
    contextId: randomUUID(),
    principal: CUSTOMER,
    message: {
      messageId: randomUUID(),
      role: "user",
      parts: [{ text: `ORD-${100_000 + i} arrived broken. Please refund it to the card that I paid with.` }],
    },
  }));
}

/** `timeoutMs` says, for each task that pauses, how long a person may take; without it, for ever. */
export function createAgents(timeoutMs?: () => number): Agents {
  const scripted = createScriptedTool({
    name: "refund",
    gated: true,
    run: async () => ({ outcome: "done", result: { refunded: 125.5 } }),
  });
  // Hashed once, as a tool hashes its schema and its rule when it is configured.
  const facts = scripted.prepare({});
  const refund: Tool = { ...scripted, prepare: () => facts };
  const agent: Agent = {
    ...createScriptedAgent("support", [], [refund], { onTimeout: "fail" }),
    get inputTimeoutMs() {
      return timeoutMs ? timeoutMs() : null;
    },
    async think(task) {
      const order = /ORD-[0-9]+/.exec(JSON.stringify(task.messages[0]?.message.parts))?.[0] ?? "";
      const usage = { inputTokens: 412, outputTokens: 38 };
      if (task.turns.length > 0) return { text: `Refunded 125.50 for ${order}.`, calls: [], usage };
      const modelCallId = `call_${randomUUID().slice(0, 23)}`;
      return { text: "", calls: [{ tool: "refund", args: { order, amount: 125.5 }, modelCallId }], usage };
    },
  };
  return new Map([[agent.name, agent]]);
}

/** A node that tells of every advance that fails: a figure with failures in it is not one. */
export function startMeasured(store: Store, agents: Agents): HoldpointNode {
  const onFailure = (key: TaskKey, error: unknown) => process.stderr.write(`  task ${key.id} failed: ${error}\n`);
  return startNode({ store, clock: systemClock, ids: systemIds, agents, waker: { onFailure } });
}

/** What a person needs to decide. */
export interface Open {
  readonly id: RequestId;
  readonly digest: Digest;
}

export function approve(runtime: Runtime, { id, digest }: Open): Promise<void> {
  return runtime.choose(TENANT, id, { choice: "approve", digest }, PERSON).then((outcome) => {
    if (!outcome.ok) throw new Error(`${id} was refused: ${outcome.refusal.code}`);
  });
}

/** Follows tasks by the id of their first message until they are in a state. */
export class Follower {
  readonly #waiting = new Map<string, { state: string; resolve: (task: Task) => void }>();
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
    runtime.onChange((task) => {
      const messageId = task.messages[0]?.message.messageId ?? "";
      const waiting = this.#waiting.get(messageId);
      if (waiting?.state !== stateOf(task)) return;
      this.#waiting.delete(messageId);
      waiting.resolve(task);
    });
  }

  /** From the order to the durable pause. */
  async pause(order: Order): Promise<Open> {
    const paused = this.#reaches(order.message.messageId, "input-required");
    const outcome = await this.#runtime.submit(order);
    if (!outcome.ok) throw new Error(`refused: ${outcome.refusal.code}`);
    const task = await paused;
    const request = task.requests[0]?.request;
    if (!request) throw new Error(`task ${task.key.id} waits without a request`);
    return { id: request.id, digest: request.digest };
  }

  /** From the decision to the end of the task. */
  async resume(order: Order, open: Open): Promise<void> {
    const completed = this.isOver(order);
    await approve(this.#runtime, open);
    await completed;
  }

  async isOver(order: Order): Promise<void> {
    await this.#reaches(order.message.messageId, "completed");
  }

  #reaches(messageId: string, state: string): Promise<Task> {
    return new Promise((resolve) => this.#waiting.set(messageId, { state, resolve }));
  }
}

const PAGE = 200;

/** Up to `count` open requests, spread evenly over all of them. */
export async function sampleOpen(store: Store, total: number, count: number): Promise<Open[]> {
  const every = Math.max(1, Math.floor(total / count));
  const sample: Open[] = [];
  let cursor: string | undefined;
  let seen = 0;
  do {
    const page = await store.listOpenRequests({ tenant: TENANT, limit: PAGE, ...(cursor ? { cursor } : {}) });
    for (const { taskId, n, digest } of page.items) {
      if (seen++ % every === 0) sample.push({ id: requestId(taskId, n), digest });
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return shuffle(sample).slice(0, count);
}

function shuffle<T>(items: T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ item }) => item);
}
