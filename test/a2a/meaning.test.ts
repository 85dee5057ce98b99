/** What a message to a task means: the ten rules. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createScriptedAgent, createScriptedTool } from "../../src/testing/index.ts";
import { OWNER_TOKEN, startTask, startWorld, tokenOf, type World } from "../api/world.ts";
import { data, rpc, text, userMessage } from "./wire.ts";

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world.stop());

const answer = (requestId: string, values: object, more: object = {}) =>
  data({ type: "a2a.input.response", requestId, values, ...more });
const send = (taskId: string, parts: readonly object[], options: Parameters<typeof rpc>[3] = {}, more: object = {}) =>
  rpc(world, "SendMessage", { message: userMessage(parts, { taskId, ...more }) }, options);
const versionOf = async (id: string) => (await world.runtime.load({ tenant: "default", id })).task?.version;
const refusedOf = (reply: Awaited<ReturnType<typeof rpc>>) =>
  reply.result?.task?.metadata?.["urn:holdpoint:hitl:v1"]?.refused;

describe("an answer", () => {
  test("malformed by its own dialect is told with its place, and changes nothing", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const before = await versionOf(taskId);
    const reply = await send(taskId, [data({ type: "a2a.input.response", requestId, values: "yes" })]);
    expect(reply.error?.code).toBe(-32602);
    expect(reply.error?.data).toContainEqual(
      expect.objectContaining({
        fieldViolations: [{ field: "/message/parts/0/data/values", description: expect.any(String) }],
      }),
    );
    expect(await versionOf(taskId)).toBe(before);
  });

  test.each([
    ["approve", "completed"],
    [" Yes ", "completed"],
    ["deny", "completed"],
  ])("in one word, %j, counts for the only open approval", async (word) => {
    const { taskId } = await startTask(world, "janitor");
    const reply = await send(taskId, [text(word)]);
    expect(reply.result.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(world.stage.ran).toHaveLength(word === "deny" ? 0 : 1);
  });

  test.each(["disapprove", "do not approve", "now"])("is not what only looks like one: %j", async (words) => {
    const { taskId } = await startTask(world, "janitor");
    const reply = await send(taskId, [text(words)]);
    expect(reply.result.task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(reply.result.task.history.at(-1).parts).toEqual([{ text: words }]);
    expect(world.stage.ran).toEqual([]);
  });

  test("that two parts disagree about is refused whole", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const reply = await send(taskId, [
      answer(requestId, { decision: "approve" }),
      answer(requestId, { decision: "deny" }),
    ]);
    expect([reply.error?.code, world.stage.ran]).toEqual([-32602, []]);
  });

  test("that names a request of another task is refused", async () => {
    const [one, two] = [await startTask(world, "janitor"), await startTask(world, "janitor")];
    const reply = await send(one.taskId, [answer(two.requestId, { decision: "approve" })]);
    expect([reply.error?.code, world.stage.ran]).toEqual([-32602, []]);
  });

  test("without a task is never the beginning of one", async () => {
    const { requestId } = await startTask(world, "janitor");
    const reply = await rpc(world, "SendMessage", {
      message: userMessage([answer(requestId, { decision: "approve" })]),
    });
    expect([reply.error?.code, reply.error?.message]).toEqual([-32602, expect.stringContaining("/message/taskId")]);
  });

  test("by somebody without the scope is refused, and nothing changes", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const before = await versionOf(taskId);
    const reply = await send(taskId, [answer(requestId, { decision: "approve" })], { token: tokenOf("submitter") });
    expect([reply.error?.code, reply.error?.data?.[0]?.reason]).toEqual([-32004, "DECIDE_SCOPE_REQUIRED"]);
    const rest = await world.call("POST", "/a2a/janitor/message:send", {
      token: tokenOf("submitter"),
      headers: { "a2a-version": "1.0" },
      body: { message: userMessage([text("approve")], { taskId }) },
    });
    expect(rest.status).toBe(403);
    expect(await versionOf(taskId)).toBe(before);
  });

  test("needs no more than the scope to decide", async () => {
    const { taskId } = await startTask(world, "janitor");
    const reply = await send(taskId, [text("approve")], { token: tokenOf("ana") });
    expect(reply.result.task.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("that does not fit what was asked is told, and the question stays", async () => {
    const { taskId, requestId } = await startTask(world, "asker");
    const reply = await send(taskId, [answer(requestId, { answer: "oracle" })], { agent: "asker" });
    expect(reply.error?.code).toBe(-32602);
    const right = await send(taskId, [answer(requestId, { answer: "pg" })], { agent: "asker" });
    expect(right.result.task.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("that comes late is told who decided, and how", async () => {
    await world.stop();
    world = startWorld();
    const { taskId, requestId } = await startTask(world, "janitor");
    const { task } = await world.runtime.load({ tenant: "default", id: taskId });
    expect(task).toBeDefined();
    await send(taskId, [answer(requestId, { decision: "deny" })], { token: tokenOf("ana") });
    const late = await send(taskId, [answer(requestId, { decision: "approve" })]);
    expect(late.error?.code).toBe(-32004);
    expect(late.error?.data[0]).toMatchObject({
      reason: "UNSUPPORTED_OPERATION",
      metadata: { outcome: "denied", by: "ana", at: expect.stringMatching(/Z$/), code: "already-decided" },
    });
    // The same once more by the same person is a retry.
    const again = await send(taskId, [answer(requestId, { decision: "deny" })], { token: tokenOf("ana") });
    expect(again.result.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(world.stage.ran).toEqual([]);
  });

  test("for what has changed meanwhile is not taken; the task shows what is asked now", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    world.stage.plan = "something else";
    const reply = await send(taskId, [answer(requestId, { decision: "approve" })]);
    expect(refusedOf(reply)).toEqual([{ requestId, code: "digest-differs", now: `input-${taskId}-2` }]);
    expect(reply.result.task.status.message.parts[1].data.requestId).toBe(`input-${taskId}-2`);
    expect(world.stage.ran).toEqual([]);
  });

  test("where self-approval is denied must come from somebody else", async () => {
    await world.stop();
    const { auth } = (await import("../api/world.ts")).SERVER_CONFIG;
    world = startWorld({ server: { auth: { ...auth, selfApproval: "deny" } } });
    const { taskId } = await startTask(world, "janitor");
    const own = await send(taskId, [text("approve")]);
    expect([own.error?.code, own.error?.data[0].reason]).toEqual([-32004, "SELF_APPROVAL_DENIED"]);
    const other = await send(taskId, [text("approve")], { token: tokenOf("ana") });
    expect(other.result.task.status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("several requests", () => {
  const agent = "double";
  beforeEach(async () => {
    await world.stop();
    world = startWorld();
    const remove = createScriptedTool({
      name: "delete_file",
      gated: true,
      run: async ({ args }) => {
        world.stage.ran.push(args);
        return { outcome: "done", result: "deleted" };
      },
    });
    const calls = ["a", "b", "c"].map((path) => ({ tool: "delete_file", args: { path } }));
    const scripted = createScriptedAgent(
      agent,
      [
        { text: "Three.", calls },
        { text: "All done.", calls: [] },
      ],
      [remove],
    );
    (world.runtime.agents as Map<string, typeof scripted>).set(agent, scripted);
  });

  test("are asked in one message, in order, and asked again when fewer are open", async () => {
    const { taskId } = await startTask(world, agent);
    const id = (n: number) => `input-${taskId}-${n}`;
    const asked = (await rpc(world, "GetTask", { id: taskId }, { agent })).result;
    const parts = asked.status.message.parts as { data?: { requestId: string } }[];
    expect(parts.map(({ data: part }) => part?.requestId)).toEqual([undefined, id(1), id(2), id(3)]);
    const reply = await send(taskId, [answer(id(2), { decision: "approve" })], { agent });
    const left = reply.result.task.status.message.parts as typeof parts;
    expect(left.map(({ data: part }) => part?.requestId)).toEqual([undefined, id(1), id(3)]);
    expect(world.stage.ran).toEqual([]);
    const rest = [answer(id(1), { decision: "deny" }), answer(id(3), { decision: "approve" })];
    const ended = await send(taskId, rest, { agent });
    expect(ended.result.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(world.stage.ran).toEqual([{ path: "b" }, { path: "c" }]);
  });

  test("make a word without an id ambiguous", async () => {
    const { taskId } = await startTask(world, agent);
    const reply = await send(taskId, [text("approve")], { agent });
    expect(refusedOf(reply).map(({ code }: { code: string }) => code)).toEqual(["ambiguous", "ambiguous", "ambiguous"]);
    expect(world.stage.ran).toEqual([]);
  });

  test("count one by one: what lost its race is told beside what counted", async () => {
    const { taskId } = await startTask(world, agent);
    const id = (n: number) => `input-${taskId}-${n}`;
    await send(taskId, [answer(id(1), { decision: "deny" })], { agent, token: tokenOf("ana") });
    const both = [answer(id(1), { decision: "approve" }), answer(id(2), { decision: "approve" })];
    const reply = await send(taskId, both, { agent });
    expect(refusedOf(reply)).toEqual([
      { requestId: id(1), code: "already-decided", outcome: "denied", by: "ana", at: expect.any(String) },
    ]);
    const { task } = await world.runtime.load({ tenant: "default", id: taskId });
    expect(task?.requests.map(({ decision }) => decision?.outcome)).toEqual(["denied", "approved", undefined]);
  });

  test("a late word for the first never hits the second", async () => {
    const { taskId } = await startTask(world, agent);
    const id = (n: number) => `input-${taskId}-${n}`;
    const twice = [answer(id(1), { decision: "deny" }), answer(id(2), { decision: "deny" })];
    await send(taskId, twice, { agent, token: tokenOf("ana") });
    const reply = await send(taskId, [text("approve")], { agent });
    expect(refusedOf(reply)).toEqual([{ requestId: id(3), code: "ambiguous" }]);
    expect(world.stage.ran).toEqual([]);
  });

  test("a word that is sent again does not hit the next request", async () => {
    const { taskId } = await startTask(world, agent);
    const id = (n: number) => `input-${taskId}-${n}`;
    const two = [answer(id(1), { decision: "deny" }), answer(id(2), { decision: "deny" })];
    await send(taskId, two, { agent });
    const word = { message: userMessage([text("deny")], { taskId }) };
    const first = await rpc(world, "SendMessage", word, { agent });
    const again = await rpc(world, "SendMessage", word, { agent });
    expect(again.result).toEqual(first.result);
  });
});

describe("a message", () => {
  test("that is no answer is kept, and the status says what is waited for", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const reply = await send(taskId, [text("what is in that file?"), data({ any: "thing" })]);
    expect(reply.result.task.status).toMatchObject({
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { messageId: `${taskId}-3`, parts: [{}, { data: { requestId } }] },
    });
    expect(reply.result.task.history.at(-1)).toMatchObject({
      role: "ROLE_USER",
      parts: [{}, { data: { any: "thing" } }],
    });
  });

  test("to a context alone begins a task there; to a task in another context is refused", async () => {
    const { taskId } = await startTask(world, "looker");
    const begun = await rpc(world, "SendMessage", { message: userMessage([text("x")], { contextId: "mine" }) });
    expect(begun.result.task.contextId).toBe("mine");
    const wrong = await send(taskId, [text("x")], { agent: "looker" }, { contextId: "mine" });
    expect(wrong.error?.code).toBe(-32602);
  });

  test("with the same id counts once; with another body it is refused", async () => {
    const message = userMessage([text("tidy up")]);
    const [one, two] = await Promise.all([
      rpc(world, "SendMessage", { message }),
      rpc(world, "SendMessage", { message }),
    ]);
    expect(one.result.task.id).toBe(two.result.task.id);
    const other = await rpc(world, "SendMessage", { message: { ...message, parts: [text("something else")] } });
    expect([other.error?.code, other.error?.message]).toEqual([-32602, expect.stringContaining("messageId")]);
    // Another principal's ids are his own.
    const theirs = await rpc(world, "SendMessage", { message }, { token: tokenOf("submitter") });
    expect(theirs.result.task.id).not.toBe(one.result.task.id);
  });

  test("in one word that is sent again does not hit the next requests, and is not ambiguous for them", async () => {
    const remove = createScriptedTool({
      name: "delete_file",
      gated: true,
      run: async ({ args }) => {
        world.stage.ran.push(args);
        return { outcome: "done", result: "deleted" };
      },
    });
    const turns = [["a"], ["b", "c"]].map((paths) => ({
      text: "",
      calls: paths.map((path) => ({ tool: "delete_file", args: { path } })),
    }));
    const agent = createScriptedAgent("twice", [...turns, { text: "All done.", calls: [] }], [remove]);
    (world.runtime.agents as Map<string, typeof agent>).set("twice", agent);
    const { taskId } = await startTask(world, "twice");
    const word = { message: userMessage([text("approve")], { taskId }) };
    const first = await rpc(world, "SendMessage", word, { agent: "twice" });
    expect(first.result.task.status.message.parts[1].data.requestId).toBe(`input-${taskId}-2`);
    const again = await rpc(world, "SendMessage", word, { agent: "twice" });
    expect(again.result).toEqual(first.result);
    expect(world.stage.ran).toEqual([{ path: "a" }]);
  });

  test("with the same id is another one where ids are ignored", async () => {
    await world.stop();
    world = startWorld({ server: { a2a: { profile: "1.0.0", legacy: false, messageIds: "ignored" } } });
    const message = userMessage([text("look")]);
    const ids = await Promise.all(
      [1, 2].map(async () => (await rpc(world, "SendMessage", { message }, { agent: "looker" })).result.task.id),
    );
    expect(new Set(ids).size).toBe(2);
  });

  test("of which 50 come at once for one pause runs once, and every loser is told", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        send(taskId, [answer(requestId, { decision: i % 2 ? "approve" : "deny" })], {
          token: i % 3 ? OWNER_TOKEN : tokenOf("ana"),
        }),
      ),
    );
    const { task } = await world.runtime.load({ tenant: "default", id: taskId });
    expect(world.stage.ran.length).toBe(task?.requests[0]?.decision?.outcome === "approved" ? 1 : 0);
    for (const { result, error } of replies) {
      const told = error?.data?.[0]?.metadata ?? result?.task;
      expect(told).toBeDefined();
    }
  });
});
