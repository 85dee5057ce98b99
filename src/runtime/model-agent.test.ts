import { describe, expect, test, vi } from "vitest";
import { HoldpointError } from "../errors.ts";
import { type Model, ModelBusy, ModelFailed, type ModelReply, type Prompt } from "../models/model.ts";
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { MemoryStore } from "../store/memory.ts";
import type { Json, JsonObject } from "../task/json.ts";
import type { Principal } from "../task/request.ts";
import { isOver, openRequests, type Task } from "../task/task.ts";
import { createScriptedTool } from "../testing/scripted-agent.ts";
import { CallRefused, type Finished, type Tool } from "../tools/tool.ts";
import { createToolbox } from "../tools/toolbox.ts";
import { type Agent, DURABLE } from "./agent.ts";
import type { Answer } from "./answers.ts";
import { RESULT_CHARS_MAX } from "./conversation.ts";
import { createModelAgent } from "./model-agent.ts";
import { type HoldpointNode, startNode } from "./node.ts";
import type { Runtime } from "./runtime.ts";
import { SESSION_CHARS_MAX } from "./session.ts";

const TENANT = "default";
const client: Principal = { name: "client", issuer: "test", tenant: TENANT, via: "test" };
const ana: Principal = { ...client, name: "ana" };
const WAKER = { pollMs: 20, leaseMs: 300, heartbeatMs: 60 };

/** A model that answers from a list, and remembers what it was asked. */
function listModel(replies: readonly (ModelReply | Error)[]): Model & { readonly prompts: Prompt[] } {
  const prompts: Prompt[] = [];
  return {
    prompts,
    async reply(prompt, { onText }) {
      const answer = replies[prompts.length] ?? { text: "Done.", calls: [] };
      prompts.push(prompt);
      if (answer instanceof Error) throw answer;
      for (const word of answer.text.split(/(?<= )/)) onText?.(word);
      return answer;
    },
  };
}

interface World {
  readonly model: ReturnType<typeof listModel>;
  readonly store: MemoryStore;
  start(): HoldpointNode;
}

function open(
  replies: readonly (ModelReply | Error)[],
  tools: readonly Tool[] = [],
  options: Partial<Agent> & { iterationsMax?: number } = {},
): World {
  const model = listModel(replies);
  const store = new MemoryStore(systemClock);
  const agent = createModelAgent({
    ...DURABLE,
    name: "assistant",
    description: "",
    instruction: "Be brief.",
    iterationsMax: 50,
    streaming: true,
    ...options,
    model,
    store,
    tools: createToolbox(tools),
  });
  const agents = new Map([["assistant", agent]]);
  return { model, store, start: () => startNode({ store, clock: systemClock, ids: systemIds, agents, waker: WAKER }) };
}

const tool = (name: string, gated: boolean, result: Json = `${name} ran`, extra: Partial<Tool> = {}): Tool => ({
  ...createScriptedTool({ name, gated, run: async () => ({ outcome: "done", result }) }),
  ...extra,
});

const call = (name: string, args: JsonObject = {}) => ({ tool: name, args });
const says = (text: string, ...calls: ReturnType<typeof call>[]): ModelReply => ({ text, calls });

let messages = 0;
async function submit(runtime: Runtime, text = "go", contextId?: string): Promise<string> {
  const sent = await runtime.submit({
    tenant: TENANT,
    agent: "assistant",
    principal: client,
    message: { messageId: `m${++messages}`, role: "user", parts: [{ text }] },
    ...(contextId ? { contextId } : {}),
  });
  if (!sent.ok) throw new Error(sent.refusal.code);
  return sent.task.key.id;
}

function reaches(runtime: Runtime, id: string, condition: (task: Task) => boolean): Promise<Task> {
  return vi.waitFor(
    async () => {
      const { task } = await runtime.load({ tenant: TENANT, id });
      if (!task || !condition(task)) throw new Error(`not yet: ${JSON.stringify(task?.end ?? task?.requests)}`);
      return task;
    },
    { timeout: 5000, interval: 5 },
  );
}

