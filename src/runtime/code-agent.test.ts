import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { MemoryStore } from "../store/memory.ts";
import { SqliteStore } from "../store/sqlite.ts";
import type { Store } from "../store/store.ts";
import { OPEN_REQUESTS_MAX } from "../task/ask.ts";
import type { Json, JsonObject } from "../task/json.ts";
import type { Principal, Request } from "../task/request.ts";
import { isOver, openRequests, type Task } from "../task/task.ts";
import { type CallHandler, wrapPort } from "../testing/crash-points.ts";
import { createScriptedTool } from "../testing/scripted-agent.ts";
import { CallRefused, type Tool } from "../tools/tool.ts";
import { createToolbox } from "../tools/toolbox.ts";
import type { Agent } from "./agent.ts";
import type { Answer } from "./answers.ts";
import { createCodeAgent } from "./code-agent.ts";
import { KEYS_MAX } from "./code-run.ts";
import {
  type AgentFunction,
  AnswerInvalid,
  CallDenied,
  type CallError,
  defineAgent,
  isAgentDefinition,
  ToolFailed,
} from "./define-agent.ts";
import { type HoldpointNode, startNode } from "./node.ts";
import { Runtime } from "./runtime.ts";

const TENANT = "default";
const client: Principal = { name: "client", issuer: "test", tenant: TENANT, via: "test" };
const ana: Principal = { ...client, name: "ana" };
const WAKER = { pollMs: 10, leaseMs: 400, heartbeatMs: 50 };

const started: HoldpointNode[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((node) => node.stop()));
});

interface Options extends Partial<Agent> {
  readonly given?: readonly Tool[];
  readonly store?: Store;
}

/** A node whose one agent is this function. */
function open(run: AgentFunction, { given = [], store = new MemoryStore(systemClock), ...policy }: Options = {}) {
  const agent = createCodeAgent("coder", defineAgent(run), {
    store,
    clock: systemClock,
    ...policy,
    tools: createToolbox(given),
  });
  const agents = new Map([["coder", agent]]);
  const node = startNode({ store, clock: systemClock, ids: systemIds, agents, waker: WAKER });
  started.push(node);
  return { store, runtime: node.runtime, stop: () => node.stop() };
}

async function submit(runtime: Runtime, text = "go"): Promise<string> {
  const message = { messageId: crypto.randomUUID(), role: "user", parts: [{ text }] } as const;
  const sent = await runtime.submit({ tenant: TENANT, agent: "coder", principal: client, message });
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
    { timeout: 8000, interval: 5 },
  );
}

const asks = (count: number) => (task: Task) => openRequests(task).length === count;

async function decide(runtime: Runtime, request: Request | undefined, answer: Answer): Promise<void> {
  const outcome = await runtime.choose(TENANT, request?.id ?? "", answer, ana);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.refusal));
}

/** Runs to its end without anybody being asked. */
async function ending(run: AgentFunction, options: Options = {}): Promise<Task> {
  const { runtime } = open(run, options);
  return reaches(runtime, await submit(runtime), isOver);
}

const textOf = ({ parts }: { parts: readonly JsonObject[] }) => String(parts[0]?.text);

/** A tool that remembers the arguments it ran with. */
function recorder(name: string, gated: boolean, result: (args: JsonObject) => Json = () => `${name} ran`) {
  const ran: JsonObject[] = [];
  const tool = createScriptedTool({
    name,
    gated,
    run: async ({ args }) => {
      ran.push(args);
      return { outcome: "done", result: result(args) };
    },
  });
  return { ran, tool };
}

