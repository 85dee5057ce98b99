/** SendMessage: what comes back, when, in which context, and what history keeps of it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SystemUnderTest, startSystemUnderTest } from "../tck/system-under-test.ts";
import {
  CLIENTS,
  type Client,
  createRestClient,
  createRpcClient,
  type Received,
  startCompleted,
  startPaused,
  tckMessage,
} from "./client.ts";
import { expectError, expectShape, requirement } from "./requirement.ts";
import { Message, SendMessageResponse } from "./shapes.ts";

const WORK_MS = 200;
let system: SystemUnderTest;
beforeAll(async () => {
  system = await startSystemUnderTest({ port: 0, workMs: WORK_MS });
});
afterAll(() => system.close());

const stateOf = ({ result }: { result: Received }) => result.task.status.state;
const textsOf = (history: Received) =>
  history.flatMap(({ role, parts }: Received) => (role === "ROLE_USER" ? parts.map(({ text }: Received) => text) : []));

describe.each(CLIENTS)("over %s", (_name, create) => {
  let client: Client;
  beforeAll(() => {
    client = create(system.agentUrl);
  });

  requirement("CORE-SEND-001", "SendMessage gives a Task, in the protocol's own shape", async () => {
    const answer = await client.send(tckMessage("complete-task"));
    expect([answer.httpStatus, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
    expectShape(SendMessageResponse, answer.result);
    expect(stateOf(answer)).toBe("TASK_STATE_COMPLETED");
    expect(answer.result.task.status.message.parts).toEqual([{ text: "Hello from TCK" }]);
  });

  requirement("CORE-SEND-001 (Message)", "an agent that only replies is heard as a Message", async () => {
    const { result } = await client.send(tckMessage("message-response"));
    expectShape(Message, result.message);
    expect(result.message).toMatchObject({ role: "ROLE_AGENT", parts: [{ text: "Direct message response" }] });
    expect(result.message.contextId).toBeTruthy();
  });

  requirement("CORE-SEND-002", "a message to a task that is over is refused", async () => {
    const { id } = await startCompleted(client);
    expectError(client, await client.send(tckMessage("terminal", { taskId: id })), "UNSUPPORTED_OPERATION");
  });

  requirement("CORE-EXECUTION-MODE-001", "a send waits for the end, or for a pause", async () => {
    expect(stateOf(await client.send(tckMessage("delayed-complete")))).toBe("TASK_STATE_COMPLETED");
    expect(stateOf(await client.send(tckMessage("delayed-complete"), { returnImmediately: false }))).toBe(
      "TASK_STATE_COMPLETED",
    );
    expect(stateOf(await client.send(tckMessage("input-required")))).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  requirement("CORE-EXECUTION-MODE-002", "a send that would not wait comes back while the task works", async () => {
    const begun = await client.send(tckMessage("delayed-complete"), { returnImmediately: true });
    expect(stateOf(begun)).toBe("TASK_STATE_WORKING");
    const { id } = begun.result.task;
    await expect.poll(async () => (await client.get(id)).result.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("a task may pause as often as it likes, and every follow-up plays on in it", async () => {
    const { id } = await startPaused(client);
    for (const name of ["input-required", "input-required"]) {
      const paused = await client.send(tckMessage(name, { taskId: id }));
      expect([stateOf(paused), paused.result.task.id]).toEqual(["TASK_STATE_INPUT_REQUIRED", id]);
    }
    const ended = await client.send(tckMessage("complete-task", { taskId: id }));
    expect([stateOf(ended), ended.result.task.id]).toEqual(["TASK_STATE_COMPLETED", id]);
  });

  test("a task that the agent rejects is rejected", async () => {
    expect(stateOf(await client.send(tckMessage("reject-task")))).toBe("TASK_STATE_REJECTED");
  });

  requirement("CORE-MULTI-001a", "a context that the server makes is told", async () => {
    const { contextId } = await startCompleted(client);
    expect(contextId).toBeTruthy();
  });

  requirement("CORE-MULTI-002", "a context that the client brings is kept", async () => {
    const { result } = await client.send(tckMessage("complete-task", { contextId: "client-context" }));
    expect(result.task.contextId).toBe("client-context");
  });

  requirement("CORE-MULTI-003", "every new task has an id of its own, though message ids are used again", async () => {
    const tasks = await Promise.all(Array.from({ length: 5 }, () => startCompleted(client)));
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(5);
  });

  requirement("CORE-MULTI-004", "a message to a task that does not exist is refused", async () => {
    expectError(client, await client.send(tckMessage("complete-task", { taskId: "none" })), "TASK_NOT_FOUND");
  });

  requirement("CORE-MULTI-005", "the context of a follow-up is that of its task", async () => {
    const { id, contextId } = await startPaused(client);
    const { result } = await client.send(tckMessage("infer-ctx", { taskId: id }));
    expect([result.task.id, result.task.contextId]).toEqual([id, contextId]);
  });

  requirement("CORE-MULTI-006", "a context that is not the task's is refused", async () => {
    const { id } = await startPaused(client);
    const answer = await client.send(tckMessage("mismatch", { taskId: id, contextId: "wrong" }));
    expect(answer.body.error.message).toContain("contextId");
    expect((await client.get(id)).result.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });

  requirement("CORE-HIST-001", "history of length 0 is none, in a get and in a send", async () => {
    const { id } = await startPaused(client);
    const sent = await client.send(tckMessage("complete-task", { taskId: id }), { historyLength: 0 });
    expect(sent.result.task).not.toHaveProperty("history");
    expect((await client.get(id, 0)).result).not.toHaveProperty("history");
  });

  requirement("CORE-HIST-002", "no more messages come than were asked for, and those are the newest", async () => {
    const { id } = await startPaused(client);
    await client.send(tckMessage("complete-task", { taskId: id }));
    const { history } = (await client.get(id)).result;
    for (const length of [1, 2, 3]) {
      expect((await client.get(id, length)).result.history).toEqual(history.slice(-length));
    }
    expect((await client.get(id, 1000)).result.history).toEqual(history);
  });

  requirement("CORE-HIST-005", "history keeps what was said, in its order and as it was said", async () => {
    const { id } = await startPaused(client);
    const say = (name: string, text: string) => client.send(tckMessage(name, { taskId: id, parts: [{ text }] }));
    await say("input-required", "second");
    await say("complete-task", "third");
    expect(textsOf((await client.get(id, 100)).result.history)).toEqual(["TCK input-required", "second", "third"]);
  });

  test.each([
    ["artifact-text", { text: "Generated text content" }],
    ["artifact-file", { raw: "dGNr", mediaType: "text/plain", filename: "output.txt" }],
    ["artifact-file-url", { url: "https://example.com/output.txt", mediaType: "text/plain", filename: "output.txt" }],
    ["artifact-data", { data: { key: "value", count: 42 } }],
    ["stream-artifact-file", { raw: "dGNr", mediaType: "text/plain", filename: "output.txt" }],
  ])("DM-ART-001: %s is an artifact with that part", async (name, part) => {
    const { result } = await client.send(tckMessage(name));
    expectShape(SendMessageResponse, result);
    expect(result.task.artifacts).toEqual([{ artifactId: expect.any(String), parts: [part] }]);
    expect((await client.get(result.task.id)).result.artifacts).toEqual(result.task.artifacts);
  });

  requirement("DM-SERIAL-001", "names are in camelCase, states and roles are words", async () => {
    const answer = await client.send(tckMessage("dm-test-001"));
    expectShape(SendMessageResponse, answer.result);
    expect(JSON.stringify(answer.body).match(/"[a-z]+(_[a-z]+)+":/g)).toBeNull();
  });

  requirement("DM-SERIAL-005", "fields that nobody knows are ignored", async () => {
    const answer = await client.send(tckMessage("complete-task", { tckUnknownField: "x" }), { tckExtra: 42 });
    expect(stateOf(answer)).toBe("TASK_STATE_COMPLETED");
  });

  test("every kind of part is taken, and stands in history as it came", async () => {
    const parts = [
      { text: "a" },
      { raw: "dGNr", mediaType: "image/png", filename: "a.png" },
      { url: "https://example.com/a", mediaType: "application/x-anything" },
      { data: { nested: [1, "two", null] } },
      { data: ["not", "an", "object"] },
    ];
    const { result } = await client.send(tckMessage("complete-task", { parts, metadata: { a: 1 } }));
    expect(result.task.history[0]).toMatchObject({ parts, metadata: { a: 1 } });
  });
});

describe("a server that takes text only", () => {
  let strict: SystemUnderTest;
  beforeAll(async () => {
    strict = await startSystemUnderTest({ port: 0, inputModes: ["text/plain"] });
  });
  afterAll(() => strict.close());

  requirement("CORE-SEND-003", "refuses another media type", async () => {
    const parts = [{ raw: "dGNr", mediaType: "application/x-unsupported-tck-type" }];
    for (const client of [createRpcClient(strict.agentUrl), createRestClient(strict.agentUrl)]) {
      expectError(client, await client.send(tckMessage("send-003", { parts })), "CONTENT_TYPE_NOT_SUPPORTED");
      expect((await client.list({})).result.tasks).toEqual([]);
    }
  });
});