const isPaused = (task: Task) => openRequests(task).length > 0;

async function decide(runtime: Runtime, task: Task, ...answers: readonly Answer[]): Promise<void> {
  for (const [i, { id }] of openRequests(task).entries()) {
    const result = await runtime.choose(TENANT, id, answers[i] ?? { choice: "deny" }, ana);
    if (!result.ok) throw new Error(result.refusal.code);
  }
}

/** Runs one task to its end; every question is answered with these. */
async function play(world: World, ...answers: readonly Answer[]): Promise<Task> {
  const node = world.start();
  const id = await submit(node.runtime);
  if (answers.length > 0) await decide(node.runtime, await reaches(node.runtime, id, isPaused), ...answers);
  const task = await reaches(node.runtime, id, isOver);
  await node.stop();
  return task;
}

const toolTexts = ({ messages }: Prompt) =>
  messages.flatMap((message) => (message.role === "tool" ? [[message.outcome, message.text]] : []));

describe("what the model is told", () => {
  test("of a denial: who, why, and that it should offer something else", async () => {
    const world = open([says("I will.", call("refund")), says("Then a voucher.")], [tool("refund", true)]);
    const task = await play(world, { choice: "deny", reason: "too much" });
    expect(task.end).toEqual({ state: "completed", message: "Then a voucher." });
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([
      ["not-run", "Denied by ana: too much. Do not try this call again; offer something else or ask."],
    ]);
  });

  test("of edits: what was changed before the result, and the model is not asked in between", async () => {
    const world = open([says("I will.", call("refund", { amount: 100 }))], [tool("refund", true, "paid")]);
    await play(world, { choice: "approve", editedArgs: { amount: 10 } });
    expect(world.model.prompts).toHaveLength(2);
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([
      ["done", 'Arguments were changed by ana: {"amount":10}\npaid'],
    ]);
  });

  test("of each call of a turn in its order: ungated ones have run before the pause and are not lost over it", async () => {
    const world = open(
      [says("Both.", call("refund", { n: 1 }), call("look"), call("nothing"))],
      [tool("refund", true), tool("look", false, { found: 3 })],
    );
    await play(world, { choice: "approve" });
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([
      ["done", "refund ran"],
      ["done", '{"found":3}'],
      ["refused", 'There is no tool "nothing".'],
    ]);
  });

  test("of a tool that refuses its arguments, in its own words; nobody is asked and nothing runs", async () => {
    const prepare = () => Promise.reject(new CallRefused("not-allowed", "rm is not among the allowed commands: ls"));
    const world = open([says("I will.", call("refund"))], [tool("refund", true, "ran", { prepare })]);
    const task = await play(world);
    expect(task.requests).toEqual([]);
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([
      ["refused", "rm is not among the allowed commands: ls"],
    ]);
  });

  test("of arguments that could not be read: what was wrong with them; an ungated tool does not run either", async () => {
    const unread = { tool: "look", args: {}, problem: "the arguments are not JSON" };
    const world = open([{ text: "Look.", calls: [unread] }], [tool("look", false)]);
    const task = await play(world);
    expect(task.effects).toEqual({});
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([
      ["refused", "Arguments refused: the arguments are not JSON."],
    ]);
  });

  test("of a long result: its beginning, and how much is missing; the log keeps it whole", async () => {
    const long = "x".repeat(RESULT_CHARS_MAX + 5);
    const world = open([says("Look.", call("look"))], [tool("look", false, long)]);
    await play(world);
    const [[, text] = []] = toolTexts(world.model.prompts[1] as Prompt);
    expect(text).toMatch(/^x+\n\(cut here: 5 more characters\)$/);
  });

  test("of a person's answer to its question", async () => {
    const question = () => ({ title: "Which?", prompt: "Which?", schema: { type: "object" } });
    const world = open([says("", call("ask_user"))], [tool("ask_user", true, null, { question })]);
    await play(world, { choice: "answer", values: { answer: "pg" } });
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([["answered", "pg"]]);
  });

  test("never of an answer that does not fit its question: it is refused, and the question stays open", async () => {
    const schema = {
      type: "object",
      properties: { answer: { enum: ["a", "b"] } },
      required: ["answer"],
      additionalProperties: false,
    };
    const question = () => ({ title: "Which?", prompt: "Which?", schema });
    const world = open([says("", call("ask_user"))], [tool("ask_user", true, null, { question })]);
    const node = world.start();
    const task = await reaches(node.runtime, await submit(node.runtime), isPaused);
    for (const values of [{ outcome: "done" }, { answer: "c" }, {}]) {
      await expect(decide(node.runtime, task, { choice: "answer", values })).rejects.toThrow("choice-invalid");
    }
    await decide(node.runtime, task, { choice: "answer", values: { answer: "b" } });
    await reaches(node.runtime, task.key.id, isOver);
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([["answered", "b"]]);
    await node.stop();
  });

  test("of a message that came while it was paused, with its next turn, and never of an answer as chat", async () => {
    const world = open([says("I will.", call("refund"))], [tool("refund", true)]);
    const node = world.start();
    const id = await submit(node.runtime);
    const task = await reaches(node.runtime, id, isPaused);
    await node.runtime.receive(task.key, { messageId: "x1", role: "user", parts: [{ text: "Hurry!" }] }, client);
    await decide(node.runtime, task, { choice: "approve" });
    await reaches(node.runtime, id, isOver);
    const users = (world.model.prompts[1] as Prompt).messages.filter(({ role }) => role === "user");
    expect(users.map(({ text }) => text)).toEqual(["go", "Hurry!"]);
    await node.stop();
  });
});