describe("a code agent", () => {
  test("that only returns text completes the task with it", async () => {
    const task = await ending(async ({ message }) => `You said ${textOf(message)}.`);
    expect(task.end).toEqual({ state: "completed", message: "You said go." });
    expect([task.turns.length, task.version]).toEqual([1, 3]);
  });

  test("runs a step once and gets its result from the log ever after", async () => {
    let runs = 0;
    let steps = 0;
    const seen: unknown[] = [];
    const task = await ending(async ({ step }) => {
      runs++;
      const built = await step("build", async () => ({ image: "app", layers: [1, 2], at: ++steps }));
      seen.push(built);
      built.layers.push(3); // its own copy
      await step("push", () => undefined);
      return `${built.image}:${built.layers.length}`;
    });
    expect(task.end?.message).toBe("app:3");
    expect([steps, runs]).toEqual([1, 5]);
    expect(seen).toEqual(Array(3).fill({ image: "app", layers: [1, 2, 3], at: 1 }));
    expect(task.calls["call-1-1"]).toMatchObject({ tool: "step", modelCallId: "build" });
  });

  test("gets a large result whole, from beside the log", async () => {
    const large = "x".repeat(100_000);
    const task = await ending(async ({ step }) => String((await step("large", () => [large]))[0]?.length));
    expect(Object.values(task.effects)[0]?.status).toMatchObject({ result: { bytes: 100_004 } });
    expect(task.end?.message).toBe("100000");
  });

  test("calls a gated tool only through the gate, and learns what it really ran with", async () => {
    const deploy = recorder("deploy", true, ({ to }) => ({ deployed: to ?? null }));
    const { runtime } = open(
      async ({ tool, ran }) => {
        const { deployed } = await tool(
          "deploy",
          deploy.tool,
          { to: "prod" },
          { result: z.object({ deployed: z.string() }) },
        );
        const { args, changedBy } = ran("deploy");
        return `${deployed} ${JSON.stringify(args)} ${changedBy?.name}`;
      },
      { given: [deploy.tool] },
    );
    const id = await submit(runtime);
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    expect(request).toMatchObject({ kind: "approval", tool: "deploy", args: { to: "prod" } });
    expect(deploy.ran).toEqual([]);
    await decide(runtime, request, { choice: "approve", editedArgs: { to: "staging" } });
    expect((await reaches(runtime, id, isOver)).end?.message).toBe('staging {"to":"staging"} ana');
    expect(deploy.ran).toEqual([{ to: "staging" }]);
  });

  test("whose tools are all gated by its configuration gates those that its module brings along", async () => {
    const look = recorder("look", false);
    const definition = defineAgent(async ({ tool }) => String(await tool("k", "look")), { tools: [look.tool] });
    const store = new MemoryStore(systemClock);
    const parts = { store, clock: systemClock, requiresApproval: true };
    const agents = new Map([["coder", createCodeAgent("coder", definition, parts)]]);
    const node = startNode({ store, clock: systemClock, ids: systemIds, agents, waker: WAKER });
    started.push(node);
    const id = await submit(node.runtime);
    const [request] = openRequests(await reaches(node.runtime, id, asks(1)));
    expect([request?.kind, look.ran]).toEqual(["approval", []]);
    expect((await agents.get("coder")?.tools.list())?.map(({ name }) => name)).toEqual(["look"]);
  });

  test("may give a long argument, which stands beside the log, and one that is too long is refused", async () => {
    const sizes: number[] = [];
    const write: Tool = {
      ...createScriptedTool({
        name: "write",
        gated: false,
        run: async ({ args }) => ({ outcome: "done", result: sizes.push(String(args.content).length) }),
      }),
      longArgument: "content",
    };
    const task = await ending(
      async ({ tool }) => {
        const written = await tool("ok", "write", { content: "x".repeat(100_000) });
        const refused = await tool("no", "write", { other: "x".repeat(100_000) }).catch((error: CallDenied) => error);
        return `${written} ${refused instanceof CallDenied && refused.outcome}`;
      },
      { given: [write] },
    );
    expect([task.end?.message, sizes]).toEqual(["1 refused", [100_000]]);
  });

  test("that calls in parallel asks about all at once, and each call has its own outcome", async () => {
    const free = recorder("look", false);
    const gated = recorder("act", true, ({ n }) => n ?? null);
    const { runtime } = open(
      async ({ tool, step }) => {
        const outcomes = await Promise.allSettled([
          tool("a", "act", { n: 1 }),
          tool("b", "act", { n: 2 }),
          tool("c", "look"),
          step("d", () => "d ran"),
          (async () => {
            for (let i = 0; i < 50; i++) await undefined; // as deep as it likes, as long as it waits for nothing outside
            return `after ${await tool("e", "act", { n: 3 })}`;
          })(),
        ]);
        return outcomes.map((each) => (each.status === "fulfilled" ? each.value : each.reason.message)).join("\n");
      },
      { given: [free.tool, gated.tool] },
    );
    const id = await submit(runtime);
    let task = await reaches(runtime, id, asks(3));
    expect(task.turns.map(({ callIds }) => callIds.length)).toEqual([5]);
    expect([free.ran.length, gated.ran.length]).toEqual([1, 0]);
    const [a, b, e] = openRequests(task);
    await decide(runtime, b, { choice: "deny", reason: "too risky" });
    await decide(runtime, e, { choice: "approve" });
    await decide(runtime, a, { choice: "approve" });
    task = await reaches(runtime, id, isOver);
    expect(task.end?.message.split("\n")).toEqual([
      "1",
      '"b" was denied by ana: too risky',
      "look ran",
      "d ran",
      "after 3",
    ]);
    expect(gated.ran).toEqual([{ n: 1 }, { n: 3 }]);
  });

  test("that calls more at once than a turn takes gets the rest with the next turns", async () => {
    const gated = recorder("act", true, ({ n }) => n ?? null);
    const free = recorder("look", false, ({ n }) => n ?? null);
    const { runtime } = open(
      async ({ tool }) => {
        const numbers = Array.from({ length: 70 }, (_, n) => n);
        const acts = numbers.slice(0, OPEN_REQUESTS_MAX + 1).map((n) => tool(`act-${n}`, "act", { n }));
        const looks = numbers.map((n) => tool(`look-${n}`, "look", { n }));
        return `${(await Promise.all([...acts, ...looks])).length}`;
      },
      { given: [gated.tool, free.tool] },
    );
    const id = await submit(runtime);
    for (const count of [OPEN_REQUESTS_MAX, 1]) {
      for (const request of openRequests(await reaches(runtime, id, asks(count)))) {
        await decide(runtime, request, { choice: "approve" });
      }
    }
    const task = await reaches(runtime, id, isOver);
    expect(task.end?.message).toBe(`${70 + OPEN_REQUESTS_MAX + 1}`);
    expect([gated.ran.length, free.ran.length]).toEqual([OPEN_REQUESTS_MAX + 1, 70]);
  });

  test("may begin a call and return without waiting: it comes to its end first", async () => {
    const free = recorder("look", false);
    const task = await ending(
      async ({ tool }) => {
        void tool("a", "look");
        return "done";
      },
      { given: [free.tool] },
    );
    expect([task.end?.message, free.ran.length]).toEqual(["done", 1]);
  });

  test("waits for what it does outside of steps, and can be canceled then", async () => {
    let release = () => {};
    const outside = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { runtime } = open(async ({ message, step }) => {
      await (textOf(message) === "hang" ? new Promise(() => {}) : outside);
      return step("after", () => "after");
    });
    const [hanging, waiting] = [await submit(runtime, "hang"), await submit(runtime)];
    await new Promise((resolve) => setTimeout(resolve, 30));
    release();
    expect((await reaches(runtime, waiting, isOver)).end?.message).toBe("after");
    await runtime.cancel({ tenant: TENANT, id: hanging }, ana);
    expect((await reaches(runtime, hanging, isOver)).end?.state).toBe("canceled");
  });

  test("hears nothing of later messages, and still ends", async () => {
    const { runtime } = open(async ({ ask }) => (await ask("name", { question: "Name?" })).values.answer);
    const id = await submit(runtime);
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    const late = { messageId: "late", role: "user", parts: [{ text: "hello?" }] } as const;
    await runtime.receive({ tenant: TENANT, id }, late, client);
    await decide(runtime, request, { choice: "answer", values: { answer: "Eve" } });
    expect((await reaches(runtime, id, isOver)).end).toEqual({ state: "completed", message: "Eve" });
  });
});

