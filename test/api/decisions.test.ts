import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ClientErrorBody } from "../../src/client/client.ts";
import { systemClock } from "../../src/ports/clock.ts";
import type { RequestView } from "../../src/task/request-view.ts";
import type { TaskView } from "../../src/task/task-view.ts";
import { SERVER_CONFIG, startTask, startWorld, tokenOf, type World } from "./world.ts";

/** What a decision is answered with: the request, or why not. */
type Body = RequestView & Required<ClientErrorBody>;

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world.stop());

const show = async (id: string) => (await (await world.call("GET", `/api/requests/${id}`)).json()) as RequestView;
const decide = async (id: string, body: unknown, token?: string) => {
  const response = await world.call("POST", `/api/requests/${id}/decision`, { body, ...(token ? { token } : {}) });
  return { status: response.status, body: (await response.json()) as Body };
};
const finished = async (taskId: string) => {
  for (;;) {
    const task = (await (await world.call("GET", `/api/tasks/${taskId}`)).json()) as TaskView;
    if (task.result) return task;
    await systemClock.sleep(2);
  }
};

test("a request tells all that a person needs", async () => {
  const { taskId, requestId } = await startTask(world, "janitor");
  const request = await show(requestId);
  expect(request).toEqual({
    id: requestId,
    kind: "approval",
    status: "open",
    taskId,
    contextId: expect.any(String),
    agent: "janitor",
    path: ["janitor"],
    title: "delete_file",
    prompt: 'Run delete_file with {"path":"old.csv"}?',
    agentSays: "I want delete_file.",
    tool: "delete_file",
    args: { path: "old.csv" },
    plan: { deletes: "old.csv" },
    schema: null,
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    editable: true,
    risk: "medium",
    rule: null,
    openedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    expiresAt: null,
    onTimeout: "deny",
  });
  const list = (await (await world.call("GET", "/api/requests")).json()) as { requests: RequestView[] };
  expect(list.requests).toEqual([request]);
  const none = (await (await world.call("GET", "/api/requests?agent=asker")).json()) as { requests: RequestView[] };
  expect(none.requests).toEqual([]);
});

describe("approve", () => {
  test("runs exactly what was shown, once, and says who decided", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const { digest } = await show(requestId);
    const { status, body } = await decide(requestId, { decision: "approve", digest, reason: "fine" }, tokenOf("ana"));
    expect([status, body.status]).toEqual([200, "approved"]);
    expect(body.decision).toMatchObject({ outcome: "approved", by: "ana", via: "api", reason: "fine" });
    const task = await finished(taskId);
    expect(task.result).toEqual({ state: "completed", message: "All done." });
    expect(world.stage.ran).toEqual([{ path: "old.csv" }]);
    expect((await show(requestId)).effect).toEqual({ state: "done", attempt: 1, result: "deleted" });
    expect(task.timeline.map(({ text }) => text)).toEqual([
      "owner asks janitor",
      "the agent wants: delete_file",
      "waits for a person: delete_file (approval)",
      "delete_file approved by ana: fine",
      "delete_file starts",
      "delete_file done",
      "the agent says",
      "completed",
    ]);
    expect(task.messages.map(({ role, text }) => [role, text])).toEqual([
      ["user", "go"],
      ["agent", "I want delete_file."],
      ["agent", "All done."],
    ]);
  });

  test("again by the same principal changes nothing; by another loses, and is told who won", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const { digest } = await show(requestId);
    await decide(requestId, { decision: "approve", digest }, tokenOf("ana"));
    await finished(taskId);
    expect((await decide(requestId, { decision: "approve", digest }, tokenOf("ana"))).status).toBe(200);
    const late = await decide(requestId, { decision: "deny", reason: "no!" });
    expect([late.status, late.body.error.code]).toEqual([409, "already-decided"]);
    expect(late.body.decision).toMatchObject({ outcome: "approved", by: "ana" });
    expect(late.body.request.status).toBe("approved");
    expect(world.stage.ran).toHaveLength(1);
  });

  test("with other arguments runs those, and records them", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const { digest } = await show(requestId);
    const { body } = await decide(requestId, { decision: "approve", digest, editedArgs: { path: "older.csv" } });
    expect(body.decision?.editedArgs).toEqual({ path: "older.csv" });
    await finished(taskId);
    expect(world.stage.ran).toEqual([{ path: "older.csv" }]);
  });

  test("of what has changed since it was shown is 412 with the new request, which can then be approved", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const { digest } = await show(requestId);
    world.stage.plan = "everything";
    const changed = await decide(requestId, { decision: "approve", digest });
    expect([changed.status, changed.body.error.code]).toEqual([412, "digest-differs"]);
    expect(changed.body.request).toMatchObject({
      status: "open",
      plan: { deletes: "everything" },
      supersedes: requestId,
    });
    expect(world.stage.ran).toEqual([]);
    const { id, digest: fresh } = changed.body.request;
    expect((await decide(id, { decision: "approve", digest: fresh })).status).toBe(200);
    await finished(taskId);
    expect(world.stage.ran).toHaveLength(1);
  });

  test("with the digest of something else is 412, and the request stays open", async () => {
    const { requestId } = await startTask(world, "janitor");
    const wrong = await decide(requestId, { decision: "approve", digest: `sha256:${"0".repeat(64)}` });
    expect([wrong.status, wrong.body.request.id]).toEqual([412, requestId]);
    expect((await show(requestId)).status).toBe("open");
  });

  test("by whoever asked is refused where the config says so; a denial is not", async () => {
    await world.stop();
    world = startWorld({ server: { auth: { ...SERVER_CONFIG.auth, selfApproval: "deny" } } });
    const { requestId } = await startTask(world, "janitor");
    const { digest } = await show(requestId);
    const own = await decide(requestId, { decision: "approve", digest });
    expect([own.status, own.body.error.code]).toEqual([403, "self-approval"]);
    expect((await decide(requestId, { decision: "approve", digest }, tokenOf("ana"))).status).toBe(200);
  });
});