describe("earlier tasks of the context", () => {
  test("come before this one, oldest first, and other contexts and agents do not", async () => {
    const world = open([says("One."), says("Two."), says("Three.")]);
    const node = world.start();
    await reaches(node.runtime, await submit(node.runtime, "first", "c1"), isOver);
    await reaches(node.runtime, await submit(node.runtime, "elsewhere", "c2"), isOver);
    await reaches(node.runtime, await submit(node.runtime, "second", "c1"), isOver);
    expect((world.model.prompts[2] as Prompt).messages).toEqual([
      { role: "user", text: "first" },
      { role: "assistant", text: "One.", calls: [] },
      { role: "user", text: "second" },
    ]);
    await node.stop();
  });

  test("are left out whole from the oldest on when they are too much", async () => {
    const half = "y".repeat(SESSION_CHARS_MAX / 2);
    const world = open([says("One."), says("Two."), says("Three."), says("Four.")]);
    const node = world.start();
    for (const text of [`a${half}`, `b${half}`, "c"]) {
      await reaches(node.runtime, await submit(node.runtime, text, "c1"), isOver);
      await systemClock.sleep(2);
    }
    await reaches(node.runtime, await submit(node.runtime, "now", "c1"), isOver);
    const texts = (world.model.prompts[3] as Prompt).messages.map(({ text }) => text.slice(0, 3));
    expect(texts).toEqual(["byy", "Two", "c", "Thr", "now"]);
    await node.stop();
  });
});