describe("ask", () => {
  test("puts its form before a person as a schema, and gives the values and the message that brought them", async () => {
    const { runtime } = open(async ({ ask }) => {
      const where = await ask("where", { question: "Where to?", choices: ["staging", "prod"] });
      const more = await ask("more", {
        title: "Details",
        questions: [{ question: "Who?" }, { question: "Which?", choices: ["a", "b"], multiple: true, name: "which" }],
      });
      const many = await ask("many", { question: "How many?", schema: z.object({ n: z.number().int() }) });
      const said = where.message ? textOf(where.message) : "nothing";
      return `${where.values.answer} ${JSON.stringify(more.values)} ${many.values.n + 1} ${said} ${many.message}`;
    });
    const id = await submit(runtime);
    const [where] = openRequests(await reaches(runtime, id, asks(1)));
    const answer = { type: "string", enum: ["staging", "prod"], title: "Where to?" };
    expect(where).toMatchObject({
      kind: "input",
      title: "Where to?",
      prompt: "Where to?",
      schema: { type: "object", properties: { answer }, required: ["answer"] },
    });
    const choices = [{ requestId: where?.id ?? "input-x-1", choice: "answer", values: { answer: "prod" } }] as const;
    const message = { messageId: "answer-1", role: "user", parts: [{ text: "to prod, please" }] } as const;
    const received = { type: "receive", message, principal: ana, choices } as const;
    expect(await runtime.execute({ tenant: TENANT, id }, [received])).toMatchObject({ ok: true });
    const [more] = openRequests(await reaches(runtime, id, ({ requests }) => requests.length === 2));
    expect(more).toMatchObject({ title: "Details", prompt: "Who?\nWhich?" });
    await decide(runtime, more, { choice: "answer", values: { answer1: "Ana", which: ["a"] } });
    const [many] = openRequests(await reaches(runtime, id, ({ requests }) => requests.length === 3));
    expect(many).toMatchObject({ schema: { properties: { n: { type: "integer" } }, required: ["n"] } });
    await decide(runtime, many, { choice: "answer", values: { n: 41 } });
    expect((await reaches(runtime, id, isOver)).end?.message).toBe(
      'prod {"answer1":"Ana","which":["a"]} 42 to prod, please undefined',
    );
  });

  test.each([
    ["a choice that was not offered", { question: "?", choices: ["a"] }, { answer: "b" }, "/answer"],
    ["no answer", { question: "?" }, {}, "/answer"],
    ["text for a list", { question: "?", choices: ["a"], multiple: true as const }, { answer: "a" }, "/answer"],
    ["what a schema refuses", { question: "?", schema: z.object({ n: z.number() }) }, { n: "1" }, "/n"],
  ])("tells the function of %s, which may ask again", async (_, form, values, place) => {
    const { runtime } = open(async ({ ask }) => {
      try {
        return JSON.stringify((await ask("first", form as never)).values);
      } catch (error) {
        if (!(error instanceof AnswerInvalid)) throw error;
        return `${error.message} ${(await ask("second", { question: "Really?" })).values.answer}`;
      }
    });
    const id = await submit(runtime);
    const [first] = openRequests(await reaches(runtime, id, asks(1)));
    await expect(decide(runtime, first, { choice: "answer", values })).rejects.toThrow("choice-invalid");
    // As from a schema that has changed since: it is in the log, and the function sees that it does not fit.
    const choice = { requestId: first?.id ?? "input-x-1", choice: "answer", values: values as JsonObject } as const;
    await runtime.execute({ tenant: TENANT, id }, [{ type: "choose", choice, principal: ana }]);
    const [second] = openRequests(await reaches(runtime, id, ({ requests }) => requests.length === 2));
    await decide(runtime, second, { choice: "answer", values: { answer: "yes" } });
    const { end } = await reaches(runtime, id, isOver);
    expect(end?.message).toMatch(/^what came for "first" does not fit: .* yes$/s);
    expect(end?.message).toContain(place);
  });

  test("that nobody answers, or somebody closes, is denied", async () => {
    const outcomeOf = async ({ ask }: Parameters<AgentFunction>[0]) =>
      ask("who", { question: "Who?" }).then(
        () => "answered",
        (error: unknown) => (error instanceof CallDenied ? `${error.outcome} by ${error.by?.name}` : "?"),
      );
    const expired = await ending(outcomeOf, { inputTimeoutMs: 20, onTimeout: "deny" });
    expect(expired.end?.message).toBe("expired by undefined");
    const { runtime } = open(outcomeOf);
    const id = await submit(runtime);
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    await decide(runtime, request, { choice: "cancel" });
    expect((await reaches(runtime, id, isOver)).end?.message).toBe("canceled by ana");
  });
});