test("deny lets the agent go on, with the reason", async () => {
  const { taskId, requestId } = await startTask(world, "janitor");
  const { status, body } = await decide(requestId, { decision: "deny", reason: "wrong file" });
  expect([status, body.status, body.decision?.reason]).toEqual([200, "denied", "wrong file"]);
  expect((await finished(taskId)).result?.state).toBe("completed");
  expect(world.stage.ran).toEqual([]);
});

test("cancel closes the request unrun, and the task goes on", async () => {
  const { taskId, requestId } = await startTask(world, "janitor");
  expect((await decide(requestId, { decision: "cancel" })).body.status).toBe("canceled");
  expect((await finished(taskId)).result?.state).toBe("completed");
  expect(world.stage.ran).toEqual([]);
});

describe("answer", () => {
  test("that fits the schema is the result of the call", async () => {
    const { taskId, requestId } = await startTask(world, "asker");
    expect(await show(requestId)).toMatchObject({ kind: "input", prompt: "Which database?", tool: null });
    const { status, body } = await decide(requestId, { decision: "answer", values: { answer: "pg" } });
    expect([status, body.decision?.values]).toEqual([200, { answer: "pg" }]);
    expect((await finished(taskId)).result?.state).toBe("completed");
  });

  test.each([
    ["a value that is no choice", { answer: "mysql" }, "/values/answer"],
    ["nothing", {}, "/values/answer"],
    ["a wrong type", { answer: 1 }, "/values/answer"],
    ["more than was asked", { answer: "pg", extra: 1 }, "/values/extra"],
  ])("with %s is 422 with its place, and the request stays open", async (_what, values, pointer) => {
    const { requestId } = await startTask(world, "asker");
    const { status, body } = await decide(requestId, { decision: "answer", values });
    expect([status, body.error.pointers?.[0]?.pointer]).toEqual([422, pointer]);
    expect((await show(requestId)).status).toBe("open");
  });
});

test("a request whose time is over is 410", async () => {
  const { taskId, requestId } = await startTask(world, "hasty");
  await finished(taskId);
  const { status, body } = await decide(requestId, { decision: "deny" });
  expect([status, body.error.code]).toEqual([410, "request-expired"]);
  expect((await show(requestId)).decision).toMatchObject({ outcome: "expired", cause: "deadline" });
  expect(world.stage.ran).toEqual([]);
});

