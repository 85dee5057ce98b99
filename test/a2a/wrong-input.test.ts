/** What is wrong gets a typed protocol error: never a 5xx, never a change. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTask, startWorld, tokenOf, type World } from "../api/world.ts";
import { userMessage } from "./wire.ts";

let world: World;
let taskId: string;
let before: string;
beforeAll(async () => {
  world = startWorld();
  ({ taskId } = await startTask(world, "janitor"));
  before = await snapshot();
});
afterAll(async () => {
  expect(await snapshot()).toBe(before);
  expect(world.errors).toEqual([]);
  await world.stop();
});

async function snapshot(): Promise<string> {
  return JSON.stringify(await world.runtime.store.listTasks({ tenant: "default" }));
}

const PARTS = [{ text: "x" }];
const send = (message: unknown, rest: object = {}) => ({ message, ...rest });
const valid = (more: object = {}) => ({ messageId: "wrong", role: "ROLE_USER", parts: PARTS, ...more });

/** Values of which none is an id, a list of parts, an object … */
const ODD: readonly unknown[] = [0, -1, 1.5, true, "", "x".repeat(300), [], [[]], {}, { a: 1 }, [null]];
const NOT_TEXT: readonly unknown[] = [0, 1, true, [], {}, [null]];
const NOT_OBJECT: readonly unknown[] = [1, true, "x", [], [1]];

const PARAMS: readonly (readonly [string, unknown])[] = [
  ["SendMessage", {}],
  ...[1, "x", [], null, true].map((message) => ["SendMessage", send(message)] as const),
  ...NOT_TEXT.concat("", "x".repeat(300), null).map(
    (messageId) => ["SendMessage", send(valid({ messageId }))] as const,
  ),
  ...["user", "ROLE_AGENT", "", 0, 2, 3, null, {}, "ROLE_UNSPECIFIED"].map(
    (role) => ["SendMessage", send(valid({ role }))] as const,
  ),
  ...[null, [], {}, "x", 1, [null], [1], ["x"], [[]], [{}]].map(
    (parts) => ["SendMessage", send(valid({ parts }))] as const,
  ),
  ...[
    { text: 1 },
    { text: {} },
    { text: "a", data: {} },
    { text: "a", raw: "" },
    { raw: "not base64!" },
    { raw: 1 },
    { url: "" },
    { url: 5 },
    { data: null },
    { text: "x", metadata: "y" },
    { text: "x", mediaType: 5 },
    { kind: "text" },
    { text: null },
  ].map((part) => ["SendMessage", send(valid({ parts: [part] }))] as const),
  ...NOT_TEXT.map((id) => ["SendMessage", send(valid({ taskId: id }))] as const),
  ...NOT_TEXT.map((id) => ["SendMessage", send(valid({ contextId: id }))] as const),
  ...NOT_OBJECT.map((metadata) => ["SendMessage", send(valid({ metadata }))] as const),
  ...[1, "x", {}, [1], [null]].map((extensions) => ["SendMessage", send(valid({ extensions }))] as const),
  ...NOT_OBJECT.map((configuration) => ["SendMessage", send(valid(), { configuration })] as const),
  ...[-1, 1.5, "x", {}, 2 ** 40].map(
    (historyLength) => ["SendMessage", send(valid(), { configuration: { historyLength } })] as const,
  ),
  ...[1, "yes", {}, []].map(
    (returnImmediately) => ["SendMessage", send(valid(), { configuration: { returnImmediately } })] as const,
  ),
  ["SendMessage", send(valid(), { tenant: "elsewhere" })],
  ["SendMessage", send(valid(), { tenant: 5 })],
  ...ODD.map((id) => ["GetTask", { id }] as const),
  ...[-1, 0.5, "many", {}].map((historyLength) => ["GetTask", { id: "x", historyLength }] as const),
  ...ODD.map((id) => ["CancelTask", { id }] as const),
  ...ODD.map((id) => ["SubscribeToTask", { id }] as const),
  ...[0, 101, -1, "x", {}, 1.5].map((pageSize) => ["ListTasks", { pageSize }] as const),
  ...["nonsense", "W10", "bm90IGpzb24", "x".repeat(2000)].map((pageToken) => ["ListTasks", { pageToken }] as const),
  ...["working", "TASK_STATE_DONE", 99, {}].map((status) => ["ListTasks", { status }] as const),
  ...["yesterday", "2026-13-01T00:00:00Z", 5, {}].map((at) => ["ListTasks", { statusTimestampAfter: at }] as const),
  ["GetExtendedAgentCard", { tenant: "elsewhere" }],
];

async function post(path: string, body: unknown, headers: object = {}): Promise<{ status: number; body: never }> {
  const response = await world.call("POST", path, { headers: { "a2a-version": "1.0", ...headers }, body });
  const received = await response.text();
  return { status: response.status, body: JSON.parse(received) as never };
}

