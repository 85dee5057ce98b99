/** `tck:serve --legacy`: what the mandatory category of the 0.3 TCK asks for, over JSON-RPC. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readFrames } from "../a2a/wire.ts";
import { type SystemUnderTest, startSystemUnderTest } from "../tck/system-under-test.ts";
import { createRpcClient, type Received, tckMessage } from "./client.ts";

let system: SystemUnderTest;
let count = 0;
beforeAll(async () => {
  system = await startSystemUnderTest({ port: 0, legacy: true, workMs: 300 });
});
afterAll(() => system.close());

const post = (body: string) =>
  fetch(system.agentUrl, { method: "POST", body, headers: { "content-type": "application/json" } });

async function rpc(method: string, params: object): Promise<Received> {
  const response = await post(JSON.stringify({ jsonrpc: "2.0", id: ++count, method, params }));
  expect(response.status).toBe(200);
  return response.json();
}

const say = (text: string, more: object = {}) => ({
  message: { kind: "message", messageId: `m-${++count}`, role: "user", parts: [{ kind: "text", text }], ...more },
});

test("the card has every field that 0.3 requires, and asks for no credential", async () => {
  for (const url of [system.url, system.agentUrl]) {
    const response = await fetch(`${url}/.well-known/agent-card.json`);
    const card: Received = await response.json();
    expect(card).toMatchObject({
      protocolVersion: expect.stringMatching(/^0\.3/),
      name: expect.any(String),
      description: expect.any(String),
      url: system.agentUrl,
      preferredTransport: "JSONRPC",
      version: expect.any(String),
      capabilities: { streaming: true },
      defaultInputModes: ["*/*"],
      defaultOutputModes: expect.any(Array),
      skills: [{ id: expect.any(String), name: expect.any(String), description: expect.any(String), tags: ["agent"] }],
    });
    for (const name of ["security", "securitySchemes", "securityRequirements", "supportsAuthenticatedExtendedCard"]) {
      expect(card).not.toHaveProperty(name);
    }
    expect(card.capabilities).not.toHaveProperty("extendedAgentCard");
  }
});

test("the card has no word that the TCK takes for a leak, when it is asked for by name", async () => {
  const card = await (
    await fetch(`${system.url.replace("127.0.0.1", "localhost")}/.well-known/agent-card.json`)
  ).text();
  expect(card.match(/api[_-]?key|secret|token|password|credential|127\.0\.0\.1|\b10\./gi)).toBeNull();
  expect(card.match(/(internal|private|admin|debug|test).*(url|endpoint|host)/i)).toBeNull();
});

describe("a message that names no part of the TCK", () => {
  test("pauses its task, which goes on with every further one and can be canceled", async () => {
    const { result: paused } = await rpc("message/send", say("hello"));
    expect(paused).toMatchObject({ kind: "task", status: { state: "input-required" } });
    for (const text of ["one", "two", "three"]) {
      const { result } = await rpc("message/send", say(text, { taskId: paused.id }));
      expect(result).toMatchObject({ kind: "task", id: paused.id, status: { state: "input-required" } });
    }
    const { result: whole } = await rpc("tasks/get", { id: paused.id });
    const { result: short } = await rpc("tasks/get", { id: paused.id, historyLength: 2 });
    expect(short.history).toEqual(whole.history.slice(-2));
    const texts = whole.history.flatMap(({ role, parts }: Received) => (role === "user" ? [parts[0].text] : []));
    expect(texts).toEqual(["hello", "one", "two", "three"]);
    const { result: canceled } = await rpc("tasks/cancel", { id: paused.id });
    expect(canceled).toMatchObject({ kind: "task", id: paused.id, status: { state: "canceled" } });
    expect((await rpc("tasks/cancel", { id: paused.id })).error.code).toBe(-32002);
  });

  test("may bring files and data", async () => {
    for (const part of [
      { kind: "file", file: { name: "a.txt", mimeType: "text/plain", uri: "https://example.com/a.txt" } },
      { kind: "file", file: { name: "a.txt", mimeType: "text/plain", bytes: "dGNr" } },
      { kind: "data", data: { key: "value", number: 123, nested: { array: [1, 2, 3] } } },
    ]) {
      const { result } = await rpc("message/send", say("", { parts: [part] }));
      expect([result.status.state, result.history[0].parts]).toEqual(["input-required", [part]]);
    }
  });
});