describe("a call that does not succeed", () => {
  test("is thrown with who said no and why, and the function may go on", async () => {
    const gated = recorder("act", true);
    const { runtime } = open(
      async ({ tool, step }) => {
        try {
          return String(await tool("act", "act"));
        } catch (error) {
          if (!(error instanceof CallDenied)) throw error;
          const { outcome, reason, by, key } = error;
          return step("instead", () => `${key} ${outcome} ${reason} ${by?.name}`);
        }
      },
      { given: [gated.tool] },
    );
    const id = await submit(runtime);
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    await decide(runtime, request, { choice: "deny", reason: "not today" });
    expect((await reaches(runtime, id, isOver)).end?.message).toBe("act denied not today ana");
    expect(gated.ran).toEqual([]);
  });

  test("and that nobody catches ends the task at once: the log will not change its mind", async () => {
    const broken = createScriptedTool({
      name: "broken",
      gated: false,
      run: () => Promise.reject(new Error("no such host")),
    });
    let runs = 0;
    const task = await ending(
      async ({ tool }) => {
        runs++;
        return String(await tool("look up", "broken"));
      },
      { given: [broken] },
    );
    expect(task.end).toEqual({ state: "failed", message: '"look up" failed: no such host', code: "tool-failed" });
    expect(runs).toBe(2);
  });

  test("because its arguments were refused says why", async () => {
    const picky: Tool = {
      ...recorder("picky", true).tool,
      prepare: async () => {
        throw new CallRefused("arguments-invalid", "/order: is missing");
      },
    };
    const task = await ending(
      async ({ tool }) => String(await tool("p", "picky").catch((error: CallDenied) => [error.outcome, error.reason])),
      { given: [picky] },
    );
    expect(task.end?.message).toBe("refused,/order: is missing");
  });

  test("in a step that throws, or whose result is not JSON, is a failure", async () => {
    const task = await ending(async ({ step }) => {
      const thrown = await step("throws", () => Promise.reject(new Error("disk full"))).catch(
        (error: unknown) => error,
      );
      const odd = await step("odd", () => ({ at: new Date(0) })).catch((error: unknown) => error);
      return [thrown, odd].map((error) => error instanceof ToolFailed && error.result).join("\n");
    });
    expect(task.end?.message.split("\n")).toEqual([
      "disk full",
      'step("odd") ran, and its result cannot be kept: /at: not a plain object',
    ]);
  });

  test("while the function waits elsewhere does not bring the process down", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    const task = await ending(async ({ step }) => {
      const early = step("early", () => Promise.reject(new Error("early")));
      await step("late", () => "late");
      await step("later", () => "later");
      return early.catch((error: Error) => error.message);
    });
    await new Promise((resolve) => setTimeout(resolve, 10));
    process.off("unhandledRejection", note);
    expect([task.end?.message, unhandled]).toEqual(['"early" failed: early', []]);
  });
});