describe("parameters of JSON-RPC", () => {
  test.each(PARAMS.map(([method, params]) => [method, JSON.stringify(params).slice(0, 80), params] as const))(
    "%s %s",
    async (method, _shown, params) => {
      const { status, body } = await post("/a2a/janitor", { jsonrpc: "2.0", id: "a", method, params });
      expect(status).toBe(200);
      const { id, error } = body as { id: string; error: { code: number; data: unknown[] } };
      expect([id, [-32602, -32001].includes(error.code)]).toEqual(["a", true]);
      expect(error.data.length).toBeGreaterThan(0);
    },
  );
});

describe("the same over HTTP+JSON", () => {
  const sends = PARAMS.filter(([method]) => method === "SendMessage");
  test.each(sends.map(([, params]) => [JSON.stringify(params).slice(0, 80), params] as const))(
    "message:send %s",
    async (_shown, params) => {
      const { status, body } = await post("/a2a/janitor/message:send", params);
      expect(body).toMatchObject({ error: { code: status, status: expect.any(String), details: expect.any(Array) } });
      expect(status).toBe(400);
    },
  );

  test.each([
    ["GET", "/tasks?pageSize=0", 400],
    ["GET", "/tasks?pageSize=many", 400],
    ["GET", "/tasks?status=working", 400],
    ["GET", "/tasks?includeArtifacts=maybe", 400],
    ["GET", "/tasks?statusTimestampAfter=now", 400],
    ["GET", "/tasks?pageToken=nonsense", 400],
    ["GET", "/tasks/nothing", 404],
    ["GET", "/tasks/nothing:subscribe", 404],
    ["GET", "/tasks/x?historyLength=-1", 400],
    ["GET", "/tasks/%00", 404],
    ["GET", "/tasks/x:dance", 404],
    ["POST", "/tasks/nothing:cancel", 404],
    ["POST", "/tasks/x", 404],
    ["POST", "/tasks/x:dance", 404],
    ["GET", "/elsewhere/tasks", 400],
    ["GET", "/tasks/x/pushNotificationConfigs", 400],
    ["DELETE", "/tasks/x/pushNotificationConfigs/y", 400],
  ])("%s %s is %i", async (method, path, status) => {
    const response = await world.call(method, `/a2a/janitor${path}`, { headers: { "a2a-version": "1.0" } });
    expect([response.status, await response.json()]).toEqual([
      status,
      { error: { code: status, status: expect.any(String), message: expect.any(String), details: expect.any(Array) } },
    ]);
  });
});

describe("what is no request", () => {
  test.each([
    ["nothing", "", -32700],
    ["no JSON", "{", -32700],
    ["a batch", [{ jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } }], -32600],
    ["an empty batch", [], -32600],
    ["a text", '"x"', -32600],
    ["a number", "5", -32600],
    ["null", "null", -32600],
    ["another version", { jsonrpc: "1.0", id: 1, method: "GetTask", params: { id: "x" } }, -32600],
    ["no version", { id: 1, method: "GetTask", params: { id: "x" } }, -32600],
    ["no method", { jsonrpc: "2.0", id: 1, params: {} }, -32600],
    ["a method that is no text", { jsonrpc: "2.0", id: 1, method: 5, params: {} }, -32600],
    ["an id that is an object", { jsonrpc: "2.0", id: {}, method: "GetTask", params: { id: "x" } }, -32600],
    ["an id that is a fraction", { jsonrpc: "2.0", id: 1.5, method: "GetTask", params: { id: "x" } }, -32600],
    ["parameters by position", { jsonrpc: "2.0", id: 1, method: "GetTask", params: ["x"] }, -32602],
    ["parameters that are a text", { jsonrpc: "2.0", id: 1, method: "GetTask", params: "x" }, -32602],
    ["an unknown method", { jsonrpc: "2.0", id: 1, method: "DoMagic", params: {} }, -32601],
    ["a method of 0.3", { jsonrpc: "2.0", id: 1, method: "message/send", params: {} }, -32601],
    ["a name that objects inherit", { jsonrpc: "2.0", id: 1, method: "toString", params: {} }, -32601],
    ["a key twice", '{"jsonrpc":"2.0","id":1,"id":2,"method":"GetTask","params":{"id":"x"}}', -32600],
    ["a prototype", '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","__proto__":{}}}', -32600],
    ["a lone surrogate", '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\ud800"}}', -32600],
    [
      "great depth",
      `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":${"[".repeat(9999)}${"]".repeat(9999)}}`,
      -32600,
    ],
    ["push", { jsonrpc: "2.0", id: 1, method: "ListTaskPushNotificationConfigs", params: { taskId: "x" } }, -32003],
  ])("%s", async (_what, body, code) => {
    const { status, body: reply } = await post("/a2a/janitor", body);
    expect([status, reply]).toMatchObject([200, { jsonrpc: "2.0", error: { code } }]);
  });

  test("more than fits", async () => {
    const response = await world.call("POST", "/a2a/janitor", { body: `"${"x".repeat(2 ** 20)}"` });
    expect(response.status).toBe(413);
  });
});