test.each([
  ["text that is no JSON", '{"jsonrpc": "2.0", "method": "message/send"', -32700],
  ["another jsonrpc", '{"jsonrpc":"1.0","method":"message/send","params":{}}', -32600],
  ["no method", '{"jsonrpc":"2.0","params":{}}', -32600],
  ["an object as id", '{"jsonrpc":"2.0","method":"message/send","params":{},"id":{"bad":"type"}}', -32600],
  ["an unknown method", '{"jsonrpc":"2.0","id":"3","method":"nonexistent/method","params":{}}', -32601],
  ["params of another type", '{"jsonrpc":"2.0","id":"4","method":"message/send","params":"not_a_dict"}', -32602],
  ["a message without its fields", '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{}}}', -32602],
])("%s is refused", async (_what, body, code) => {
  const response = await post(body);
  const answer: Received = await response.json();
  expect([response.status, answer.jsonrpc, answer.error.code]).toEqual([200, "2.0", code]);
});

test("a task that does not exist is not found", async () => {
  for (const [method, params] of [
    ["tasks/get", { id: "none" }],
    ["tasks/cancel", { id: "none" }],
    ["tasks/resubscribe", { id: "none" }],
    ["message/send", say("x", { taskId: "none" })],
  ] as const) {
    expect((await rpc(method, params)).error.code).toBe(-32001);
  }
});

test("a stream ends with a final status, and one that works is found again", async () => {
  const stream = async (method: string, params: object) =>
    post(JSON.stringify({ jsonrpc: "2.0", id: ++count, method, params }));
  const paused = (await readFrames(await stream("message/stream", say("hello")))).map(({ data }) => data.result);
  expect(paused[0]).toMatchObject({ kind: "task" });
  expect(paused.at(-1)).toMatchObject({ kind: "status-update", status: { state: "input-required" }, final: true });
  expect(paused.slice(0, -1).some(({ final }) => final)).toBe(false);

  const working = say("work", { messageId: "test-resubscribe-message-id-1" });
  const [first] = await readFrames(await stream("message/stream", working), (frames) => frames.length > 0);
  const { id } = first?.data.result ?? {};
  const again = (await readFrames(await stream("tasks/resubscribe", { id }))).map(({ data }) => data.result);
  expect(again.map(({ kind, status, final }) => [kind, status.state, final])).toEqual([
    ["task", "working", undefined],
    ["status-update", "completed", true],
  ]);
});

test("1.0 is spoken beside it", async () => {
  const { result } = await createRpcClient(system.agentUrl).send(tckMessage("complete-task"));
  expect(result.task.status.state).toBe("TASK_STATE_COMPLETED");
});

describe("over HTTP+JSON, in 0.3's own ProtoJSON", () => {
  const rest = async (method: string, path: string, body?: object): Promise<{ status: number; body: Received }> => {
    const response = await fetch(`${system.agentUrl}/v1${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    return { status: response.status, body: await response.json() };
  };
  const write = (text: string, more: object = {}) => ({
    message: { message_id: `m-${++count}`, role: "ROLE_USER", content: [{ text }], ...more },
  });

  test("a task is started, answered, read in part and canceled", async () => {
    const { body: sent } = await rest("POST", "/message:send", write("hello"));
    const { id } = sent.task;
    expect(sent.task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await rest("POST", "/message:send", write("more", { task_id: id }));
    const { body: whole } = await rest("GET", `/tasks/${id}`);
    const { body: short } = await rest("GET", `/tasks/${id}?history_length=2`);
    expect(short.history).toEqual(whole.history.slice(-2));
    expect(whole.history[0]).toMatchObject({ role: "ROLE_USER", content: [{ text: "hello" }] });
    const { body: canceled } = await rest("POST", `/tasks/${id}:cancel`);
    expect([canceled.id, canceled.status.state]).toEqual([id, "TASK_STATE_CANCELLED"]);
  });

  test("what does not exist is 404, what is wrong 400", async () => {
    expect((await rest("GET", "/tasks/none")).status).toBe(404);
    expect((await rest("POST", "/tasks/none:cancel")).status).toBe(404);
    expect((await rest("POST", "/message:send", { message: {} })).status).toBe(400);
  });
});