describe("the end of a task", () => {
  test("by reject is rejected, even if the function catches what that throws", async () => {
    const task = await ending(async ({ artifact, reject }) => {
      await artifact("why", { parts: [{ text: "because" }] });
      try {
        return reject("not my job");
      } catch {
        return "went on";
      }
    });
    expect(task.end).toEqual({ state: "rejected", message: "not my job" });
    expect(task.artifacts).toHaveLength(1);
  });

  test("by reply is its text, and nothing else may have been done", async () => {
    const replied = await ending(async ({ reply }) => {
      reply([{ text: "Hello" }, { text: "there" }]);
    });
    expect(replied.end).toEqual({ state: "completed", message: "Hello\nthere" });
    const late: AgentFunction = async ({ reply, step }) => reply(await step("a", () => "late")) as undefined;
    expect(await misuse(late)).toBe("reply() answers instead of a task: it must be the only act");
    const early: AgentFunction = async ({ reply, step }) => {
      reply("early");
      return step("a", () => "a");
    };
    expect(await misuse(early)).toBe('step("a") after reply(): a reply must be the only act');
    expect(await misuse(async ({ reply }) => reply([{ data: { a: 1 } }]) as undefined)).toMatch(
      "reply() takes text for now",
    );
  });

  test("leaves every artifact written once, before what follows it", async () => {
    const { runtime, store } = open(async ({ artifact, step }) => {
      await artifact("plan", { name: "plan.md", parts: [{ text: "1. build" }] });
      await step("build", () => "built");
      await artifact("log", { parts: [{ data: { built: true } }] });
      return "done";
    });
    const id = await submit(runtime);
    const task = await reaches(runtime, id, isOver);
    expect(task.artifacts).toEqual([
      { artifactId: "plan", name: "plan.md", parts: [{ text: "1. build" }] },
      { artifactId: "log", parts: [{ data: { built: true } }] },
    ]);
    const { events } = await store.read({ tenant: TENANT, id });
    expect(events.map(({ type }) => type)).toEqual([
      "task-submitted",
      "artifact-updated",
      "model-replied",
      "effect-claimed",
      "effect-finished",
      "artifact-updated",
      "model-replied",
      "task-completed",
    ]);
  });
});

describe("changed code", () => {
  const act = recorder("act", true);
  const look = recorder("look", false);
  const given = [act.tool, look.tool];

  test.each<[string, AgentFunction]>([
    ["other arguments", async ({ tool }) => void (await tool("k", "act", { n: 2 }))],
    ["another tool", async ({ tool }) => void (await tool("k", "look", { n: 1 }))],
    ["a step", async ({ step }) => void (await step("k", () => 1).catch(() => {}))],
    ["a question", async ({ ask }) => void (await ask("k", { question: "?" }))],
  ])("under an old key ends the task: %s", async (_, changed) => {
    const before = open(async ({ tool }) => void (await tool("k", "act", { n: 1 })), { given });
    const id = await submit(before.runtime);
    const [request] = openRequests(await reaches(before.runtime, id, asks(1)));
    await before.stop();
    const after = open(changed, { given, store: before.store });
    await decide(after.runtime, request, { choice: "deny" });
    expect((await reaches(after.runtime, id, isOver)).end).toEqual({
      state: "failed",
      message: "code changed at k",
      code: "code-changed",
    });
  });

  test("that no longer has a key goes on, and so does a key whose tool is gone", async () => {
    const before = open(
      async ({ tool }) => void (await Promise.all([tool("old", "look"), tool("kept", "look"), tool("k", "act")])),
      { given },
    );
    const id = await submit(before.runtime);
    const [request] = openRequests(await reaches(before.runtime, id, asks(1)));
    await before.stop();
    const after = open(async ({ tool }) => `${await tool("kept", "look")}, ${await tool("new", "act")}`, {
      given: [{ ...act.tool, gated: false }],
      store: before.store,
    });
    await decide(after.runtime, request, { choice: "deny" });
    expect((await reaches(after.runtime, id, isOver)).end?.message).toBe("look ran, act ran");
  });

  test("of an artifact that was written is found too", async () => {
    const version =
      (text: string): AgentFunction =>
      async ({ artifact, ask }) => {
        await artifact("plan", { parts: [{ text }] });
        await ask("k", { question: "?" });
        return "done";
      };
    const before = open(version("one"));
    const id = await submit(before.runtime);
    const [request] = openRequests(await reaches(before.runtime, id, asks(1)));
    await before.stop();
    const after = open(version("two"), { store: before.store });
    await decide(after.runtime, request, { choice: "answer", values: { answer: "x" } });
    expect((await reaches(after.runtime, id, isOver)).end).toMatchObject({ message: "code changed at plan" });
  });
});

