import { describe, expect, test, vi } from "vitest";
import { HoldpointError } from "../errors.ts";
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { MemoryStore } from "../store/memory.ts";
import type { JsonObject } from "../task/json.ts";
import { type Principal, requestId } from "../task/request.ts";
import { findRequest, isOver, openRequests, type Task } from "../task/task.ts";
import { createScriptedAgent, createScriptedTool } from "../testing/scripted-agent.ts";
import type { Tool, Work } from "../tools/tool.ts";
import { startNode } from "./node.ts";
import { Runtime } from "./runtime.ts";
import { ATTEMPTS_MAX } from "./worker.ts";

const TENANT = "default";
const client: Principal = { name: "client", issuer: "test", tenant: TENANT, via: "test" };
const ana: Principal = { ...client, name: "ana" };
const ben: Principal = { ...client, name: "ben" };

/** A node with one agent that makes these calls in its first turn, and the list of what its tools really did. */
function open(
  tools: (ran: Work[]) => Tool[],
  calls: { tool: string; args: JsonObject }[],
  options: { inputTimeoutMs?: number; onTimeout?: "fail" | "deny" } = {},
) {
  const ran: Work[] = [];
  const store = new MemoryStore(systemClock);
  const agent = createScriptedAgent("assistant", [{ text: "I will.", calls }], tools(ran), options);
  const agents = new Map([[agent.name, agent]]);
  const waker = { pollMs: 20, leaseMs: 200, heartbeatMs: 50 };
  const start = () => startNode({ store, clock: systemClock, ids: systemIds, agents, waker });
  return { ran, store, agents, start };
}

const refund = (ran: Work[], script: Partial<Parameters<typeof createScriptedTool>[0]> = {}) =>
  createScriptedTool({
    name: "refund",
    gated: true,
    run: async (work) => {
      ran.push(work);
      return { outcome: "done", result: "refunded" };
    },
    ...script,
  });

function submit(runtime: Runtime, messageId = "m1", text = "go") {
  return runtime.submit({
    tenant: TENANT,
    agent: "assistant",
    principal: client,
    message: { messageId, role: "user", parts: [{ text }] },
  });
}