describe("a model that cannot", () => {
  test("a rate limit is a wake-up that does not count, and frees the worker meanwhile", async () => {
    const busy = Array.from({ length: 6 }, () => new ModelBusy("429", 10));
    const world = open([...busy, says("At last.")], [], { workerPool: 1 });
    const task = await play(world);
    expect(task.end).toEqual({ state: "completed", message: "At last." });
    expect(world.model.prompts).toHaveLength(7);
  });

  test("a wrong key ends the task at once and says what to do", async () => {
    const world = open([new ModelFailed("gpt: the key was refused; check api_key")]);
    const task = await play(world);
    expect(task.end).toEqual({
      state: "failed",
      code: "model-failed",
      message: "gpt: the key was refused; check api_key",
    });
    expect(world.model.prompts).toHaveLength(1);
  });

  test("too many iterations end the task", async () => {
    const forever = Array.from({ length: 9 }, () => says("Again.", call("look")));
    const task = await play(open(forever, [tool("look", false)], { iterationsMax: 3 }));
    expect(task.end).toMatchObject({ state: "failed", code: "too-many-iterations" });
    expect(task.turns).toHaveLength(3);
  });

  test("text is told as it comes, under its turn", async () => {
    const world = open([says("One two three.")]);
    const node = world.start();
    const deltas: string[] = [];
    node.runtime.onText(({ delta, turn }) => deltas.push(`${turn}:${delta}`));
    await reaches(node.runtime, await submit(node.runtime), isOver);
    expect(deltas).toEqual(["1:One ", "1:two ", "1:three."]);
    await node.stop();
  });
});

describe("without task tracking", () => {
  test("a gated call is denied, in the words of the documentation", async () => {
    const world = open([says("I will.", call("refund"))], [tool("refund", true)], { tracked: false });
    const task = await play(world);
    expect(task.requests).toEqual([]);
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([
      ["refused", "Tool requires approval but task tracking not enabled"],
    ]);
  });
});

describe("a task that waits in its worker's slot", () => {
  const blocking = { mode: "blocking", recovery: { autoResume: false, resumeTimeoutMs: null } } as const;
  const asks = [says("I will.", call("refund")), says("Refunded.")];

  test("goes on when a person decides, and holds its slot until then", async () => {
    const world = open([...asks, says("Next.")], [tool("refund", true)], { ...blocking, workerPool: 1 });
    const node = world.start();
    const first = await submit(node.runtime);
    const task = await reaches(node.runtime, first, isPaused);
    const second = await submit(node.runtime);
    await systemClock.sleep(100);
    const { task: waiting } = await node.runtime.load({ tenant: TENANT, id: second });
    expect(waiting?.turns).toEqual([]);
    await decide(node.runtime, task, { choice: "approve" });
    expect((await reaches(node.runtime, first, isOver)).end?.message).toBe("Refunded.");
    expect((await reaches(node.runtime, second, isOver)).end?.message).toBe("Next.");
    await node.stop();
  });

  test("fails at its deadline", async () => {
    const options = { ...blocking, inputTimeoutMs: 60, onTimeout: "fail" } as const;
    const world = open(asks, [tool("refund", true)], options);
    const node = world.start();
    const task = await reaches(node.runtime, await submit(node.runtime), isOver);
    expect(task.end).toMatchObject({ state: "failed", message: "timeout waiting for user input" });
    await node.stop();
  });

  test("is lost with its server, and says so at the next start; its request is closed", async () => {
    const world = open(asks, [tool("refund", true)], blocking);
    const node = world.start();
    const id = await submit(node.runtime);
    await reaches(node.runtime, id, isPaused);
    await node.stop();
    const again = world.start();
    const task = await reaches(again.runtime, id, isOver);
    expect(task.end).toEqual({
      state: "failed",
      code: "lost",
      message: "lost: the server stopped while this task was waiting (hitl.mode blocking)",
    });
    expect(task.requests.map(({ decision }) => decision?.outcome)).toEqual(["canceled"]);
    await again.stop();
  });

  test("survives a store that is away for a moment: its server has not stopped", async () => {
    const world = open(asks, [tool("refund", true)], blocking);
    const node = world.start();
    const id = await submit(node.runtime);
    const task = await reaches(node.runtime, id, isPaused);
    const away = vi.spyOn(world.store, "read");
    away.mockRejectedValue(new HoldpointError("store-unavailable", "away"));
    await systemClock.sleep(1200);
    away.mockRestore();
    await systemClock.sleep(100);
    await decide(node.runtime, task, { choice: "approve" });
    expect((await reaches(node.runtime, id, isOver)).end?.message).toBe("Refunded.");
    await node.stop();
  });

  test("keeps the mode that it started with, whatever its agent says by now", async () => {
    const world = open(asks, [tool("refund", true)]);
    const node = world.start();
    const id = await submit(node.runtime);
    await reaches(node.runtime, id, isPaused);
    await node.stop();
    const later = open([says("Refunded.")], [tool("refund", true)], blocking);
    const agent = createModelAgent({
      ...DURABLE,
      ...blocking,
      name: "assistant",
      description: "",
      instruction: "",
      iterationsMax: 9,
      streaming: false,
      model: later.model,
      store: world.store,
      tools: createToolbox([tool("refund", true)]),
    });
    const agents = new Map([["assistant", agent]]);
    const again = startNode({ store: world.store, clock: systemClock, ids: systemIds, agents, waker: WAKER });
    await decide(again.runtime, await reaches(again.runtime, id, isPaused), { choice: "approve" });
    expect((await reaches(again.runtime, id, isOver)).end?.state).toBe("completed");
    await again.stop();
  });
});