/** What ends a task whose function is wrong: it is tried again, and then told. */
async function misuse(run: AgentFunction, given: readonly Tool[] = []): Promise<string | undefined> {
  const store = new MemoryStore(systemClock);
  const release = store.release.bind(store);
  vi.spyOn(store, "release").mockImplementation((lease, retry) => release(lease, retry && { ...retry, afterMs: 1 }));
  const { end } = await ending(run, { given, store });
  expect(end).toMatchObject({ state: "failed", code: "advance-failed" });
  return end?.message.replace("gave up after 5 failed attempts: ", "");
}

describe("misuse is told in the words of the function", () => {
  const look = recorder("look", false);

  test.each<[string, AgentFunction, string | RegExp]>([
    [
      "a key used twice",
      async ({ tool, step }) => void (await Promise.all([tool("k", "look"), step("k", () => 1)])),
      'the key "k" is used twice; each step, ask, tool and artifact has its own',
    ],
    [
      "an unknown tool",
      async ({ tool }) => void (await tool("k", "lok")),
      'tool("k"): this agent has no tool "lok"; name it in the agent\'s tools, or mend the name',
    ],
    ["a step as a tool", async ({ tool }) => void (await tool("k", "step")), /no tool "step"/],
    [
      "arguments that are not JSON",
      async ({ tool }) => void (await tool("k", "look", { at: undefined as never })),
      '"k" cannot be kept: /at: undefined is not JSON',
    ],
    [
      "an empty key",
      async ({ step }) => void (await step("", () => 1)),
      'step(""): a key is a text of 1 to 200 characters',
    ],
    ["no question", async ({ ask }) => void (await ask("k", { questions: [] })), /give at least one question/],
    ["what is not text", (async () => 7) as never, "the function returned number; it must return text"],
    ["its own error", async () => Promise.reject(new Error("oops")), "oops"],
    ["a result that nobody has", async ({ ran }) => void ran("k"), 'ran("k"): it has not run; await its tool first'],
    [
      "too many keys",
      async ({ artifact }) => {
        for (let i = 0; i <= KEYS_MAX; i++) await artifact(`${i}`, { parts: [] });
        return "";
      },
      `artifact("${KEYS_MAX}"): more than ${KEYS_MAX} keys in one task`,
    ],
  ])("%s", async (_, run, text) => {
    expect(await misuse(run, [look.tool])).toEqual(typeof text === "string" ? text : expect.stringMatching(text));
  });

  test.each<[string, AgentFunction]>([
    ['step("inner")', async ({ step }) => step("outer", () => step("inner", () => "deep"))],
    ["reject()", async ({ step, reject }) => step("outer", () => reject("no"))],
    ["reply()", async ({ step, reply }) => step("outer", () => reply("yes") as undefined)],
  ])("%s within a step", async (named, run) => {
    const { end } = await ending(run);
    expect(end?.message).toBe(
      `"outer" failed: ${named} inside step("outer"): a step is one act; do this before or after it`,
    );
  });

  test("a tool that is called like one of ours, at once", () => {
    const parts = {
      store: new MemoryStore(systemClock),
      clock: systemClock,
      tools: createToolbox([recorder("ask", true).tool]),
    };
    expect(() =>
      createCodeAgent(
        "coder",
        defineAgent(async () => ""),
        parts,
      ),
    ).toThrow('the tool "ask" needs another name');
    expect(isAgentDefinition(defineAgent(async () => ""))).toBe(true);
    expect(isAgentDefinition({ run: async () => "" })).toBe(false);
  });

  test("a function that failed for a while goes on where it was", async () => {
    const store = new MemoryStore(systemClock);
    const release = store.release.bind(store);
    vi.spyOn(store, "release").mockImplementation((lease, retry) => release(lease, retry && { ...retry, afterMs: 1 }));
    let runs = 0;
    let steps = 0;
    const task = await ending(
      async ({ step }) => {
        // Fails when it is run up to its step, too: nothing has been claimed then.
        if (runs++ % 2 === 1) throw new Error("away for a moment");
        await step("a", () => ++steps);
        return step("b", () => `${++steps}`);
      },
      { store },
    );
    expect([task.end?.message, steps]).toEqual(["2", 2]);
  });
});