async function reaches(runtime: Runtime, id: string, condition: (task: Task) => boolean): Promise<Task> {
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

/** Waits for the first question; on a slow machine a short deadline may have closed it again by then. */
async function paused(node: { runtime: Runtime }) {
  const submitted = await submit(node.runtime);
  if (!submitted.ok) throw new Error("refused");
  const task = await reaches(node.runtime, submitted.task.key.id, ({ requests }) => requests.length > 0);
  const request = task.requests[0]?.request;
  if (!request) throw new Error("no request");
  return { id: task.key.id, request };
}

describe("a gated call", () => {
  test("waits for a person, runs once with what was shown, and the task goes on", async () => {
    const { ran, start } = open((list) => [refund(list)], [{ tool: "refund", args: { order: 7 } }]);
    const node = start();
    const { id, request } = await paused(node);
    expect(ran).toEqual([]);
    expect((await node.runtime.choose(TENANT, request.id, { choice: "approve", digest: request.digest }, ana)).ok).toBe(
      true,
    );
    const task = await reaches(node.runtime, id, isOver);
    expect(task.end).toEqual({ state: "completed", message: "Done." });
    expect(ran.map(({ args, idempotencyKey }) => [args, idempotencyKey])).toEqual([[{ order: 7 }, request.id]]);
    await node.stop();
  });

  test("that is denied never runs", async () => {
    const { ran, start } = open((list) => [refund(list)], [{ tool: "refund", args: {} }]);
    const node = start();
    const { id, request } = await paused(node);
    await node.runtime.choose(TENANT, request.id, { choice: "deny", reason: "no" }, ana);
    expect((await reaches(node.runtime, id, isOver)).end?.state).toBe("completed");
    expect(ran).toEqual([]);
    await node.stop();
  });

  test("that is approved with edits runs with the edits, and they are bound to a digest of their own", async () => {
    const { ran, start } = open((list) => [refund(list)], [{ tool: "refund", args: { amount: 100 } }]);
    const node = start();
    const { id, request } = await paused(node);
    await node.runtime.choose(TENANT, request.id, { choice: "approve", editedArgs: { amount: 10 } }, ana);
    const task = await reaches(node.runtime, id, isOver);
    expect(ran.map(({ args }) => args)).toEqual([{ amount: 10 }]);
    const decision = findRequest(task, request.id)?.decision;
    expect(decision?.effectDigest).not.toBe(request.digest);
    expect(Object.values(task.effects)[0]?.digest).toBe(decision?.effectDigest);
    await node.stop();
  });

  test("takes one decision of two people, and tells the other who won", async () => {
    const { ran, start } = open((list) => [refund(list)], [{ tool: "refund", args: {} }]);
    const node = start();
    const { id, request } = await paused(node);
    const answers = await Promise.all([
      node.runtime.choose(TENANT, request.id, { choice: "approve" }, ana),
      node.runtime.choose(TENANT, request.id, { choice: "deny" }, ben),
    ]);
    const lost = answers.find((answer) => !answer.ok);
    expect(answers.filter(({ ok }) => ok)).toHaveLength(1);
    expect(lost).toMatchObject({
      refusal: { code: "already-decided", decision: { principal: { name: expect.stringMatching(/ana|ben/) } } },
    });
    await reaches(node.runtime, id, isOver);
    expect(ran.length).toBeLessThanOrEqual(1);
    await node.stop();
  });

  test("whose plan has changed when a person decides is asked again, and the old answer does not count", async () => {
    let revision = 1;
    const { ran, start } = open(
      (list) => [refund(list, { plan: () => ({ revision }) })],
      [{ tool: "refund", args: {} }],
    );
    const node = start();
    const { id, request } = await paused(node);
    revision = 2;
    const answer = await node.runtime.choose(TENANT, request.id, { choice: "approve", digest: request.digest }, ana);
    expect(answer).toMatchObject({
      ok: false,
      refusal: { code: "digest-differs", request: { supersedes: request.id } },
    });
    const task = await reaches(node.runtime, id, isPaused);
    const [fresh] = openRequests(task);
    await node.runtime.choose(TENANT, fresh?.id ?? "", { choice: "approve" }, ana);
    await reaches(node.runtime, id, isOver);
    expect(ran.map(({ facts }) => facts.plan)).toEqual([{ revision: 2 }]);
    await node.stop();
  });

  test("whose plan changes between decision and claim is asked again", async () => {
    let revision = 1;
    const { ran, store, agents, start } = open(
      (list) => [refund(list, { plan: () => ({ revision }) })],
      [{ tool: "refund", args: {} }],
    );
    const first = start();
    const { id, request } = await paused(first);
    await first.stop();
    await new Runtime({ store, clock: systemClock, ids: systemIds, agents }).choose(
      TENANT,
      request.id,
      { choice: "approve" },
      ana,
    );
    revision = 2;
    const second = start();
    const task = await reaches(second.runtime, id, isPaused);
    expect(ran).toEqual([]);
    expect(openRequests(task)).toMatchObject([{ supersedes: request.id, facts: { plan: { revision: 2 } } }]);
    await second.stop();
  });

  test("that is decided anew between the worker's look and its claim runs what was decided last", async () => {
    let gate: Promise<void> | undefined;
    const slow = (list: Work[]): Tool => {
      const tool = refund(list);
      const prepare: Tool["prepare"] = async (args) => {
        await gate;
        return tool.prepare(args);
      };
      return { ...tool, prepare };
    };
    const { ran, store, agents, start } = open((list) => [slow(list)], [{ tool: "refund", args: { x: "SHOWN" } }]);
    const first = start();
    const { id, request } = await paused(first);
    await first.stop();
    if (request.kind !== "approval") throw new Error("not an approval");
    const key = { tenant: TENANT, id };
    const people = new Runtime({ store, clock: systemClock, ids: systemIds, agents });
    await people.choose(TENANT, request.id, { choice: "approve" }, ana);

    let letGo = () => {};
    gate = new Promise((resolve) => {
      letGo = resolve;
    });
    const second = start();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { id: _id, digest: _digest, ...draft } = request;
    const replaces = { requestId: request.id, state: "approved" } as const;
    await people.execute(key, [{ type: "ask-again", callId: request.callId, draft, replaces }]);
    const edited = { args: { x: "EDITED" }, facts: request.facts };
    const choice = { requestId: requestId(id, 2), choice: "approve", edited } as const;
    expect((await people.execute(key, [{ type: "choose", choice, principal: ben }])).ok).toBe(true);
    letGo();
    await reaches(second.runtime, id, isOver);
    expect(ran.map(({ args }) => args)).toEqual([{ x: "EDITED" }]);
    await second.stop();
  });

  test("of a tool that cannot say what it would do can be denied, and is not approved", async () => {
    let broken = false;
    const plan = () => {
      if (broken) throw new Error("the server is away");
      return {};
    };
    const { ran, start } = open((list) => [refund(list, { plan })], [{ tool: "refund", args: {} }]);
    const node = start();
    const { id, request } = await paused(node);
    broken = true;
    expect(await node.runtime.choose(TENANT, request.id, { choice: "approve" }, ana)).toMatchObject({
      ok: false,
      refusal: { code: "choice-invalid", detail: "refund cannot say what it would do: the server is away" },
    });
    expect((await node.runtime.choose(TENANT, request.id, { choice: "deny" }, ana)).ok).toBe(true);
    await reaches(node.runtime, id, isOver);
    expect(ran).toEqual([]);
    await node.stop();
  });

  test("whose plan has changed once is asked about once more, however many people are at it", async () => {
    let revision = 1;
    const { start } = open((list) => [refund(list, { plan: () => ({ revision }) })], [{ tool: "refund", args: {} }]);
    const node = start();
    const { id, request } = await paused(node);
    revision = 2;
    const people = Array.from({ length: 8 }, (_, i) => ({ ...ana, name: `p${i}` }));
    const answers = await Promise.all(
      people.map((p) => node.runtime.choose(TENANT, request.id, { choice: "approve" }, p)),
    );
    expect(answers.map((answer) => !answer.ok && answer.refusal.code)).toEqual(people.map(() => "digest-differs"));
    const task = await reaches(node.runtime, id, isPaused);
    expect([task.requests.length, openRequests(task).length]).toEqual([2, 1]);
    await node.stop();
  });

  test("gives its person the whole time, however long the model has thought", async () => {
    const world = open((list) => [refund(list)], [{ tool: "refund", args: {} }], { inputTimeoutMs: 3000 });
    const agent = world.agents.get("assistant");
    if (!agent) throw new Error("no agent");
    const slow = {
      ...agent,
      think: async (...args: Parameters<typeof agent.think>) => {
        await new Promise((resolve) => setTimeout(resolve, 900));
        return agent.think(...args);
      },
    };
    const node = startNode({
      store: world.store,
      clock: systemClock,
      ids: systemIds,
      agents: new Map([[agent.name, slow]]),
    });
    const { id, request } = await paused(node);
    const { task } = await node.runtime.load({ tenant: TENANT, id });
    const record = task && findRequest(task, request.id);
    expect((record?.request.expiresAtMs ?? 0) - (record?.openedAtMs ?? 0)).toBeGreaterThan(2500);
    await node.stop();
  });

  test("without an answer is expired at its deadline, and the agent goes on or fails as it was told", async () => {
    const denies = open((list) => [refund(list)], [{ tool: "refund", args: {} }], {
      inputTimeoutMs: 60,
      onTimeout: "deny",
    });
    const node = denies.start();
    const { id, request } = await paused(node);
    const task = await reaches(node.runtime, id, isOver);
    expect([task.end?.state, findRequest(task, request.id)?.decision?.outcome]).toEqual(["completed", "expired"]);
    expect(await node.runtime.choose(TENANT, request.id, { choice: "approve" }, ana)).toMatchObject({
      ok: false,
      refusal: { code: "request-expired" },
    });
    await node.stop();

    const fails = open((list) => [refund(list)], [{ tool: "refund", args: {} }], {
      inputTimeoutMs: 60,
      onTimeout: "fail",
    });
    const other = fails.start();
    const { id: failed } = await paused(other);
    expect((await reaches(other.runtime, failed, isOver)).end).toEqual({
      state: "failed",
      message: "timeout waiting for user input",
      code: "input-timeout",
    });
    expect([...denies.ran, ...fails.ran]).toEqual([]);
    await other.stop();
  });
});

describe("a worker that dies in mid-tool", () => {
  /** Claims the effect and is gone: what a SIGKILL leaves behind. */
  async function cutOff(script: Partial<Parameters<typeof createScriptedTool>[0]>) {
    let hang = true;
    const world = open(
      (list) => [
        refund(list, {
          run: (work) => {
            list.push(work);
            return hang ? new Promise(() => {}) : Promise.resolve({ outcome: "done", result: "again" });
          },
          ...script,
        }),
      ],
      [{ tool: "refund", args: {} }],
    );
    const dying = world.start();
    const { id, request } = await paused(dying);
    await dying.runtime.choose(TENANT, request.id, { choice: "approve" }, ana);
    await vi.waitFor(() => expect(world.ran).toHaveLength(1));
    hang = false;
    // Another process, as after a crash: nobody holds the lease. The first one never comes back.
    const [lease] = await vi.waitFor(async () => {
      vi.spyOn(world.store, "renew").mockResolvedValue();
      const leases = await world.store.claimDue(1, 0, []);
      expect(leases).toHaveLength(1);
      return leases;
    });
    if (lease) await world.store.release(lease);
    return { ...world, id, request };
  }

  test("leaves a question, not a second run; 'done' settles it", async () => {
    const { ran, start, id } = await cutOff({});
    const node = start();
    const task = await reaches(node.runtime, id, isPaused);
    const [question] = openRequests(task);
    expect(question?.kind).toBe("in-doubt");
    expect(ran).toHaveLength(1);
    await node.runtime.choose(TENANT, question?.id ?? "", { choice: "answer", values: { outcome: "done" } }, ana);
    expect((await reaches(node.runtime, id, isOver)).end?.state).toBe("completed");
    expect(ran).toHaveLength(1);
  });

  test("runs again when a person says 'retry', under that decision", async () => {
    const { ran, start, id } = await cutOff({});
    const node = start();
    const [question] = openRequests(await reaches(node.runtime, id, isPaused));
    await node.runtime.choose(TENANT, question?.id ?? "", { choice: "answer", values: { outcome: "retry" } }, ana);
    await reaches(node.runtime, id, isOver);
    expect(ran.map(({ idempotencyKey }) => idempotencyKey)).toEqual([expect.any(String), question?.id]);
  });

  test("fails the task when the tool says so", async () => {
    const { ran, start, id } = await cutOff({ onAmbiguous: "fail" });
    const node = start();
    expect((await reaches(node.runtime, id, isOver)).end).toMatchObject({ state: "failed", code: "outcome-unknown" });
    expect(ran).toHaveLength(1);
  });

  test("runs again by itself only if the tool is declared idempotent, under the same key", async () => {
    const declared = await cutOff({ onAmbiguous: "retry", idempotent: true });
    const node = declared.start();
    await reaches(node.runtime, declared.id, isOver);
    expect(new Set(declared.ran.map(({ idempotencyKey }) => idempotencyKey))).toEqual(new Set([declared.request.id]));
    expect(declared.ran).toHaveLength(2);

    const undeclared = await cutOff({ onAmbiguous: "retry", idempotent: false });
    const other = undeclared.start();
    expect(openRequests(await reaches(other.runtime, undeclared.id, isPaused))[0]?.kind).toBe("in-doubt");
    expect(undeclared.ran).toHaveLength(1);
  });
});

describe("a turn with several calls", () => {
  test("runs the ungated ones, asks about all others at once, and runs nothing at the pause", async () => {
    const free = (list: Work[]) => refund(list, { name: "look", gated: false });
    const calls = ["refund", "look", "refund", "nothing"].map((tool, i) => ({ tool, args: { i } }));
    const { ran, start } = open((list) => [refund(list), free(list)], calls);
    const node = start();
    const { id } = await paused(node);
    let task = await reaches(node.runtime, id, isPaused);
    expect(openRequests(task)).toHaveLength(2);
    expect(ran.map(({ args }) => args)).toEqual([{ i: 1 }]);
    expect(task.calls["call-1-4"]?.refused?.code).toBe("tool-unknown");
    const [first, second] = openRequests(task);
    await node.runtime.choose(TENANT, second?.id ?? "", { choice: "approve" }, ana);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(ran).toHaveLength(1);
    await node.runtime.choose(TENANT, first?.id ?? "", { choice: "approve" }, ben);
    task = await reaches(node.runtime, id, isOver);
    expect(ran.map(({ args }) => args)).toEqual([{ i: 1 }, { i: 0 }, { i: 2 }]);
    await node.stop();
  });
});

describe("cancel", () => {
  test("of a running task aborts the tool and reports what really happened", async () => {
    const { start } = open(
      (list) => [
        refund(list, {
          gated: false,
          run: (work) => {
            list.push(work);
            return new Promise((resolve) => {
              work.signal.addEventListener("abort", () => resolve({ outcome: "failed", result: "stopped half-way" }));
            });
          },
        }),
      ],
      [{ tool: "refund", args: {} }],
    );
    const node = start();
    const submitted = await submit(node.runtime);
    if (!submitted.ok) throw new Error("refused");
    const { id } = submitted.task.key;
    await reaches(node.runtime, id, (task) => Object.keys(task.effects).length > 0);
    await node.runtime.cancel({ tenant: TENANT, id }, ana);
    const task = await reaches(node.runtime, id, isOver);
    expect(task.end).toEqual({ state: "canceled", message: "Canceled by ana." });
    expect(Object.values(task.effects)[0]?.status).toEqual({ type: "failed", result: { value: "stopped half-way" } });
    await node.stop();
  });
});

describe("a message", () => {
  test("that is sent twice starts one task; the same id with another text is refused", async () => {
    const { start } = open((list) => [refund(list)], []);
    const node = start();
    const [first, second] = await Promise.all([submit(node.runtime), submit(node.runtime)]);
    expect(first.ok && second.ok && first.task.key.id === second.task.key.id).toBe(true);
    expect(await submit(node.runtime, "m1", "something else")).toEqual({
      ok: false,
      refusal: { code: "message-reused", messageId: "m1" },
    });
    await node.stop();
  });

  test("that is sent again after the task has ended gives what it gave then", async () => {
    const { start } = open((list) => [refund(list)], [{ tool: "refund", args: {} }]);
    const node = start();
    const { id } = await paused(node);
    const key = { tenant: TENANT, id };
    const late = { messageId: "m2", role: "user", parts: [{ text: "wait" }] } as const;
    expect((await node.runtime.receive(key, late, client)).ok).toBe(true);
    await node.runtime.cancel(key, client);
    expect((await node.runtime.receive(key, late, client)).ok).toBe(true);
    const other = { ...late, parts: [{ text: "no" }] };
    expect(await node.runtime.receive(key, other, client)).toMatchObject({
      ok: false,
      refusal: { code: "message-reused" },
    });
    expect(await node.runtime.receive(key, { ...late, messageId: "m3" }, client)).toMatchObject({
      ok: false,
      refusal: { code: "task-over" },
    });
    await node.stop();
  });

  test("that cannot be kept is refused, and so is somebody from elsewhere", async () => {
    const { start } = open((list) => [refund(list)], []);
    const node = start();
    expect(await submit(node.runtime, "m1", "\ud800")).toMatchObject({
      ok: false,
      refusal: { code: "message-invalid", pointer: "/parts/0/text" },
    });
    const stranger = { ...client, tenant: "other" };
    const message = { messageId: "m", role: "user", parts: [] } as const;
    expect(
      await node.runtime.submit({ tenant: TENANT, agent: "assistant", principal: stranger, message }),
    ).toMatchObject({ ok: false, refusal: { code: "principal-unfit" } });
    await node.stop();
  });

  test("for an agent that does not exist names those that do", async () => {
    const { start } = open((list) => [refund(list)], []);
    const node = start();
    const order = {
      tenant: TENANT,
      agent: "asistant",
      principal: client,
      message: { messageId: "m", role: "user", parts: [] },
    } as const;
    await expect(node.runtime.submit(order)).rejects.toThrow('there is no agent "asistant"; there are: assistant');
    await node.stop();
  });
});

describe("headers of a client", () => {
  test("reach the tool and nothing else: not the log, and not the next task", async () => {
    const { ran, store, start } = open((list) => [refund(list, { gated: false })], [{ tool: "refund", args: {} }]);
    const node = start();
    const order = { tenant: TENANT, agent: "assistant", principal: client };
    const message = (messageId: string) => ({ messageId, role: "user" as const, parts: [{ text: "go" }] });
    const secret = "a-secret-of-the-client";
    const sent = [
      await node.runtime.submit({ ...order, message: message("m1"), headers: { "x-user": secret } }),
      await node.runtime.submit({ ...order, message: message("m2") }),
    ];
    const ids = sent.map((each) => (each.ok ? each.task.key.id : ""));
    for (const id of ids) await reaches(node.runtime, id, isOver);
    const got = Object.fromEntries(ran.map(({ idempotencyKey, headers }) => [idempotencyKey, headers]));
    expect(got).toEqual({ [`${ids[0]}-call-1-1`]: { "x-user": secret }, [`${ids[1]}-call-1-1`]: {} });
    for (const id of ids) {
      expect(JSON.stringify((await store.read({ tenant: TENANT, id })).events)).not.toContain(secret);
    }
    await node.stop();
  });

  test("are gone after a restart, and the tool is told so instead of running as somebody else", async () => {
    const { ran, start } = open((list) => [refund(list)], [{ tool: "refund", args: {} }]);
    const node = start();
    const message = { messageId: "m1", role: "user" as const, parts: [{ text: "go" }] };
    const order = { tenant: TENANT, agent: "assistant", principal: client, message, headers: { "x-user": "secret" } };
    const sent = await node.runtime.submit(order);
    const id = sent.ok ? sent.task.key.id : "";
    const task = await reaches(node.runtime, id, isPaused);
    await node.stop();
    const again = start();
    await again.runtime.choose(TENANT, task.requests[0]?.request.id ?? "", { choice: "approve" }, ana);
    await reaches(again.runtime, id, isOver);
    expect(ran.map(({ headers, headersLost }) => [headers, headersLost])).toEqual([[undefined, true]]);
    await again.stop();
  });
});

describe("a tool that is stopped", () => {
  const hasty = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 50, signal) };

  test.each([
    ["does not stop", () => new Promise<never>(() => {}), "it was asked to stop and did not"],
    [
      "breaks off",
      ({ signal }: Work) =>
        new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("ouch")))),
      "it was stopped: ouch",
    ],
  ])("and %s has an outcome that nobody knows", async (_what, run, why) => {
    const { store, agents } = open((list) => [refund(list, { gated: false, run })], [{ tool: "refund", args: {} }]);
    const node = startNode({ store, clock: hasty, ids: systemIds, agents, waker: { pollMs: 20 } });
    const sent = await submit(node.runtime);
    const key = sent.ok ? sent.task.key : { tenant: TENANT, id: "" };
    await reaches(node.runtime, key.id, ({ effects }) => Object.keys(effects).length > 0);
    await node.runtime.cancel(key, ana);
    const task = await reaches(node.runtime, key.id, isOver);
    expect(Object.values(task.effects).map(({ status }) => status)).toEqual([{ type: "unknown", why }]);
    expect(task.end?.message).toBe("Canceled by ana. Outcome unknown of: refund.");
    await node.stop();
  });
});

