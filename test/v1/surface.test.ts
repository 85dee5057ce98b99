/** `/v1/agents` as DESIGN §5 and §6 have it: forms, states, words, streams, and what it says no to. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { A2AClient } from "../../src/client/index.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { createScriptedAgent, createScriptedTool } from "../../src/testing/index.ts";
import { OWNER_TOKEN, SERVER_CONFIG, startWorld, tokenOf, type World } from "../api/world.ts";
import { type NamedFrame, readNamedFrames } from "./frames.ts";

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world.stop());

// biome-ignore lint/suspicious/noExplicitAny: whatever a server answers
type Any = any;

interface Options {
  readonly agent?: string;
  readonly token?: string;
  readonly configuration?: unknown;
}

async function post(path: string, body: unknown, token?: string): Promise<{ status: number; body: Any }> {
  const response = await world.call("POST", path, { body, ...(token === undefined ? {} : { token }) });
  return { status: response.status, body: await response.json() };
}

const user = (parts: readonly object[], more: object = {}) => ({ role: "user", parts, ...more });
const say = (text: string, more: object = {}) => user([{ text }], more);

function send(request: unknown, { agent = "janitor", token, configuration }: Options = {}) {
  const body = { request, ...(configuration === undefined ? {} : { configuration }) };
  return post(`/v1/agents/${agent}/message:send`, body, token);
}

async function pause(agent = "janitor"): Promise<Any> {
  const { status, body } = await send(say("go"), { agent });
  expect([status, body.task.status.state]).toEqual([200, "TASK_STATE_INPUT_REQUIRED"]);
  return body.task;
}

const open = (method: string, path: string, body?: unknown) =>
  world.call(method, path, body === undefined ? {} : { body });
const stateOf = ({ event, data }: NamedFrame) => [event, data.status?.state ?? data.artifact?.artifactId];

describe("a pause", () => {
  test("is a text for people and one data part, bare, as the seed prints it", async () => {
    const task = await pause();
    expect(Object.keys(task)).toEqual(["id", "contextId", "status", "history", "artifacts"]);
    expect(task.status.message).toMatchObject({ role: "ROLE_AGENT", taskId: task.id, contextId: task.contextId });
    expect(task.status.message.parts).toEqual([
      { text: expect.stringContaining("delete_file") },
      {
        data: {
          interaction_type: "tool_approval",
          tool_name: "delete_file",
          tool_input: expect.any(String),
          options: ["approve", "deny"],
          request_id: `input-${task.id}-1`,
        },
      },
    ]);
    expect(task.artifacts).toEqual([]);
    expect(task.history[0]).toMatchObject({ role: "ROLE_USER", parts: [{ text: "go" }] });
  });

  test("of a question offers its choices", async () => {
    const task = await pause("asker");
    expect(task.status.message.parts[1].data).toMatchObject({
      interaction_type: "user_input",
      options: ["pg", "sqlite"],
      request_id: `input-${task.id}-1`,
    });
    const { body } = await send(say("sqlite", { taskId: task.id }), { agent: "asker" });
    expect(body.task.status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("an answer", () => {
  test.each([
    ["words and data", [{ text: "approve" }, { data: { decision: "approve" } }]],
    ["data in data", [{ text: "approve" }, { data: { data: { decision: "approve" } } }]],
    ["data alone", [{ data: { decision: "approve" } }]],
    ["a word", [{ text: "approve" }]],
    ["a word, shouted", [{ text: " YES " }]],
    ["the standard form", [{ data: { type: "a2a.input.response", values: { decision: "approve" } } }]],
  ])("in %s approves", async (_what, parts) => {
    const { id } = await pause();
    const { body } = await send(user(parts, { taskId: id }));
    expect(body.task.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { role: "ROLE_AGENT", parts: [{ text: "All done." }] },
    });
    expect(world.stage.ran).toEqual([{ path: "old.csv" }]);
  });

  test.each([
    ["words and data", [{ text: "deny" }, { data: { decision: "deny" } }]],
    ["data against the words", [{ text: "approve" }, { data: { decision: "deny" } }]],
    ["a word", [{ text: "no" }]],
  ])("in %s denies", async (_what, parts) => {
    const { id } = await pause();
    expect((await send(user(parts, { taskId: id, role: "ROLE_USER" }))).body.task.status.state).toBe(
      "TASK_STATE_COMPLETED",
    );
    expect(world.stage.ran).toEqual([]);
  });

  test.each(["disapprove", "do not approve", "now", "approve it", "I approve", "approve!"])(
    "%j is none, and the task goes on waiting",
    async (text) => {
      const { id } = await pause();
      const { status, body } = await send(say(text, { taskId: id }));
      expect([status, body.task.status.state]).toEqual([200, "TASK_STATE_INPUT_REQUIRED"]);
      expect(body.task.metadata).toBeUndefined();
      expect(world.stage.ran).toEqual([]);
    },
  );

  test.each([
    ["an unknown decision", { decision: "maybe" }, "/request/parts/0/data/decision"],
    ["a misspelt key", { decision: "approve", editedArgs: {} }, "/request/parts/0/data/editedArgs"],
    ["a request of another task", { decision: "approve", request_id: "input-x-1" }, "/request/parts/0/data"],
  ])("with %s is 400, with its place, and the pause stays", async (_what, data, pointer) => {
    const { id } = await pause();
    const { status, body } = await send(user([{ data }], { taskId: id }));
    expect([status, body.error, body.pointers[0].pointer]).toEqual([400, expect.any(String), pointer]);
    expect((await world.runtime.load({ tenant: "default", id })).task?.requests[0]?.decision).toBeUndefined();
    expect(world.stage.ran).toEqual([]);
  });

  test("to a task that is over is its task and who decided, not an error", async () => {
    const { id } = await pause();
    const first = await send(say("deny", { taskId: id }));
    for (const request of [say("approve", { taskId: id }), user([{ data: { decision: "approve" } }], { taskId: id })]) {
      const { status, body } = await send(request);
      expect([status, body.task.status]).toEqual([200, first.body.task.status]);
      expect(body.task.metadata["urn:holdpoint:hitl:v1"].refused).toMatchObject([
        { requestId: `input-${id}-1`, code: "already-decided", outcome: "denied", by: "owner" },
      ]);
    }
    const chat = await send(say("and now something else", { taskId: id }));
    expect([chat.status, chat.body.task.status]).toEqual([200, first.body.task.status]);
    expect(world.stage.ran).toEqual([]);
  });

  test("sent twice with its id counts once and gives the same; with another body it is 400", async () => {
    const { id } = await pause();
    const answer = say("approve", { taskId: id, messageId: "m1" });
    const first = await send(answer);
    expect((await send(answer)).body).toEqual(first.body);
    expect(world.stage.ran).toHaveLength(1);
    expect((await send(say("deny", { taskId: id, messageId: "m1" }))).status).toBe(400);
  });

  test("without the scope to decide is 403 and changes nothing", async () => {
    const { id } = await pause();
    const { status, body } = await send(say("approve", { taskId: id }), { token: tokenOf("submitter") });
    expect([status, body]).toEqual([403, { error: expect.any(String), reason: "DECIDE_SCOPE_REQUIRED" }]);
    const chat = await send(say("hello there", { taskId: id }), { token: tokenOf("decider") });
    expect([chat.status, chat.body.reason]).toEqual([403, "SCOPE_REQUIRED"]);
    expect(world.stage.ran).toEqual([]);
    // Whoever may decide, and nothing else, decides and sees what came of it.
    const decided = await send(say("approve", { taskId: id }), { token: tokenOf("decider") });
    expect([decided.status, decided.body.task.status.state]).toEqual([200, "TASK_STATE_COMPLETED"]);
  });

  test("by whoever asked is 403 where the configuration says so", async () => {
    const auth = { ...SERVER_CONFIG.auth, selfApproval: "deny" as const };
    await world.stop();
    world = startWorld({ server: { auth } });
    const { id } = await pause();
    const { status, body } = await send(say("approve", { taskId: id }));
    expect([status, body.reason]).toEqual([403, "SELF_APPROVAL_DENIED"]);
    expect(world.stage.ran).toEqual([]);
    expect((await send(say("approve", { taskId: id }), { token: tokenOf("ana") })).status).toBe(200);
    expect(world.stage.ran).toHaveLength(1);
  });

  test("without an id is no answer where the configuration says so", async () => {
    await world.stop();
    world = startWorld({ server: { answersWithoutId: "deny" } });
    const { id } = await pause();
    const vague = await send(say("approve", { taskId: id }));
    expect(vague.body.task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(vague.body.task.metadata["urn:holdpoint:hitl:v1"].refused).toMatchObject([{ code: "ambiguous" }]);
    const named = user([{ data: { decision: "approve", request_id: `input-${id}-1` } }], { taskId: id });
    expect((await send(named)).body.task.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("with another context is 400", async () => {
    const { id, contextId } = await pause();
    expect((await send(say("approve", { taskId: id, contextId: "other" }))).status).toBe(400);
    expect(world.stage.ran).toEqual([]);
    expect((await send(say("approve", { taskId: id, contextId }))).status).toBe(200);
  });
});

describe("several questions", () => {
  const ran: unknown[] = [];
  beforeEach(async () => {
    await world.stop();
    ran.length = 0;
    const remove = createScriptedTool({
      name: "delete_file",
      gated: true,
      run: async ({ args }) => {
        ran.push(args.path);
        return { outcome: "done", result: "deleted" };
      },
    });
    const calls = ["a", "b", "c"].map((path) => ({ tool: "delete_file", args: { path } }));
    const turns = [
      { text: "", calls },
      { text: "All done.", calls: [] },
    ];
    world = startWorld({ agents: [createScriptedAgent("several", turns, [remove])] });
  });

  test("are asked and answered one at a time, the lowest first; a name picks another", async () => {
    const task = await pause("several");
    const asked = ({ status }: Any) => status.message.parts.slice(1).map(({ data }: Any) => data.request_id);
    expect(asked(task)).toEqual([`input-${task.id}-1`]);
    const third = user([{ data: { decision: "deny", request_id: `input-${task.id}-3` } }], { taskId: task.id });
    expect(asked((await send(third, { agent: "several" })).body.task)).toEqual([`input-${task.id}-1`]);
    // Sent again because the answer got lost, it still means the first.
    for (const _try of [1, 2, 3]) {
      const first = await send(say("approve", { taskId: task.id, messageId: "m1" }), { agent: "several" });
      expect(asked(first.body.task)).toEqual([`input-${task.id}-2`]);
    }
    expect(ran).toEqual([]);
    // Somebody else closed an earlier one: a late "approve" of theirs must not hit the next.
    const late = await send(say("approve", { taskId: task.id }), { agent: "several", token: tokenOf("ana") });
    expect(late.body.task.metadata["urn:holdpoint:hitl:v1"].refused).toMatchObject([{ code: "ambiguous" }]);
    const second = await send(say("approve", { taskId: task.id }), { agent: "several" });
    expect(second.body.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(ran).toEqual(["a", "b"]);
  });

  test("a message sent again gives what it gave, whatever was answered since", async () => {
    const { id } = await pause("several");
    const answer = say("approve", { taskId: id, messageId: "m1" });
    const ana = { agent: "several", token: tokenOf("ana") };
    await send(answer, ana);
    // By somebody else: from now on a word of ana's without an id would mean nothing.
    const other = user([{ data: { decision: "deny", request_id: `input-${id}-2` } }], { taskId: id });
    const { task } = (await send(other, { agent: "several" })).body;
    expect((await send(answer, ana)).body.task).toEqual(task);
  });
});

describe("waiting", () => {
  test("without blocking the pause still comes at once, and long work is not waited for", async () => {
    const { body } = await send(say("go"), { configuration: { blocking: false } });
    expect(body.task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await world.stop();
    const thinkSlowly = async () => {
      await systemClock.sleep(3000);
      return { text: "At last.", calls: [] };
    };
    const slow = { ...createScriptedAgent("slow", [], []), think: thinkSlowly };
    world = startWorld({ agents: [slow] });
    const before = performance.now();
    const sent = await send(say("go"), { agent: "slow", configuration: { blocking: false } });
    const tookMs = performance.now() - before;
    expect(sent.body.task.status.state).toBe("TASK_STATE_WORKING");
    expect(tookMs).toBeGreaterThan(900);
    expect(tookMs).toBeLessThan(2500);
  });
});

describe("tasks", () => {
  test("are shown and listed by their agent, page by page", async () => {
    const first = await pause();
    const second = await pause();
    await send(say("deny", { taskId: first.id }));
    const read = async (path: string): Promise<Any> => (await open("GET", `/v1/agents/janitor${path}`)).json();
    expect((await read(`/tasks/${second.id}`)).task).toEqual(second);
    const page = await read("/tasks?pageSize=1");
    expect([page.tasks.length, Object.keys(page)]).toEqual([1, ["tasks", "nextPageToken"]]);
    const rest = await read(`/tasks?pageSize=1&pageToken=${encodeURIComponent(page.nextPageToken)}`);
    expect([...page.tasks, ...rest.tasks].map(({ id }) => id).sort()).toEqual([first.id, second.id].sort());
    const waiting = await read("/tasks?status=TASK_STATE_INPUT_REQUIRED");
    expect(waiting.tasks).toEqual([second]);
    expect((await (await open("GET", "/v1/agents/asker/tasks")).json()) as Any).toEqual({
      tasks: [],
      nextPageToken: "",
    });
    expect((await open("GET", "/v1/agents/janitor/tasks?pageSize=0")).status).toBe(400);
  });

  test("are canceled, spelt as this surface spells it; what is over is shown as it is", async () => {
    const { id } = await pause();
    const canceled = await post(`/v1/agents/janitor/tasks/${id}:cancel`, {});
    expect([canceled.status, canceled.body.task.status.state]).toEqual([200, "TASK_STATE_CANCELLED"]);
    expect((await post(`/v1/agents/janitor/tasks/${id}:cancel`, {})).body).toEqual(canceled.body);
    const listed = (await (await open("GET", "/v1/agents/janitor/tasks?status=TASK_STATE_CANCELLED")).json()) as Any;
    expect(listed.tasks).toEqual([canceled.body.task]);
    const late = await send(say("approve", { taskId: id }));
    expect([late.status, late.body.task.status.state]).toEqual([200, "TASK_STATE_CANCELLED"]);
    expect(world.stage.ran).toEqual([]);
    const done = await pause();
    await send(say("approve", { taskId: done.id }));
    const kept = await post(`/v1/agents/janitor/tasks/${done.id}:cancel`, {});
    expect([kept.status, kept.body.task.status.state]).toEqual([200, "TASK_STATE_COMPLETED"]);
  });

  test("need no body to be canceled", async () => {
    const { id } = await pause();
    const response = await world.app.request(`http://127.0.0.1:4141/v1/agents/janitor/tasks/${id}:cancel`, {
      method: "POST",
      headers: { authorization: `Bearer ${OWNER_TOKEN}` },
    });
    expect(response.status).toBe(200);
  });
});

describe("a stream", () => {
  test("of a message ends at the pause, and the answer's at the end", async () => {
    const stream = (request: object) => open("POST", "/v1/agents/janitor/message:stream", { request });
    const frames = await readNamedFrames(await stream(say("go")));
    expect(frames[0]?.event).toBe("task");
    const last = frames.at(-1);
    expect(last && stateOf(last)).toEqual([expect.any(String), "TASK_STATE_INPUT_REQUIRED"]);
    const { id } = frames[0]?.data ?? {};
    const answered = await readNamedFrames(await stream(say("approve", { taskId: id })));
    const end = answered.at(-1);
    expect(end && stateOf(end)).toEqual([expect.any(String), "TASK_STATE_COMPLETED"]);
    const late = await readNamedFrames(await stream(say("deny", { taskId: id })));
    expect(late.map(stateOf)).toEqual([["task", "TASK_STATE_COMPLETED"]]);
    expect(late[0]?.data.metadata["urn:holdpoint:hitl:v1"].refused).toHaveLength(1);
  });

  test.each(["GET", "POST"])("of a subscription by %s goes through the pause to the end", async (method) => {
    const { id, contextId } = await pause();
    const response = await open(method, `/v1/agents/janitor/tasks/${id}:subscribe`);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const reading = readNamedFrames(response);
    await send(say("approve", { taskId: id }));
    const frames = await reading;
    expect(stateOf(frames[0] as NamedFrame)).toEqual(["task", "TASK_STATE_INPUT_REQUIRED"]);
    expect(frames.slice(1).every(({ event }) => event === "status_update")).toBe(true);
    expect(frames.slice(1).map(({ data }) => Object.keys(data))).toEqual(
      frames.slice(1).map(() => ["taskId", "contextId", "status"]),
    );
    expect(frames.at(-1)?.data).toMatchObject({ taskId: id, contextId, status: { state: "TASK_STATE_COMPLETED" } });
    expect(new Set(frames.map((frame) => frame.id)).size).toBe(frames.length);
    const again = await world.call(method, `/v1/agents/janitor/tasks/${id}:subscribe`, {
      headers: { "last-event-id": frames.at(-2)?.id },
    });
    expect((await readNamedFrames(again)).at(-1)).toEqual(frames.at(-1));
  });

  test("of a task that is over is its task, and ends", async () => {
    const { id } = await pause();
    await post(`/v1/agents/janitor/tasks/${id}:cancel`, {});
    const frames = await readNamedFrames(await open("GET", `/v1/agents/janitor/tasks/${id}:subscribe`));
    expect(frames.map(stateOf)).toEqual([["task", "TASK_STATE_CANCELLED"]]);
  });
});

describe("what is not there", () => {
  test("an agent is told with those that are", async () => {
    const available = [...world.runtime.agents.keys()].join(", ");
    const answer = { error: `Agent 'nobody' not found. Available agents: [${available}]` };
    for (const [method, path] of [
      ["POST", "/message:send"],
      ["POST", "/message:stream"],
      ["GET", "/tasks"],
      ["GET", "/tasks/x"],
      ["POST", "/tasks/x:cancel"],
      ["GET", "/tasks/x:subscribe"],
    ] as const) {
      const response = await open(method, `/v1/agents/nobody${path}`, method === "POST" ? {} : undefined);
      expect([path, response.status, await response.json()]).toEqual([path, 404, answer]);
    }
  });

  test("a task is told with its id, also when it is another agent's or tenant's", async () => {
    const { id } = await pause();
    const ask = async (agent: string, task: string, token?: string) => {
      const told = [];
      for (const [method, path, body] of [
        ["POST", "/message:send", { request: say("approve", { taskId: task }) }],
        ["POST", "/message:stream", { request: say("approve", { taskId: task }) }],
        ["GET", `/tasks/${task}`, undefined],
        ["POST", `/tasks/${task}:cancel`, {}],
        ["GET", `/tasks/${task}:subscribe`, undefined],
        ["POST", `/tasks/${task}:subscribe`, {}],
      ] as const) {
        const init = { ...(token ? { token } : {}), ...(body ? { body } : {}) };
        const response = await world.call(method, `/v1/agents/${agent}${path}`, init);
        told.push([response.status, await response.json()]);
      }
      return told;
    };
    const none = (task: string) => Array(6).fill([404, { error: "Task not found", task_id: task }]);
    expect(await ask("janitor", "no-such-task")).toEqual(none("no-such-task"));
    expect(await ask("asker", id)).toEqual(none(id));
    expect(await ask("janitor", id, tokenOf("stranger"))).toEqual(none(id));
    expect(world.stage.ran).toEqual([]);
    expect((await (await open("GET", `/v1/agents/janitor/tasks/${id}`)).json()) as Any).toMatchObject({
      task: { status: { state: "TASK_STATE_INPUT_REQUIRED" } },
    });
  });
});

test("the agents are listed with their addresses", async () => {
  const { agents } = (await (await open("GET", "/v1/agents")).json()) as Any;
  expect(agents.map(({ name }: Any) => name)).toEqual([...world.runtime.agents.keys()]);
  expect(agents[0]).toEqual({
    name: "janitor",
    description: expect.any(String),
    url: "http://127.0.0.1:4141/v1/agents/janitor",
  });
});

test.each([
  ["nothing", {}, "/request"],
  ["a list", [], ""],
  ["no object", { request: 5 }, "/request"],
  ["no parts", { request: { role: "user" } }, "/request/parts"],
  ["empty parts", { request: user([]) }, "/request/parts"],
  ["an empty part", { request: user([{}]) }, "/request/parts/0"],
  ["two things in a part", { request: user([{ text: "a", data: {} }]) }, "/request/parts/0"],
  ["a file", { request: user([{ url: "http://127.0.0.1/x" }]) }, "/request/parts/0"],
  ["a number as text", { request: user([{ text: 5 }]) }, "/request/parts/0/text"],
  ["another role", { request: { role: "agent", parts: [{ text: "a" }] } }, "/request/role"],
  ["no role", { request: { parts: [{ text: "a" }] } }, "/request/role"],
  ["a task that is no text", { request: say("approve", { taskId: 5 }) }, "/request/taskId"],
  ["a word for blocking", { request: say("a"), configuration: { blocking: "no" } }, "/configuration/blocking"],
  ["an answer without its task", { request: user([{ data: { requestId: "input-x-1" } }]) }, "/request/taskId"],
])("%s is 400, with its place, and begins nothing", async (_what, body, pointer) => {
  const told = await post("/v1/agents/janitor/message:send", body);
  expect([told.status, told.body.error, told.body.pointers?.[0]?.pointer]).toEqual([400, expect.any(String), pointer]);
  expect((await world.runtime.store.listTasks({ tenant: "default" })).items).toEqual([]);
});

test("data may be nested, as protojson has it, and is kept bare", async () => {
  const { body } = await send(user([{ text: "look" }, { data: { data: { page: 1 } } }, { data: { page: 2 } }]));
  expect(body.task.history[0].parts).toEqual([{ text: "look" }, { data: { page: 1 } }, { data: { page: 2 } }]);
});

test("whoever may only send is not let in to listen", async () => {
  const { id } = await pause();
  for (const method of ["GET", "POST"]) {
    const path = `/v1/agents/janitor/tasks/${id}:subscribe`;
    const response = await world.call(method, path, { token: tokenOf("submitter") });
    expect([response.status, await response.json()]).toMatchObject([403, { reason: "SCOPE_REQUIRED" }]);
  }
});

test("of many who answer at once one wins, and the others are told who", async () => {
  for (let round = 0; round < 10; round++) {
    const { id } = await pause();
    const before = world.stage.ran.length;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        send(say(i % 2 ? "approve" : "deny", { taskId: id }), { token: i % 3 ? OWNER_TOKEN : tokenOf("ana") }),
      ),
    );
    await readNamedFrames(await open("GET", `/v1/agents/janitor/tasks/${id}:subscribe`));
    const { task } = await world.runtime.load({ tenant: "default", id });
    const decision = task?.requests[0]?.decision;
    expect(world.stage.ran.length - before).toBe(decision?.outcome === "approved" ? 1 : 0);
    const refused = answers.flatMap(({ status, body }) => {
      // Whoever loses is told at once, and may see the winner's work under way.
      expect([status, body.task.status.state]).toEqual([200, expect.stringMatching(/_(COMPLETED|WORKING)$/)]);
      return body.task.metadata?.["urn:holdpoint:hitl:v1"].refused ?? [];
    });
    expect(refused.length).toBeGreaterThanOrEqual(10);
    for (const lost of refused) {
      const winner = { outcome: decision?.outcome, by: decision?.principal.name };
      expect(lost).toMatchObject({ requestId: `input-${id}-1`, code: "already-decided", ...winner });
    }
  }
});

test("a task named in the other spelling is no new task", async () => {
  const { id } = await pause();
  const { body } = await send({ role: "user", task_id: id, parts: [{ text: "approve" }] });
  expect([body.task.id, body.task.status.state]).toEqual([id, "TASK_STATE_COMPLETED"]);
});

test("A2AClient sends and tells what was refused", async () => {
  const fetch = async (url: string, init: object) => world.app.request(url, init as RequestInit);
  const client = new A2AClient("http://127.0.0.1:4141/", { token: OWNER_TOKEN, fetch });
  const task = await client.sendMessage("janitor", { role: "user", parts: [{ text: "go" }] });
  expect(task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  const lost = client.sendMessage("nobody", { role: "user", parts: [{ text: "go" }] });
  await expect(lost).rejects.toMatchObject({ status: 404, code: "refused", message: expect.stringMatching(/^Agent/) });
  const stranger = new A2AClient("http://127.0.0.1:4141", { token: "wrong", fetch });
  await expect(stranger.sendMessage("janitor", { role: "user", parts: [] })).rejects.toMatchObject({
    status: 401,
    code: "token-required",
  });
  const away = new A2AClient("http://127.0.0.1:1", { token: "x" });
  await expect(away.sendMessage("a", { role: "user", parts: [] })).rejects.toMatchObject({ code: "unreachable" });
});
