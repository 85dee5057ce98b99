/** Streams: SendStreamingMessage and SubscribeToTask, their order and their end. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SystemUnderTest, startSystemUnderTest } from "../tck/system-under-test.ts";
import {
  CLIENTS,
  type Client,
  createRestClient,
  createRpcClient,
  describeItem,
  type Received,
  startCompleted,
  startPaused,
  tckMessage,
} from "./client.ts";
import { expectError, expectShape, requirement } from "./requirement.ts";
import { Message, StreamResponse } from "./shapes.ts";

let system: SystemUnderTest;
beforeAll(async () => {
  system = await startSystemUnderTest({ port: 0, workMs: 400 });
});
afterAll(() => system.close());

const COMPLETED = "status TASK_STATE_COMPLETED";

describe.each(CLIENTS)("over %s", (_name, create) => {
  let client: Client;
  beforeAll(() => {
    client = create(system.agentUrl);
  });

  requirement("CORE-STREAM-001", "SendStreamingMessage opens a stream of events, each in its shape", async () => {
    const streamed = await client.stream(tckMessage("stream-001"));
    expect([streamed.httpStatus, streamed.headers.get("content-type")]).toEqual([
      200,
      expect.stringContaining("text/event-stream"),
    ]);
    for (const item of await streamed.items()) expectShape(StreamResponse, item);
  });

  requirement("CORE-STREAM-002", "a stream of a mere reply is one Message, and closes", async () => {
    const items = await (await client.stream(tckMessage("stream-002"))).items();
    expect(items).toHaveLength(1);
    expectShape(Message, items[0].message);
  });

  requirement("CORE-STREAM-003", "a stream begins with the Task and closes at its end", async () => {
    const items = await (await client.stream(tckMessage("stream-003"))).items();
    expect(items.map(describeItem)).toEqual(["task TASK_STATE_WORKING", "artifact Stream task lifecycle", COMPLETED]);
    const id = items[0].task.id;
    for (const { statusUpdate, artifactUpdate } of items.slice(1)) {
      expect((statusUpdate ?? artifactUpdate).taskId).toBe(id);
    }
  });

  requirement("STREAM-ORDER-001", "events come in the order in which they happened", async () => {
    const ordered = await (await client.stream(tckMessage("stream-ordering-001"))).items();
    expect(ordered.map(describeItem)).toEqual(["task TASK_STATE_WORKING", "artifact Ordered output", COMPLETED]);
    const chunked = await (await client.stream(tckMessage("stream-artifact-chunked"))).items();
    expect(chunked.map(describeItem)).toEqual([
      "task TASK_STATE_WORKING",
      "artifact chunk-1 ",
      "artifact chunk-2",
      COMPLETED,
    ]);
    expect(chunked.slice(1, 3).map(({ artifactUpdate: { append, lastChunk } }) => [append, lastChunk])).toEqual([
      [false, false],
      [true, true],
    ]);
    const [, first, second] = chunked;
    expect(first.artifactUpdate.artifact.artifactId).toBe(second.artifactUpdate.artifact.artifactId);
  });

  test.each(["stream-artifact-text", "stream-artifact-file"])("%s streams its artifact", async (name) => {
    const items = await (await client.stream(tckMessage(name))).items();
    expect(items.map((item) => Object.keys(item)[0])).toEqual(["task", "artifactUpdate", "statusUpdate"]);
    for (const item of items) expectShape(StreamResponse, item);
  });

  test("a stream ends at a pause, and a follow-up streams on to the end", async () => {
    const items = await (await client.stream(tckMessage("input-required"))).items();
    expect(items.map(describeItem).at(-1)).toBe("status TASK_STATE_INPUT_REQUIRED");
    const taskId = items[0].task.id;
    const rest = await (await client.stream(tckMessage("complete-task", { taskId }))).items();
    expect([Object.keys(rest[0]), rest.map(describeItem).at(-1)]).toEqual([["task"], COMPLETED]);
  });

  test("a stream of a message that is refused is an answer with an error", async () => {
    const { id } = await startCompleted(client);
    expectError(client, await client.stream(tckMessage("terminal", { taskId: id })), "UNSUPPORTED_OPERATION");
    expectError(client, await client.stream(tckMessage("x", { taskId: "none" })), "TASK_NOT_FOUND");
  });

  requirement("STREAM-SUB-001", "a subscription begins with the Task as it is", async () => {
    const { id } = await startPaused(client);
    const [first] = await (await client.subscribe(id)).items((items) => items.length > 0);
    expectShape(StreamResponse, first);
    expect(first.task).toEqual((await client.get(id)).result);
  });

  requirement("STREAM-SUB-002", "a subscription stays through pauses and closes at the end", async () => {
    const { id } = await startPaused(client);
    const items = (await client.subscribe(id)).items();
    await client.send(tckMessage("input-required", { taskId: id }));
    await client.send(tckMessage("complete-task", { taskId: id }));
    const told = (await items).map(describeItem);
    expect(told[0]).toBe("task TASK_STATE_INPUT_REQUIRED");
    expect(told.filter((text) => text === "status TASK_STATE_INPUT_REQUIRED")).toHaveLength(1);
    expect(told.at(-1)).toBe(COMPLETED);
  });

  requirement("STREAM-SUB-003", "what is over cannot be subscribed to", async () => {
    const { id } = await startCompleted(client);
    expectError(client, await client.subscribe(id), "UNSUPPORTED_OPERATION");
  });

  requirement("STREAM-SUB-004", "what does not exist cannot be subscribed to", async () => {
    expectError(client, await client.subscribe("tck-nonexistent"), "TASK_NOT_FOUND");
  });

  test("a task that works can be found again by a second stream", async () => {
    const message = { ...tckMessage(""), messageId: "test-resubscribe-message-id-1" };
    const first = await client.stream(message);
    const [{ task }] = await first.items((items) => items.length > 0);
    const again = await (await client.subscribe(task.id)).items();
    expect(again.map(describeItem)).toEqual(["task TASK_STATE_WORKING", COMPLETED]);
  });

  requirement("STREAM-ORDER-003", "all streams of a task tell the same in the same order", async () => {
    const { id } = await startPaused(client);
    const streams = await Promise.all([client.subscribe(id), client.subscribe(id), client.subscribe(id)]);
    const reading = streams.map(({ items }) => items());
    await client.send(tckMessage("artifact-text", { taskId: id }));
    const [first = [], ...others] = await Promise.all(reading);
    expect(first.length).toBeGreaterThan(2);
    for (const other of others) expect(other).toEqual(first);
  });

  requirement("STREAM-ORDER-004", "closing one stream leaves the others and the task alone", async () => {
    const { id } = await startPaused(client);
    const [closing, staying] = await Promise.all([client.subscribe(id), client.subscribe(id)]);
    const reading = staying.items();
    expect(await closing.items((items) => items.length > 0)).toHaveLength(1);
    await client.send(tckMessage("complete-task", { taskId: id }));
    expect((await reading).map(describeItem).at(-1)).toBe(COMPLETED);
  });
});

requirement("JSONRPC-SSE-001", "each event of a JSON-RPC stream is an answer to its request", async () => {
  const items = await (await createRpcClient(system.agentUrl).stream(tckMessage("stream-001"))).rawItems();
  expect(items.length).toBeGreaterThan(2);
  for (const item of items) expect(item).toEqual({ jsonrpc: "2.0", id: 1, result: item.result });
});

requirement("HTTP_JSON-SSE-001", "a subscription over HTTP+JSON is taken as GET and as POST", async () => {
  const { id } = await startPaused(createRestClient(system.agentUrl));
  for (const method of ["GET", "POST"]) {
    const stop = new AbortController();
    const init = { method, headers: { "a2a-version": "1.0" }, signal: stop.signal };
    const response = await fetch(`${system.agentUrl}/tasks/${id}:subscribe`, init);
    const type: Received = response.headers.get("content-type");
    expect([response.status, type]).toEqual([200, expect.stringContaining("text/event-stream")]);
    stop.abort();
  }
});