describe("the same message", () => {
  test("to another agent or in another context is not the same", async () => {
    const { store, agents } = open((list) => [refund(list)], []);
    const other = createScriptedAgent("other", [], []);
    const node = startNode({
      store,
      clock: systemClock,
      ids: systemIds,
      agents: new Map([...agents, ["other", other]]),
    });
    const message = { messageId: "m1", role: "user" as const, parts: [{ text: "go" }] };
    const order = { tenant: TENANT, agent: "assistant", principal: client, message };
    const first = await node.runtime.submit({ ...order, contextId: "c1" });
    const same = await node.runtime.submit(order);
    expect(same.ok && first.ok && same.task.key).toEqual(first.ok && first.task.key);
    for (const wrong of [
      { ...order, agent: "other" },
      { ...order, contextId: "c2" },
    ]) {
      expect(await node.runtime.submit(wrong)).toMatchObject({ ok: false, refusal: { code: "message-reused" } });
    }
    await node.stop();
  });
});

describe("what cannot go on", () => {
  test("a task whose agent keeps failing ends after five attempts and says why", async () => {
    const { store, agents } = open((list) => [refund(list)], []);
    const broken = { ...agents.get("assistant"), think: () => Promise.reject(new Error("the model is on fire")) };
    const failures: unknown[] = [];
    const node = startNode({
      store,
      clock: { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) },
      ids: systemIds,
      agents: new Map([["assistant", broken as never]]),
      waker: { pollMs: 20, onFailure: (_key, error) => failures.push(error) },
    });
    const retries = vi.spyOn(store, "release").mockImplementation(function (this: MemoryStore, lease, retry) {
      return MemoryStore.prototype.release.call(store, lease, retry && { ...retry, afterMs: 1 });
    });
    const submitted = await submit(node.runtime);
    if (!submitted.ok) throw new Error("refused");
    const task = await reaches(node.runtime, submitted.task.key.id, isOver);
    expect(task.end).toEqual({
      state: "failed",
      code: "advance-failed",
      message: "gave up after 5 failed attempts: the model is on fire",
    });
    expect(failures).toHaveLength(ATTEMPTS_MAX - 1);
    expect(retries.mock.calls.flatMap(([, retry]) => retry?.afterMs ?? [])).toEqual([250, 500, 1000, 2000]);
    await node.stop();
  });

  test("a task whose agent is gone fails clearly", async () => {
    const { store, start } = open((list) => [refund(list)], [{ tool: "refund", args: {} }]);
    const first = start();
    const { id, request } = await paused(first);
    await first.runtime.choose(TENANT, request.id, { choice: "deny" }, ana);
    await first.stop();
    const { task: before } = await first.runtime.load({ tenant: TENANT, id });
    if (before?.end) return;
    const second = startNode({ store, clock: systemClock, ids: systemIds, agents: new Map(), waker: { pollMs: 10 } });
    expect((await reaches(second.runtime, id, isOver)).end).toMatchObject({ state: "failed", code: "agent-missing" });
    await second.stop();
  });

  test("a store that only conflicts is a fault that says so, not an endless loop", async () => {
    const { store, agents } = open((list) => [refund(list)], []);
    vi.spyOn(store, "append").mockResolvedValue("conflict");
    const runtime = new Runtime({ store, clock: systemClock, ids: systemIds, agents });
    await expect(submit(runtime)).rejects.toThrow(HoldpointError);
    await expect(submit(runtime)).rejects.toMatchObject({ code: "store-contended", retry: true });
  });
});

describe("a long tool", () => {
  test("keeps its lease by heartbeats: nobody takes it over", async () => {
    const { ran, start } = open(
      (list) => [
        refund(list, {
          gated: false,
          run: async (work) => {
            list.push(work);
            await new Promise((resolve) => setTimeout(resolve, 700));
            return { outcome: "done", result: "slow" };
          },
        }),
      ],
      [{ tool: "refund", args: {} }],
    );
    const [node, rival] = [start(), start()];
    const submitted = await submit(node.runtime);
    if (!submitted.ok) throw new Error("refused");
    const task = await reaches(node.runtime, submitted.task.key.id, isOver);
    expect([task.end?.state, task.requests.length, ran.length]).toEqual(["completed", 0, 1]);
    await Promise.all([node.stop(), rival.stop()]);
  });
});
