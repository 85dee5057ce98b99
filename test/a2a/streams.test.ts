import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { Follower } from "../../src/runtime/follower.ts";
import { Runtime } from "../../src/runtime/runtime.ts";
import { OWNER_TOKEN, startTask, startWorld, type World } from "../api/world.ts";
import { type Frame, readFrames, rpc, text, userMessage } from "./wire.ts";

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world.stop());

const subscribe = (id: string, headers: object = {}) =>
  world.call("POST", "/a2a/janitor", {
    headers: { "a2a-version": "1.0", ...headers },
    body: { jsonrpc: "2.0", id: "s", method: "SubscribeToTask", params: { id } },
  });
const approve = (taskId: string) => rpc(world, "SendMessage", { message: userMessage([text("approve")], { taskId }) });
const shape = (frames: readonly Frame[]) => frames.map(({ id, data }) => [id, Object.keys(data.result)[0]]);

describe("a subscription", () => {
  test("is the same for everybody, with the place of each frame, and can be gone on with after any of them", async () => {
    const { taskId } = await startTask(world, "janitor");
    const [one, two] = [await subscribe(taskId), await subscribe(taskId)].map((response) => readFrames(response));
    await approve(taskId);
    const frames = (await one) ?? [];
    expect(frames).toEqual(await two);
    expect(shape(frames)).toEqual([
      ["3-0", "task"],
      ["5-1", "statusUpdate"],
      ["7-1", "statusUpdate"],
      ["9-1", "statusUpdate"],
    ]);
    for (const [i, { id }] of frames.slice(0, -1).entries()) {
      const again = await readFrames(await subscribe(taskId, { "last-event-id": id }));
      expect(again[0]?.data.result.task.id).toBe(taskId);
      expect(again.slice(1)).toEqual(frames.slice(i + 1));
    }
    const { error } = (await (await subscribe(taskId, { "last-event-id": frames.at(-1)?.id })).json()) as {
      error: { code: number };
    };
    expect(error.code).toBe(-32004);
  });

  test.each(["nonsense", "0-1", "99-1", "1e9-1", "-3-1"])("after %j begins with the task as it is", async (id) => {
    const { taskId } = await startTask(world, "janitor");
    const frames = await readFrames(await subscribe(taskId, { "last-event-id": id }), ({ length }) => length > 0);
    expect(shape(frames)).toEqual([["3-0", "task"]]);
  });

  test("by GET and by POST over HTTP+JSON", async () => {
    const { taskId } = await startTask(world, "janitor");
    for (const method of ["GET", "POST"]) {
      const path = `/a2a/janitor/tasks/${taskId}:subscribe`;
      const response = await world.call(method, path, { headers: { "a2a-version": "1.0" } });
      expect(response.headers.get("content-type")).toBe("text/event-stream");
      const [frame] = await readFrames(response, ({ length }) => length > 0);
      expect(frame?.data.task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    }
  });

  test("ends with the server, and leaves nothing behind when its reader goes", async () => {
    const { taskId } = await startTask(world, "janitor");
    const all = readFrames(await subscribe(taskId));
    const gone = await subscribe(taskId);
    await gone.body?.cancel();
    world.draining.abort();
    expect(shape(await all)).toEqual([["3-0", "task"]]);
  });
});

describe("across nodes", () => {
  test("what another node appends is seen at the next look, with one query for all that is followed", async () => {
    const { store, agents } = world.runtime;
    const ids = await Promise.all([1, 2, 3].map(async () => (await startTask(world, "janitor")).taskId));
    // A second node on the same store, which is told nothing.
    const other = new Runtime({ store, agents, clock: systemClock, ids: systemIds });
    let looks = 0;
    const { readVersions } = store;
    store.readVersions = (keys) => {
      looks++;
      expect(keys.length).toBeGreaterThan(0);
      return readVersions.call(store, keys);
    };
    const follower = new Follower({ runtime: other, clock: systemClock, lookAgainMs: 20 });
    const stop = new AbortController();
    const seen = ids.map(async (id) => {
      for await (const events of follower.follow({ tenant: "default", id }, 3, stop.signal)) {
        if (events.at(-1)?.type === "task-completed") return id;
      }
      return undefined;
    });
    await systemClock.sleep(50);
    await Promise.all(ids.map(approve));
    expect(await Promise.all(seen)).toEqual(ids);
    expect(follower.size).toBe(0);
    const before = looks;
    expect(before).toBeLessThan(40);
    await systemClock.sleep(60);
    expect(looks).toBe(before);
    store.readVersions = readVersions;
  });

  test("a hint makes it sooner", async () => {
    const { store, agents } = world.runtime;
    const { taskId: id } = await startTask(world, "janitor");
    const other = new Runtime({ store, agents, clock: systemClock, ids: systemIds });
    const follower = new Follower({ runtime: other, clock: systemClock, lookAgainMs: 60_000 });
    const stop = new AbortController();
    const followed = follower.follow({ tenant: "default", id }, 3, stop.signal);
    const next = followed.next();
    await systemClock.sleep(5);
    await approve(id);
    other.tellElsewhere({ tenant: "default", id });
    expect((await next).value?.[0]?.seq).toBe(4);
    stop.abort();
    await followed.return();
    expect(follower.size).toBe(0);
  });
});

describe("canceling", () => {
  test("what runs is aborted, and what really happened is told", async () => {
    const begun = Promise.withResolvers<void>();
    const { createScriptedAgent, createScriptedTool } = await import("../../src/testing/index.ts");
    const slow = createScriptedTool({
      name: "slow",
      gated: false,
      run: async ({ signal }) => {
        begun.resolve();
        await systemClock.sleep(60_000, signal);
        return { outcome: "failed", result: "stopped half-way" };
      },
    });
    const agent = createScriptedAgent("slowly", [{ text: "", calls: [{ tool: "slow", args: {} }] }], [slow]);
    (world.runtime.agents as Map<string, typeof agent>).set("slowly", agent);
    const sent = await rpc(
      world,
      "SendMessage",
      { message: userMessage([text("go")]), configuration: { returnImmediately: true } },
      { agent: "slowly" },
    );
    await begun.promise;
    const { result } = await rpc(world, "CancelTask", { id: sent.result.task.id }, { agent: "slowly" });
    expect(result.status.state).toBe("TASK_STATE_CANCELED");
    const told = result.history.find(({ parts }: { parts: { metadata?: object }[] }) =>
      parts.some(({ metadata }) => JSON.stringify(metadata) === '{"kagent_type":"function_response"}'),
    );
    expect(told.parts[0].data).toMatchObject({ name: "slow", response: { error: "stopped half-way" } });
  });

  test("against an approval exactly one wins", async () => {
    for (let round = 0; round < 20; round++) {
      const { taskId } = await startTask(world, "janitor");
      const ran = world.stage.ran.length;
      const [canceled, approved] = await Promise.all([rpc(world, "CancelTask", { id: taskId }), approve(taskId)]);
      const { task } = await world.runtime.load({ tenant: "default", id: taskId });
      const effects = world.stage.ran.length - ran;
      const outcome = task?.requests[0]?.decision?.outcome;
      expect([outcome, effects <= (outcome === "approved" ? 1 : 0)]).toEqual([outcome, true]);
      expect([canceled.error?.code ?? canceled.result.status.state, approved.error?.code ?? "approved"]).toBeDefined();
    }
  });
});

describe("cards", () => {
  const card = (path: string, headers: object = {}) => world.call("GET", path, { token: null, headers });

  test("need no token, and say how to talk to the agent", async () => {
    const response = await card("/a2a/asker/.well-known/agent-card.json", { "a2a-version": "1.0" });
    const body = (await response.json()) as Record<string, unknown>;
    expect(body).toMatchObject({
      name: "asker",
      supportedInterfaces: [
        { url: "http://127.0.0.1:4141/a2a/asker", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
        { protocolBinding: "JSONRPC", protocolVersion: "0.3" },
        { protocolBinding: "HTTP+JSON", protocolVersion: "0.3" },
      ],
      securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
      securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    });
    expect(body).not.toHaveProperty("url");
    expect(response.headers.get("cache-control")).toContain("max-age");
    expect(Date.parse(response.headers.get("last-modified") ?? "")).toBeGreaterThan(0);
    const etag = response.headers.get("etag") ?? "";
    const same = await card("/a2a/asker/.well-known/agent-card.json", { "a2a-version": "1.0", "if-none-match": etag });
    expect([same.status, await same.text()]).toEqual([304, ""]);
  });

  test("without a version are for both, and pure where 0.3 is off", async () => {
    const hybrid = (await (await card("/.well-known/agent-card.json")).json()) as Record<string, unknown>;
    expect(hybrid).toMatchObject({
      name: "janitor",
      protocolVersion: "0.3.0",
      url: "http://127.0.0.1:4141/a2a/janitor",
      preferredTransport: "JSONRPC",
      security: [{ bearer: [] }],
      securitySchemes: { bearer: { type: "http", scheme: "Bearer", httpAuthSecurityScheme: { scheme: "Bearer" } } },
    });
    expect(hybrid.supportedInterfaces).toHaveLength(4);
    await world.stop();
    world = startWorld({ server: { a2a: { profile: "1.0.1", legacy: false, messageIds: "unique" } } });
    const pure = (await (await card("/.well-known/agent-card.json")).json()) as Record<string, unknown>;
    expect([pure.url, (pure.supportedInterfaces as unknown[]).length]).toEqual([undefined, 2]);
  });

  test("are checked for the name in the address, and none is there for nobody", async () => {
    expect((await card("/.well-known/agent-card.json", { host: "evil.example.com" })).status).toBe(421);
    expect((await card("/a2a/nobody/.well-known/agent-card.json")).status).toBe(404);
  });

  test("with tools are for those who have a token", async () => {
    const { result } = await rpc(world, "GetExtendedAgentCard", {});
    expect(result.skills.map(({ name }: { name: string }) => name)).toContain("delete_file");
    expect((await card("/a2a/janitor/extendedAgentCard", { "a2a-version": "1.0" })).status).toBe(401);
  });
});

describe("listing", () => {
  const list = async (params: object) => (await rpc(world, "ListTasks", params)).result;

  test("is in pages, newest first, with the number of all", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      ids.push((await startTask(world, "janitor")).taskId);
      await systemClock.sleep(2);
    }
    await startTask(world, "asker");
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await list({ pageSize: 2, pageToken });
      expect([page.totalSize, page.pageSize]).toEqual([5, 2]);
      seen.push(...page.tasks.map(({ id }: { id: string }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(ids.toReversed());
  });

  test("takes every filter", async () => {
    const { taskId } = await startTask(world, "janitor");
    const task = (await rpc(world, "GetTask", { id: taskId })).result;
    const ids = async (params: object) => (await list(params)).tasks.map(({ id }: { id: string }) => id);
    expect(await ids({ contextId: task.contextId })).toEqual([taskId]);
    expect(await ids({ contextId: "another" })).toEqual([]);
    expect(await ids({ status: "TASK_STATE_INPUT_REQUIRED" })).toEqual([taskId]);
    expect(await ids({ status: "TASK_STATE_SUBMITTED" })).toEqual([]);
    expect(await ids({ status: "TASK_STATE_UNSPECIFIED" })).toEqual([taskId]);
    expect(await ids({ statusTimestampAfter: task.status.timestamp })).toEqual([taskId]);
    const later = new Date(Date.parse(task.status.timestamp) + 1).toISOString();
    expect(await ids({ statusTimestampAfter: later })).toEqual([]);
    const [listed] = (await list({ historyLength: 1 })).tasks;
    expect(listed.history).toHaveLength(1);
    expect((await list({ historyLength: 0 })).tasks[0]).not.toHaveProperty("history");
  });

  test("over HTTP+JSON takes the same as a query, also with the tenant before the path", async () => {
    const { taskId } = await startTask(world, "janitor");
    for (const prefix of ["/a2a/janitor", "/a2a/janitor/default"]) {
      const query = "?pageSize=1&status=TASK_STATE_INPUT_REQUIRED&includeArtifacts=true&historyLength=0";
      const response = await world.call("GET", `${prefix}/tasks${query}`, { headers: { "a2a-version": "1.0" } });
      expect(await response.json()).toMatchObject({ tasks: [{ id: taskId }], nextPageToken: "", totalSize: 1 });
    }
  });
});

test("an extension that is asked for is told, and stands in metadata", async () => {
  const uri = "https://kagent.dev/extensions/hitl/v1";
  const response = await world.call("POST", "/a2a/janitor", {
    token: OWNER_TOKEN,
    headers: { "a2a-version": "1.0", "a2a-extensions": `${uri}, https://example.com/unknown` },
    body: { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message: userMessage([text("go")]) } },
  });
  expect(response.headers.get("a2a-extensions")).toBe(uri);
  const { result } = (await response.json()) as { result: { task: { status: { message: object } } } };
  expect(result.task.status.message).toMatchObject({
    extensions: [uri],
    metadata: { [uri]: { type: "tool_approval_request" } },
  });
});
