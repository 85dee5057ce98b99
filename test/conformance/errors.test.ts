/** Errors: codes and statuses, versions, content types, and what JSON-RPC itself asks for. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SystemUnderTest, startSystemUnderTest } from "../tck/system-under-test.ts";
import { createRestClient, createRpcClient, type Received, startCompleted, startPaused, tckMessage } from "./client.ts";
import { expectError, expectRestError, expectRpcError, requirement } from "./requirement.ts";

let system: SystemUnderTest;
beforeAll(async () => {
  system = await startSystemUnderTest({ port: 0 });
});
afterAll(() => system.close());

async function post(path: string, body: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${system.agentUrl}${path}`, {
    method: "POST",
    body,
    headers: { "a2a-version": "1.0", "content-type": "application/json", ...headers },
  });
  const { status: httpStatus, headers: answered } = response;
  const received: Received = await response.json();
  return { httpStatus, headers: answered, body: received, result: received.result };
}

const call = (method: unknown, params: unknown, more: object = {}) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params, ...more });
const send = JSON.stringify({ message: tckMessage("complete-task") });

describe("JSON-RPC", () => {
  test.each([
    ["text that is no JSON", '{"jsonrpc":"2.0","method":"SendMessage"', -32700],
    ["another jsonrpc", call("SendMessage", {}, { jsonrpc: "aaa" }), -32600],
    ["no method", call(undefined, {}), -32600],
    ["a number as method", call(1, {}), -32600],
    ["an object as id", call("SendMessage", {}, { id: { bad: "type" } }), -32600],
    ["an array", "[]", -32600],
    ["an unknown method", call("NonExistentMethod", {}), -32601],
    ["a method of 0.3", call("message/send", {}), -32601],
    ["no message", call("SendMessage", {}), -32602],
    ["params of another type", call("SendMessage", "x"), -32602],
    ["parts of another type", call("SendMessage", { message: { parts: "invalid" } }), -32602],
    ["a message without role", call("SendMessage", { message: { messageId: "1", parts: [{ text: "x" }] } }), -32602],
    ["a get without id", call("GetTask", {}), -32602],
  ])("JSONRPC-ERR-001: %s", async (_what, body, code) => {
    const answer = await post("", body);
    expect([answer.httpStatus, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
    expectRpcError(answer.body, code);
  });

  test("an error bears the id of its request, as text and as number", async () => {
    for (const id of ["a", 7]) {
      expect((await post("", call("Nothing", {}, { id }))).body.id).toBe(id);
      expect((await post("", call("GetTask", { id: "none" }, { id }))).body.id).toBe(id);
    }
  });
});

describe("HTTP+JSON", () => {
  test.each([
    ["an empty object", "{}"],
    ["no JSON", "{"],
    ["a message without parts", JSON.stringify({ message: { messageId: "1", role: "ROLE_USER" } })],
  ])("CORE-ERR-002: %s is refused", async (_what, body) => {
    expectRestError(await post("/message:send", body), 400);
  });
});

requirement("VER-SERVER-002", "a version that is not spoken is refused", async () => {
  for (const version of ["99.0", "0.3", "0.2", "1.1", "2.0", "nonsense"]) {
    const headers = { "a2a-version": version };
    expectRpcError((await post("", call("GetTask", { id: "x" }), headers)).body, -32009, "VERSION_NOT_SUPPORTED");
    expectRestError(await post("/message:send", send, headers), 400, "VERSION_NOT_SUPPORTED");
  }
});

requirement("VER-SERVER-003", "no version is 0.3, which this server does not speak", async () => {
  const headers = { "a2a-version": "" };
  expectRpcError((await post("", call("SendMessage", JSON.parse(send)), headers)).body, -32009);
  expectRestError(await post("/message:send", send, headers), 400);
});

requirement("VER-SERVER-001", "1.0 is spoken, whatever the patch, by header or by query", async () => {
  for (const version of ["1.0", "1.0.0", "1.0.1"]) {
    expect((await post("/message:send", send, { "a2a-version": version })).httpStatus).toBe(200);
  }
  expect((await post("/message:send?A2A-Version=1.0", send, { "a2a-version": "" })).httpStatus).toBe(200);
});

requirement("HTTP_JSON-STATUS-001", "a body that is not JSON by its type is refused", async () => {
  const headers = { "content-type": "text/plain" };
  expectRestError(await post("/message:send", send, headers), 415, "CONTENT_TYPE_NOT_SUPPORTED");
  const rpc = await post("", call("SendMessage", JSON.parse(send)), headers);
  expectRpcError(rpc.body, -32005, "CONTENT_TYPE_NOT_SUPPORTED");
});

test("both types of JSON are taken", async () => {
  for (const type of ["application/json", "application/json; charset=utf-8", "application/a2a+json"]) {
    expect((await post("/message:send", send, { "content-type": type })).httpStatus).toBe(200);
  }
});

requirement("JSONRPC-SVC-002", "extensions that nobody knows are no error, and are not confirmed", async () => {
  const uri = "https://example.com/ext/v1";
  for (const client of [createRpcClient(system.agentUrl), createRestClient(system.agentUrl)]) {
    const known = "urn:holdpoint:hitl:v1";
    const { httpStatus, headers } = await client.send(tckMessage("complete-task"), undefined, {
      "a2a-extensions": `${uri}, ${known}`,
    });
    expect([httpStatus, headers.get("a2a-extensions")]).toEqual([200, known]);
  }
});

requirement("CORE-CAP-001", "what the card says of push notifications is true", async () => {
  const card: Received = await (await fetch(`${system.url}/.well-known/agent-card.json`)).json();
  for (const client of [createRpcClient(system.agentUrl), createRestClient(system.agentUrl)]) {
    const { id } = await startPaused(client);
    const answer = await client.createPush(id, { id: "c", url: "http://localhost:1/" });
    if (card.capabilities.pushNotifications) expect(answer.result).toBeDefined();
    else expectError(client, answer, "PUSH_NOTIFICATION_NOT_SUPPORTED");
  }
});

describe("profile 1.0.1", () => {
  let newer: SystemUnderTest;
  beforeAll(async () => {
    newer = await startSystemUnderTest({ port: 0, profile: "1.0.1", inputModes: ["text/plain"] });
  });
  afterAll(() => newer.close());

  test("has its own media type, and 400 where 1.0.0 had others", async () => {
    const client = createRestClient(newer.agentUrl);
    const { id } = await startCompleted(client);
    const parts = [{ raw: "dGNr", mediaType: "application/x-unsupported-tck-type" }];
    for (const [answer, status, name, reason] of [
      [await client.get("none"), 404, "NOT_FOUND", "TASK_NOT_FOUND"],
      [await client.cancel(id), 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"],
      [await client.subscribe(id), 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"],
      [await client.send(tckMessage("x", { parts })), 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED"],
    ] as const) {
      expect(answer.headers.get("content-type")).toContain("application/a2a+json");
      expect(answer.body.error).toMatchObject({ code: status, status: name, details: [{ reason }] });
      expect(answer.httpStatus).toBe(status);
    }
  });
});
