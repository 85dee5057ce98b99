/** GetTask, ListTasks and CancelTask. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SystemUnderTest, startSystemUnderTest } from "../tck/system-under-test.ts";
import { CLIENTS, type Client, type Received, startCompleted, startPaused, tckMessage } from "./client.ts";
import { expectError, expectShape, requirement } from "./requirement.ts";
import { ListTasksResponse, Task } from "./shapes.ts";

let system: SystemUnderTest;
beforeAll(async () => {
  system = await startSystemUnderTest({ port: 0, workMs: 2_000 });
});
afterAll(() => system.close());

describe.each(CLIENTS)("over %s", (name, create) => {
  const contextId = `list ${name}`;
  let client: Client;
  /** Oldest first. */
  const made: Received[] = [];
  beforeAll(async () => {
    client = create(system.agentUrl);
    for (const part of ["complete-task", "artifact-text", "input-required", "complete-task", "input-required"]) {
      made.push((await client.send(tckMessage(part, { contextId }))).result.task);
    }
  });
  const list = async (query: Readonly<Record<string, string | number | boolean>> = {}) => {
    const { result } = await client.list({ contextId, ...query });
    expectShape(ListTasksResponse, result);
    return result;
  };
  const idsOf = ({ tasks }: Received) => tasks.map(({ id }: Received) => id);

  requirement("CORE-GET-001", "GetTask tells a task as it is now", async () => {
    const { id } = await startPaused(client);
    const paused = await client.get(id);
    expectShape(Task, paused.result);
    expect([paused.result.id, paused.result.status.state]).toEqual([id, "TASK_STATE_INPUT_REQUIRED"]);
    const sent = await client.send(tckMessage("complete-task", { taskId: id }));
    expect((await client.get(id)).result).toEqual(sent.result.task);
  });

  requirement("CORE-GET-002", "a task that does not exist is not found", async () => {
    expectError(client, await client.get("tck-nonexistent"), "TASK_NOT_FOUND");
  });

  requirement("CORE-LIST-001", "ListTasks tells the tasks of a context, and no others", async () => {
    expect(idsOf(await list()).toSorted()).toEqual(made.map(({ id }) => id).toSorted());
    const none = await client.list({ contextId: "nobody's" });
    expect(none.result).toMatchObject({ tasks: [], nextPageToken: "", totalSize: 0 });
  });

  requirement("CORE-LIST-002", "pages follow each other by cursor, without gap or repetition", async () => {
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await list({ pageSize: 2, ...(pageToken === "" ? {} : { pageToken }) });
      expect(page).toMatchObject({ pageSize: 2, totalSize: made.length });
      seen.push(...idsOf(page));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(idsOf(await list()));
  });

  requirement("CORE-LIST-003", "the task with the newest status comes first", async () => {
    const times = (await list()).tasks.map(({ status }: Received) => status.timestamp);
    expect(times).toEqual(times.toSorted().reverse());
    expect(times).toHaveLength(made.length);
  });

  requirement("CORE-LIST-004", "the last page has an empty token", async () => {
    expect((await list({ pageSize: 100 })).nextPageToken).toBe("");
  });

  requirement("CORE-LIST-005", "artifacts come only when they are asked for", async () => {
    for (const { tasks } of [await list(), await list({ includeArtifacts: false })]) {
      for (const task of tasks) expect(task).not.toHaveProperty("artifacts");
    }
    const { tasks } = await list({ includeArtifacts: true });
    expect(tasks.filter((task: Received) => "artifacts" in task).map(({ id }: Received) => id)).toEqual([made[1].id]);
  });

  test("tasks are filtered by state, by time from that moment on, and by length of history", async () => {
    const paused = await list({ status: "TASK_STATE_INPUT_REQUIRED" });
    expect(idsOf(paused).toSorted()).toEqual([made[2].id, made[4].id].toSorted());
    const [newest] = (await list()).tasks;
    expect(idsOf(await list({ statusTimestampAfter: newest.status.timestamp }))).toContain(newest.id);
    expect(idsOf(await list({ statusTimestampAfter: "2999-01-01T00:00:00Z" }))).toEqual([]);
    for (const { history } of (await list({ historyLength: 1 })).tasks) expect(history).toHaveLength(1);
  });

  test.each([
    ["pageSize", 0],
    ["pageSize", 101],
    ["pageToken", "nonsense"],
    ["status", "TASK_STATE_NONSENSE"],
    ["statusTimestampAfter", "yesterday"],
  ])("a list with %s %s is refused", async (field, value) => {
    const answer = await client.list({ [field]: value });
    expect(client.transport === "JSONRPC" ? answer.body.error.code : answer.httpStatus).toBe(
      client.transport === "JSONRPC" ? -32602 : 400,
    );
  });

  requirement("CORE-CANCEL-001", "CancelTask ends what is paused or working, and tells the task", async () => {
    const { id } = await startPaused(client);
    const { result } = await client.cancel(id);
    expectShape(Task, result);
    expect([result.id, result.status.state]).toEqual([id, "TASK_STATE_CANCELED"]);
    const working = await client.send(tckMessage("delayed-complete"), { returnImmediately: true });
    const canceled = await client.cancel(working.result.task.id);
    expect(canceled.result.status.state).toBe("TASK_STATE_CANCELED");
  });

  requirement("CORE-CANCEL-002", "what is over cannot be canceled", async () => {
    const { id } = await startCompleted(client);
    expectError(client, await client.cancel(id), "TASK_NOT_CANCELABLE");
    const paused = await startPaused(client);
    await client.cancel(paused.id);
    expectError(client, await client.cancel(paused.id), "TASK_NOT_CANCELABLE");
  });

  requirement("CORE-CANCEL-003", "what does not exist cannot be canceled", async () => {
    expectError(client, await client.cancel("tck-nonexistent"), "TASK_NOT_FOUND");
  });
});