describe("a tool whose answer was lost", () => {
  test("is in doubt: a person is asked, and it is not run again", async () => {
    let runs = 0;
    const run = async (): Promise<Finished> => {
      runs++;
      return { outcome: "unknown", why: "the server went away in mid-call" };
    };
    const world = open([says("I will.", call("send"))], [tool("send", false, null, { run })]);
    const node = world.start();
    const id = await submit(node.runtime);
    const task = await reaches(node.runtime, id, isPaused);
    expect(openRequests(task)).toMatchObject([{ kind: "in-doubt", tool: "send" }]);
    await decide(node.runtime, task, { choice: "answer", values: { outcome: "done" } });
    await reaches(node.runtime, id, isOver);
    expect(runs).toBe(1);
    expect(toolTexts(world.model.prompts[1] as Prompt)).toEqual([["done", "ana says that it was done."]]);
    await node.stop();
  });
});

describe("an argument too long for the log", () => {
  const content = "long ".repeat(30_000);
  const write = (got: JsonObject[], prepared: JsonObject[] = []): Tool => {
    const plain = tool("write", true);
    return {
      ...plain,
      longArgument: "content",
      prepare: (args) => {
        prepared.push(args);
        return plain.prepare(args);
      },
      run: async ({ args }) => {
        got.push(args);
        return { outcome: "done", result: "written" };
      },
    };
  };

  test("stands beside it, is bound by its hash, and reaches the tool whole", async () => {
    const got: JsonObject[] = [];
    const task = await play(open([says("I will.", call("write", { path: "a", content }))], [write(got)]), {
      choice: "approve",
    });
    expect(got).toEqual([{ path: "a", content }]);
    const [record] = task.requests;
    expect(record?.request).toMatchObject({ args: { path: "a", content: { bytes: content.length } } });
  });

  test("can be changed by a person, and stands beside the log again", async () => {
    const got: JsonObject[] = [];
    const edited = { path: "b", content: content.toUpperCase() };
    const task = await play(open([says("I will.", call("write", { path: "a", content }))], [write(got)]), {
      choice: "approve",
      editedArgs: edited,
    });
    expect(got).toEqual([edited]);
    expect(task.requests[0]?.decision?.editedArgs).toMatchObject({ path: "b", content: { bytes: content.length } });
  });

  test("is refused over 1 MiB, and a reference that the model has made up is no content", async () => {
    const got: JsonObject[] = [];
    const prepared: JsonObject[] = [];
    const huge = call("write", { content: "x".repeat(1024 * 1024 + 1) });
    const forged = call("write", { content: { blob: "0".repeat(64), bytes: 3 } });
    const world = open([says("I will.", huge, forged), says("Done.")], [write(got, prepared)]);
    await play(world, { choice: "deny" });
    expect(toolTexts(world.model.prompts[1] as Prompt)[0]?.[0]).toBe("refused");
    expect(prepared).toEqual([{ content: null }]);
    expect(got).toEqual([]);
  });
});