/** Where a node dies: before or after what it appends for the nth time is written. */
interface Death {
  readonly append: number;
  readonly moment: "before" | "after";
}

/** As if the process were gone: nothing that it asks of the store is ever answered. */
function mortal(store: Store, death: Death): { store: Store; isDead: () => boolean } {
  let appends = 0;
  let dead = false;
  const forever = <T>() => new Promise<T>(() => {});
  const handler: CallHandler = {
    sync: (_, perform) => perform(),
    async async({ point }, perform) {
      if (dead) return forever();
      if (point !== "store.append" || ++appends !== death.append) return perform();
      dead = true;
      if (death.moment === "after") await perform();
      return forever();
    },
  };
  return { store: wrapPort("store", store, handler), isDead: () => dead };
}

/** Question, step, gated tool, artifact, parallel steps: with the list of what really happened. */
function deployer(store: Store, ledger: string[], given: readonly Tool[]): Agent {
  const act = (name: string) => () => {
    ledger.push(name);
    return name;
  };
  const run: AgentFunction = async ({ ask, step, tool, artifact }) => {
    const { values } = await ask("where", { question: "Where to?", choices: ["staging", "prod"] });
    const image = await step("build", act("build"));
    await artifact("image", { parts: [{ text: image }] });
    const [tested, scanned] = await Promise.all([
      step("test", act("test")),
      step("scan", act("scan"), { idempotent: true }),
    ]);
    return `${tested} ${scanned} ${await tool("deploy", "deploy", { image, to: values.answer })}`;
  };
  return createCodeAgent("coder", defineAgent(run), { store, clock: systemClock, tools: createToolbox(given) });
}

const ACTS = ["build", "test", "scan", "deploy"];

/** A person who answers everything, and who looks at the world before saying what became of a cut-off call. */
function answerFor(request: Request, task: Task, ledger: readonly string[]): Answer {
  if (request.kind === "approval") return { choice: "approve", digest: request.digest };
  if (request.kind === "input") return { choice: "answer", values: { answer: "prod" } };
  const key = request.kind === "in-doubt" ? (task.calls[request.callId]?.modelCallId ?? "") : "";
  const values = ledger.includes(key) ? { outcome: "done", result: key } : { outcome: "retry" };
  return { choice: "answer", values };
}