describe("what is not a decision is 422 with its place, and the request stays open", () => {
  const digest = `sha256:${"0".repeat(64)}`;
  test.each([
    ["approve without a digest", { decision: "approve" }, "/digest"],
    ["approve with half a digest", { decision: "approve", digest: "sha256:00" }, "/digest"],
    ["something else", { decision: "yes" }, "/decision"],
    ["nothing", {}, "/decision"],
    ["an answer to an approval", { decision: "answer", values: {} }, "/decision"],
    ["a denial with edits", { decision: "deny", editedArgs: {} }, "/editedArgs"],
    ["edits that are no object", { decision: "approve", digest, editedArgs: [] }, "/editedArgs"],
    ["a number that would change", '{"decision":"answer","values":{"a":9007199254740993}}', "/values/a"],
    ["a decider in the body", { decision: "deny", by: "ceo" }, "/by"],
    ["a reason without end", { decision: "deny", reason: "x".repeat(10_001) }, "/reason"],
  ])("%s", async (_what, body, pointer) => {
    const { requestId } = await startTask(world, "janitor");
    const answer = await decide(requestId, body);
    expect([answer.status, answer.body.error.pointers?.[0]?.pointer]).toEqual([422, pointer]);
    expect((await show(requestId)).status).toBe("open");
    expect(world.stage.ran).toEqual([]);
  });
});

test("of 20 who decide at once exactly one wins, and the others are told who", async () => {
  const { taskId, requestId } = await startTask(world, "janitor");
  const { digest } = await show(requestId);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      i % 2 === 0
        ? decide(requestId, { decision: "approve", digest }, tokenOf("ana"))
        : decide(requestId, { decision: "deny", reason: "no" }),
    ),
  );
  const outcomes = new Set(answers.map(({ status, body }) => `${status} ${body.decision?.outcome}`));
  expect([
    ["200 approved", "409 approved"],
    ["200 denied", "409 denied"],
  ]).toContainEqual([...outcomes].sort());
  await finished(taskId);
  expect(world.stage.ran.length).toBeLessThanOrEqual(1);
});

describe("a task", () => {
  test("that was sent twice under one message id is one task", async () => {
    const body = { agent: "looker", message: "go", messageId: "m-1" };
    const first = await world.call("POST", "/api/tasks", { body });
    const second = await world.call("POST", "/api/tasks", { body });
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(((await first.json()) as TaskView).id).toBe(((await second.json()) as TaskView).id);
    const other = await world.call("POST", "/api/tasks", { body: { ...body, message: "other" } });
    expect(other.status).toBe(409);
  });

  test("keeps the context that the client brings, and is listed by it", async () => {
    const body = { agent: "looker", message: "go", contextId: "my context" };
    const { id } = (await (await world.call("POST", "/api/tasks", { body })).json()) as TaskView;
    await finished(id);
    const list = await world.call("GET", "/api/tasks?contextId=my%20context&state=completed");
    expect(await list.json()).toMatchObject({ tasks: [{ id, agent: "looker", state: "completed" }] });
  });

  test("that waits is canceled at once, its request with it; twice is 409", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const canceled = await world.call("POST", `/api/tasks/${taskId}:cancel`, { body: {} });
    expect([canceled.status, ((await canceled.json()) as TaskView).state]).toEqual([200, "canceled"]);
    expect((await show(requestId)).decision).toMatchObject({ outcome: "canceled" });
    expect((await world.call("POST", `/api/tasks/${taskId}:cancel`, { body: {} })).status).toBe(409);
    expect((await world.call("POST", `/api/tasks/${taskId}:explode`, { body: {} })).status).toBe(404);
  });
});

test("the agents are listed with what is gated", async () => {
  const { agents } = (await (await world.call("GET", "/api/agents")).json()) as { agents: { name: string }[] };
  expect(agents[0]).toEqual({
    name: "janitor",
    description: "Says what its script says.",
    tools: expect.arrayContaining([{ name: "delete_file", gated: true, risk: "medium" }]),
  });
});
