/**
 * Gate a tool, in one file. Run it twice:
 *
 *   npx node examples/gate-a-tool.ts            the agent asks, and the program ends
 *   npx node examples/gate-a-tool.ts approve    a person decides, and the agent goes on from there
 *
 * In a program of your own the import is `from "holdpoint"`.
 */
import {
  type Agent,
  createToolbox,
  DURABLE,
  isOver,
  type Message,
  openRequests,
  type Principal,
  requestId,
  SqliteStore,
  startNode,
  systemClock,
  systemIds,
  type Task,
  type Tool,
} from "../src/index.ts";

const refund: Tool = {
  name: "refund",
  description: "Pays an order back.",
  parameters: { type: "object", properties: { order: { type: "string" }, amount: { type: "number" } } },
  gated: true, // this line is the gate
  risk: "high",
  editable: true,
  idempotent: false,
  onAmbiguous: "ask",
  // What the call would do, in full, and which version of tool and rule says so: a decision is bound to exactly this.
  prepare: async (args) => ({
    identity: "shop/refund@1",
    schemaHash: "1",
    policyVersion: "1",
    plan: { pays: args.amount ?? 0 },
  }),
  promptFor: ({ order, amount }) => `Refund ${amount} for ${order}?`,
  run: async ({ args }) => ({ outcome: "done", result: `paid back ${args.amount}` }),
};

const assistant: Agent = {
  ...DURABLE, // put away while it waits, for as long as it takes, and resumed after a crash
  name: "assistant",
  description: "Answers customers.",
  tools: createToolbox([refund]),
  // A model would stand here. The task is its whole memory.
  think: async (task) =>
    task.turns.length === 0
      ? { text: "I will refund it.", calls: [{ tool: "refund", args: { order: "ORD-7", amount: 125 } }] }
      : { text: "Refunded.", calls: [] },
};

const tenant = "default";
const customer: Principal = { name: "customer", issuer: "example", tenant, via: "example" };
const ana: Principal = { name: "ana", issuer: "example", tenant, via: "example" };
const message: Message = { messageId: "m-1", role: "user", parts: [{ text: "ORD-7 arrived broken." }] };

const store = SqliteStore.open({ path: process.argv[3] ?? "example.db", clock: systemClock, ids: systemIds });
const { runtime, stop } = startNode({
  store,
  clock: systemClock,
  ids: systemIds,
  agents: new Map([[assistant.name, assistant]]),
});
const rests = (task: Task) => isOver(task) || openRequests(task).length > 0;

if (process.argv[2] === "approve") {
  const [row] = (await store.listOpenRequests({ tenant })).items;
  if (!row) throw new Error("nothing waits for a decision; run it without arguments first");
  const ended = next(({ end }) => end !== undefined);
  const answer = await runtime.choose(
    tenant,
    requestId(row.taskId, row.n),
    { choice: "approve", digest: row.digest },
    ana,
  );
  console.log(answer.ok ? "ana approved" : answer.refusal);
  console.log(`the agent says: ${(await ended).end?.message}`);
} else {
  const resting = next(rests);
  const sent = await runtime.submit({ tenant, agent: "assistant", principal: customer, message });
  if (!sent.ok) throw new Error(JSON.stringify(sent.refusal));
  const task = rests(sent.task) ? sent.task : await resting;
  for (const { id, prompt } of openRequests(task)) console.log(`◷ ${prompt}   (${id})`);
}
await stop();
await store.close();

/** The first task that changes into what is waited for. */
function next(condition: (task: Task) => boolean): Promise<Task> {
  return new Promise((resolve) => runtime.onChange((task) => condition(task) && resolve(task)));
}
