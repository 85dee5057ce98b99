import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { OWNER_TOKEN, startTask, startWorld, tokenOf, type World } from "../api/world.ts";
import {
  approve,
  asTask,
  collect,
  connect,
  dataOf,
  describeItem,
  type Fetch,
  message,
  request,
  stateOf,
  textsOf,
} from "./clients.ts";

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world.stop());

const fetchWith =
  (token: string): Fetch =>
  async (url, init) => {
    const headers = new Headers(init?.headers);
    headers.set("authorization", `Bearer ${token}`);
    return world.app.request(String(url), { ...init, headers });
  };

describe.each([
  ["1.0", "JSONRPC", false],
  ["1.0", "HTTP+JSON", false],
  ["0.3", "JSONRPC", true],
  ["0.3", "HTTP+JSON", true],
] as const)("the SDK's client of %s over %s", (version, transport, legacy) => {
  const clientOf = (agent: string, token = OWNER_TOKEN) =>
    connect("http://127.0.0.1:4141", agent, fetchWith(token), transport, legacy);

  test("sends, finds the pause, approves and gets the end", async () => {
    const client = await clientOf("janitor");
    expect(client.protocolVersion).toBe(version);
    const paused = asTask(await client.sendMessage(request(message(["tidy up"]))));
    expect(stateOf(paused)).toBe("TASK_STATE_INPUT_REQUIRED");
    const [asked] = dataOf(paused.status?.message);
    expect(asked).toMatchObject({
      type: "a2a.input.request",
      requestId: `input-${paused.id}-1`,
      metadata: { kind: "approval", tool: "delete_file", args: { path: "old.csv" } },
    });
    expect(textsOf(paused.status?.message)).toHaveLength(1);
    const answer = message([approve(asked?.requestId)], { taskId: paused.id });
    const ended = asTask(await client.sendMessage(request(answer)));
    expect([stateOf(ended), textsOf(ended.status?.message)]).toEqual(["TASK_STATE_COMPLETED", ["All done."]]);
    expect(world.stage.ran).toEqual([{ path: "old.csv" }]);
    // Sent again, it gives the same and does nothing.
    const again = asTask(await client.sendMessage(request(answer)));
    expect(again).toEqual(ended);
    expect(world.stage.ran).toHaveLength(1);
    const got = await client.getTask({ tenant: "", id: paused.id, historyLength: undefined });
    expect(got).toEqual(ended);
    expect(got.history.map((entry) => [entry.role, textsOf(entry)[0] ?? dataOf(entry)[0]?.type ?? "data"])).toEqual([
      [1, "tidy up"],
      [2, "I want delete_file."],
      [2, textsOf(paused.status?.message)[0]],
      [1, "a2a.input.response"],
      [2, "data"],
      [2, "All done."],
    ]);
  });

  test("streams to the pause, and on to the end", async () => {
    const client = await clientOf("janitor");
    const first = await collect(client.sendMessageStream(request(message(["tidy up"]))));
    expect(first.map(describeItem)).toEqual([
      "task TASK_STATE_WORKING",
      "status TASK_STATE_WORKING",
      "status TASK_STATE_INPUT_REQUIRED",
    ]);
    const [{ payload } = {}] = first;
    const taskId = payload?.$case === "task" ? payload.value.id : "";
    const rest = await collect(client.sendMessageStream(request(message(["yes"], { taskId }))));
    expect(rest.map(describeItem)).toEqual([
      "task TASK_STATE_WORKING",
      "status TASK_STATE_WORKING",
      "status TASK_STATE_COMPLETED",
    ]);
  });

  test("subscribes, stays through the pause, and sees the end", async () => {
    const client = await clientOf("janitor");
    const { taskId, requestId } = await startTask(world, "janitor");
    const seen: string[] = [];
    for await (const item of client.resubscribeTask({ tenant: "", id: taskId })) {
      seen.push(describeItem(item));
      if (seen.length === 1) {
        const { digest } = (await (await world.call("GET", `/api/requests/${requestId}`)).json()) as { digest: string };
        await world.call("POST", `/api/requests/${requestId}/decision`, { body: { decision: "approve", digest } });
      }
    }
    expect(seen).toEqual([
      "task TASK_STATE_INPUT_REQUIRED",
      "status TASK_STATE_WORKING",
      "status TASK_STATE_WORKING",
      "status TASK_STATE_COMPLETED",
    ]);
    // Decided elsewhere, it stands in history as the message that would have brought it.
    const { history } = await client.getTask({ tenant: "", id: taskId, historyLength: undefined });
    const decided = history.find((entry) => dataOf(entry)[0]?.type === "a2a.input.response");
    expect([decided?.role, decided?.messageId]).toEqual([1, `${taskId}-4`]);
    await expect(collect(client.resubscribeTask({ tenant: "", id: taskId }))).rejects.toMatchObject({
      name: "UnsupportedOperationError",
    });
  });

  test("cancels what is paused, and not what is over", async () => {
    const client = await clientOf("janitor");
    const { taskId } = await startTask(world, "janitor");
    const canceled = await client.cancelTask({ tenant: "", id: taskId, metadata: undefined });
    expect(stateOf(canceled)).toBe("TASK_STATE_CANCELED");
    await expect(client.cancelTask({ tenant: "", id: taskId, metadata: undefined })).rejects.toMatchObject({
      name: "TaskNotCancelableError",
    });
    await expect(client.sendMessage(request(message(["more"], { taskId })))).rejects.toMatchObject({
      name: "UnsupportedOperationError",
    });
    expect(world.stage.ran).toEqual([]);
  });

  test("does not wait when it would not", async () => {
    const client = await clientOf("janitor");
    const begun = asTask(await client.sendMessage(request(message(["tidy up"]), { returnImmediately: true })));
    expect(stateOf(begun)).toBe("TASK_STATE_WORKING");
    await expect
      .poll(async () => stateOf(await client.getTask({ tenant: "", id: begun.id, historyLength: 0 })))
      .toBe("TASK_STATE_INPUT_REQUIRED");
  });

  test("learns nothing of what belongs to another agent or tenant", async () => {
    const { taskId } = await startTask(world, "janitor");
    const errors: unknown[] = [];
    for (const [agent, token, id] of [
      ["janitor", tokenOf("stranger"), taskId],
      ["janitor", tokenOf("stranger"), "nothing"],
      ["asker", OWNER_TOKEN, taskId],
    ] as const) {
      const client = await clientOf(agent, token);
      for (const attempt of [
        () => client.getTask({ tenant: "", id, historyLength: undefined }),
        () => client.cancelTask({ tenant: "", id, metadata: undefined }),
        () => client.sendMessage(request(message(["yes"], { taskId: id }))),
        () => collect(client.resubscribeTask({ tenant: "", id })),
      ]) {
        const error = await attempt().then(
          () => "nothing was wrong",
          (caught: Error) => [caught.name, caught.message],
        );
        errors.push(error);
      }
    }
    expect(errors[0]).toEqual(["TaskNotFoundError", expect.stringContaining("There is no such task")]);
    expect(new Set(errors.map((error) => JSON.stringify(error))).size).toBe(1);
    expect((await world.runtime.load({ tenant: "default", id: taskId })).task?.version).toBe(3);
    await systemClock.turn();
  });
});
