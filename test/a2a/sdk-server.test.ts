/** Our handler under the SDK's own transport: what gRPC will stand on. */
import { JsonRpcTransportHandler, ServerCallContext } from "@a2a-js/sdk/server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { a2aInput } from "../../src/dialects/a2a-input.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { Follower } from "../../src/runtime/follower.ts";
import { createRequestHandler } from "../../src/server/a2a-handler.ts";
import { A2ATasks } from "../../src/server/a2a-tasks.ts";
import { OWNER } from "../../src/server/auth.ts";
import { SERVER_CONFIG, startWorld, type World } from "../api/world.ts";
import { collect } from "./clients.ts";
import { text, userMessage } from "./wire.ts";

let world: World;
let transport: JsonRpcTransportHandler;
beforeEach(() => {
  world = startWorld();
  const { runtime } = world;
  const inputModes = ["text/plain"];
  const tasks = new A2ATasks({
    runtime,
    clock: systemClock,
    ids: systemIds,
    server: SERVER_CONFIG,
    inputModes,
    follower: new Follower({ runtime, clock: systemClock }),
  });
  const url = "http://localhost/a2a/janitor";
  const card = { name: "janitor", description: "", version: "1", url, legacy: false, inputModes, extensions: [] };
  const handler = createRequestHandler({
    tasks,
    card,
    callOf: () => ({
      agent: "janitor",
      caller: { principal: OWNER, scopes: new Set(["task:read", "task:submit", "decide"] as const) },
      headers: {},
      speech: { dialect: a2aInput, extensions: [] },
      signal: new AbortController().signal,
    }),
  });
  transport = new JsonRpcTransportHandler(handler);
});
afterEach(() => world.stop());

// biome-ignore lint/suspicious/noExplicitAny: whatever comes back
const call = (method: string, params: object): Promise<any> =>
  transport.handle({ jsonrpc: "2.0", id: 1, method, params }, new ServerCallContext({}));

test("sends, streams, gets, lists, subscribes and cancels", async () => {
  const { result } = await call("SendMessage", { message: userMessage([text("go")]) });
  const { id, status } = result.task;
  expect(status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  expect((await call("GetTask", { id })).result.status).toEqual(status);
  expect((await call("ListTasks", { pageSize: 5 })).result).toMatchObject({ tasks: [{ id }], totalSize: 1 });
  const followed = collect(await call("SubscribeToTask", { id }));
  const answered = await collect(
    await call("SendStreamingMessage", { message: userMessage([text("approve")], { taskId: id }) }),
  );
  expect(answered.at(-1)).toMatchObject({ result: { statusUpdate: { status: { state: "TASK_STATE_COMPLETED" } } } });
  expect((await followed).at(-1)).toEqual(answered.at(-1));
  expect((await call("CancelTask", { id })).error.code).toBe(-32002);
});

test("says no in the SDK's words", async () => {
  expect((await call("GetTask", { id: "nothing" })).error.code).toBe(-32001);
  expect((await call("SendMessage", { message: { messageId: "x" } })).error.code).toBe(-32602);
  expect((await call("ListTasks", { pageSize: 5, pageToken: "x" })).error.code).toBe(-32602);
  expect((await call("GetTask", { id: "x", tenant: "elsewhere" })).error.code).toBe(-32602);
  expect((await call("ListTaskPushNotificationConfigs", { taskId: "x" })).error.code).toBe(-32003);
});