describe("versions", () => {
  const body = { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } };
  const legacy = { jsonrpc: "2.0", id: 1, method: "tasks/get", params: { id: "x" } };

  test.each([
    ["1.0", body, -32001],
    ["1.0.1", body, -32001],
    [" 1.0 ", body, -32001],
    ["", legacy, -32001],
    ["0.3", legacy, -32001],
    ["0.3.0", legacy, -32001],
    ["1.1", body, -32009],
    ["2.0", body, -32009],
    ["1", body, -32009],
    ["0.2", legacy, -32009],
    ["nonsense", body, -32009],
    ["1.0, 0.3", body, -32009],
  ])("%j in the header", async (version, request, code) => {
    const { body: reply } = await post("/a2a/janitor", request, { "a2a-version": version });
    expect(reply).toMatchObject({ error: { code } });
  });

  test.each([
    ["?A2A-Version=1.0", body, -32001],
    ["?a2a-version=1.0.0", body, -32001],
    ["?A2A-Version=", legacy, -32001],
    ["?A2A-Version=7", body, -32009],
  ])("%s", async (query, request, code) => {
    const { body: reply } = await post(`/a2a/janitor${query}`, request, { "a2a-version": "" });
    expect(reply).toMatchObject({ error: { code } });
  });

  test("0.3 is not spoken where it is switched off", async () => {
    const modern = startWorld({ server: { a2a: { profile: "1.0.1", legacy: false, messageIds: "unique" } } });
    const response = await modern.call("POST", "/a2a/janitor", { body: legacy });
    expect(await response.json()).toMatchObject({ error: { code: -32009 } });
    await modern.stop();
  });
});

describe("content types", () => {
  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
    "application/jsonx",
  ])("%j is not taken", async (type) => {
    const rpc = await post("/a2a/janitor", {}, { "content-type": type });
    expect([rpc.status, rpc.body]).toMatchObject([415, { error: { code: -32005 } }]);
    const rest = await post("/a2a/janitor/message:send", {}, { "content-type": type });
    expect(rest.status).toBe(400);
  });

  test("of a file that no agent takes", async () => {
    const message = userMessage([{ raw: "AAAA", mediaType: "image/png" }]);
    const { body } = await post("/a2a/janitor", { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } });
    expect(body).toMatchObject({ error: { code: -32005 } });
  });
});

describe("both error profiles", () => {
  test.each([
    ["1.0.0", 409, "application/json", 415],
    ["1.0.1", 400, "application/a2a+json", 400],
  ] as const)("%s", async (profile, notCancelable, type, contentType) => {
    const other = startWorld({ server: { a2a: { profile, legacy: true, messageIds: "unique" } } });
    const { taskId: over } = await startTask(other, "looker");
    const headers = { "a2a-version": "1.0" };
    const canceled = await other.call("POST", `/a2a/looker/tasks/${over}:cancel`, { headers, body: {} });
    expect([canceled.status, canceled.headers.get("content-type")]).toEqual([notCancelable, type]);
    const wrong = await other.call("POST", "/a2a/looker/message:send", {
      headers: { ...headers, "content-type": "text/plain" },
      body: "x",
    });
    expect(wrong.status).toBe(contentType);
    const got = await other.call("GET", `/a2a/looker/tasks/${over}`, { headers });
    expect([got.status, got.headers.get("content-type")]).toEqual([200, type]);
    await other.stop();
  });
});

test("an agent that is not there is nothing to talk to", async () => {
  const { status, body } = await post("/a2a/nobody", { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } });
  expect([status, body]).toMatchObject([200, { error: { code: -32601 } }]);
  const rest = await world.call("GET", "/a2a/nobody/tasks", { headers: { "a2a-version": "1.0" } });
  expect(rest.status).toBe(404);
});

test("each method asks for its own scope", async () => {
  const message = userMessage([{ text: "x" }], { taskId });
  for (const [method, params, needed] of [
    ["GetTask", { id: taskId }, "task:read"],
    ["ListTasks", {}, "task:read"],
    ["SubscribeToTask", { id: taskId }, "task:read"],
    ["GetExtendedAgentCard", {}, "task:read"],
    ["CancelTask", { id: taskId }, "task:submit"],
    ["SendMessage", { message }, "task:submit"],
    ["SendStreamingMessage", { message }, "task:submit"],
  ] as const) {
    const response = await world.call("POST", "/a2a/janitor", {
      token: tokenOf("admin"),
      headers: { "a2a-version": "1.0" },
      body: { jsonrpc: "2.0", id: 1, method, params },
    });
    expect([method, await response.json()]).toMatchObject([
      method,
      { error: { code: -32004, data: [{ reason: "SCOPE_REQUIRED", metadata: { scope: needed } }] } },
    ]);
  }
});