async function liveThrough(store: Store, death: Death) {
  const ledger: string[] = [];
  const deploy = createScriptedTool({
    name: "deploy",
    gated: true,
    run: async () => {
      ledger.push("deploy");
      return { outcome: "done", result: "deploy" };
    },
  });
  const start = (on: Store) =>
    startNode({
      store: on,
      clock: systemClock,
      ids: systemIds,
      agents: new Map([["coder", deployer(on, ledger, [deploy])]]),
      waker: { pollMs: 5, leaseMs: 150, heartbeatMs: 30 },
    });
  const first = mortal(store, death);
  const mortalNode = start(first.store);
  // People write to the store itself, so that only the worker's appends are counted.
  const agents = new Map([["coder", deployer(store, ledger, [deploy])]]);
  const people = new Runtime({ store, clock: systemClock, ids: systemIds, agents });
  const id = await submit(people);
  let questions = 0;
  let replaced: HoldpointNode | undefined;
  for (;;) {
    if (first.isDead()) replaced ??= start(store);
    const { task } = await people.load({ tenant: TENANT, id });
    if (!task) throw new Error("lost");
    if (task.end) {
      await (replaced ?? mortalNode).stop();
      return { task, ledger, questions, died: first.isDead() };
    }
    const [request] = openRequests(task);
    if (request) {
      if (request.kind === "in-doubt") questions++;
      await people.choose(TENANT, request.id, answerFor(request, task, ledger), ana);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe("a node that dies at any append", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-code-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const inMemory = () => new MemoryStore(systemClock);
  const onDisk = (name: string) => SqliteStore.open({ path: join(folder, name), clock: systemClock, ids: systemIds });

  test.each([
    ["before", "in memory", inMemory],
    ["after", "in memory", inMemory],
    ["before", "on disk", onDisk],
    ["after", "on disk", onDisk],
  ] as const)(
    "%s it, %s: another goes on, and every act happens once",
    async (moment, _, openStore) => {
      let append = 1;
      let doubts = 0;
      for (; ; append++) {
        const store = openStore(`${moment}-${append}.db`);
        const { task, ledger, questions, died } = await liveThrough(store, { append, moment });
        await store.close();
        const place = `append ${append}`;
        expect([place, task.end]).toEqual([place, { state: "completed", message: "test scan deploy" }]);
        // `scan` says that it may run again; everything else happens once.
        expect([place, [...new Set(ledger)].toSorted()]).toEqual([place, ACTS.toSorted()]);
        expect([place, ledger.filter((act) => act !== "scan").length]).toEqual([place, 3]);
        expect([place, task.artifacts.length]).toEqual([place, 1]);
        doubts += questions;
        if (!died) break;
      }
      // Question, answer, four acts with claim and outcome, and what the function says in between.
      expect(append).toBeGreaterThan(12);
      // Once for each act that may not run again.
      expect(doubts).toBe(3);
    },
    60_000,
  );
});

describe("a step that was cut off", () => {
  /** A task whose only step was claimed (or, with 1, only wanted) by a node that died at once. */
  async function cutOff(run: AgentFunction, after: AgentFunction = run, append = 2) {
    const store = new MemoryStore(systemClock);
    const dying = mortal(store, { append, moment: "after" });
    const agentOn = (on: Store, what: AgentFunction) =>
      new Map([["coder", createCodeAgent("coder", defineAgent(what), { store: on, clock: systemClock })]]);
    const parts = { clock: systemClock, ids: systemIds, waker: { pollMs: 5, leaseMs: 100, heartbeatMs: 20 } };
    const { runtime } = {
      runtime: new Runtime({ store, clock: systemClock, ids: systemIds, agents: agentOn(store, run) }),
    };
    startNode({ ...parts, store: dying.store, agents: agentOn(dying.store, run) });
    const id = await submit(runtime);
    await vi.waitFor(() => expect(dying.isDead()).toBe(true));
    const node = startNode({ ...parts, store, agents: agentOn(store, after) });
    started.push(node);
    return { id, runtime: node.runtime };
  }

  test.each<[string, Answer, string]>([
    ["done, with its result", { choice: "answer", values: { outcome: "done", result: "built" } }, "built"],
    ["done", { choice: "answer", values: { outcome: "done" } }, "null"],
    ["failed", { choice: "answer", values: { outcome: "failed" } }, "tool-failed"],
    ["retry", { choice: "answer", values: { outcome: "retry" } }, "ran"],
    ["nothing", { choice: "cancel" }, "outcome-unknown"],
  ])("is asked about, and the answer may be: %s", async (_, answer, text) => {
    let runs = 0;
    const { id, runtime } = await cutOff(async ({ step }) => {
      const work = () => (++runs > 0 ? "ran" : "");
      return step("build", work).then(String, (error: CallError) => error.code);
    });
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    expect(request).toMatchObject({ kind: "in-doubt", tool: "step", args: { step: "build" } });
    await decide(runtime, request, answer);
    expect((await reaches(runtime, id, isOver)).end?.message).toBe(text);
    expect(runs).toBe(text === "ran" ? 1 : 0);
  });

  test("runs again by itself if it says that it may, under the same idempotency key", async () => {
    const keys: string[] = [];
    const { id, runtime } = await cutOff(async ({ step }) =>
      step("scan", ({ idempotencyKey }) => `run ${keys.push(idempotencyKey)}`, { idempotent: true }),
    );
    const task = await reaches(runtime, id, isOver);
    expect([task.end?.message, task.requests.length, keys]).toEqual(["run 1", 0, [`${id}-call-1-1`]]);
  });

  test("is asked about if the code no longer says that it may run again", async () => {
    const version =
      (idempotent: boolean): AgentFunction =>
      async ({ step }) =>
        step("scan", () => "ran", { idempotent });
    const { id, runtime } = await cutOff(version(true), version(false));
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    expect(request?.kind).toBe("in-doubt");
  });

  test("is not run if the code has changed beside it", async () => {
    let runs = 0;
    const version =
      (question: string): AgentFunction =>
      async ({ ask, step }) => {
        await Promise.all([step("build", () => ++runs), ask("where", { question })]);
        return "done";
      };
    const { id, runtime } = await cutOff(version("Where?"), version("Where to?"), 1);
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    await decide(runtime, request, { choice: "answer", values: { answer: "here" } });
    expect((await reaches(runtime, id, isOver)).end).toMatchObject({ message: "code changed at where" });
    expect(runs).toBe(0);
  });

  test("is not run if the code does not come to it any more, whatever a person says", async () => {
    const { id, runtime } = await cutOff(
      async ({ step }) => step("build", () => "ran"),
      async ({ step }) => step("compile", () => "compiled"),
    );
    const [request] = openRequests(await reaches(runtime, id, asks(1)));
    await decide(runtime, request, { choice: "answer", values: { outcome: "retry" } });
    const task = await reaches(runtime, id, isOver);
    expect(task.end?.message).toBe("compiled");
    expect(task.calls["call-1-1"]?.refused?.text).toBe(
      'the code has changed: it does not come to step("build") any more',
    );
  });
});
