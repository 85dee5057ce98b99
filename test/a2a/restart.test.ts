/** Over real HTTP and a real file: a pause outlives the server, and so does whoever follows it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { startNode } from "../../src/runtime/node.ts";
import { startServer } from "../../src/server/server.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import { createAgents, OWNER_TOKEN, SERVER_CONFIG, type Stage } from "../api/world.ts";
import { approve, asTask, connect, dataOf, describeItem, type Fetch, message, request, stateOf } from "./clients.ts";
import { readFrames } from "./wire.ts";

let folder: string;
let stage: Stage;
let running: Awaited<ReturnType<typeof start>>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-a2a-"));
  stage = { ran: [], plan: "old.csv" };
  running = await start();
});
afterEach(async () => {
  await running.stop();
  rmSync(folder, { recursive: true });
});

async function start() {
  const store = SqliteStore.open({ path: join(folder, "holdpoint.db"), clock: systemClock, ids: systemIds });
  const agents = new Map(createAgents(stage).map((agent) => [agent.name, agent]));
  const node = startNode({ store, clock: systemClock, ids: systemIds, agents });
  const server = await startServer({
    runtime: node.runtime,
    server: SERVER_CONFIG,
    clock: systemClock,
    ids: systemIds,
    ownerToken: OWNER_TOKEN,
    host: "127.0.0.1",
    port: 0,
  });
  return {
    url: server.url,
    async stop() {
      server.drain();
      await server.close();
      await node.stop();
      await store.close();
    },
  };
}

async function restart(): Promise<void> {
  await running.stop();
  running = await start();
}

const fetchImpl: Fetch = (url, init) => {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${OWNER_TOKEN}`);
  return fetch(url, { ...init, headers });
};

describe.each([
  ["1.0", "JSONRPC", false],
  ["1.0", "HTTP+JSON", false],
  ["0.3", "JSONRPC", true],
  ["0.3", "HTTP+JSON", true],
] as const)("%s over %s", (_version, transport, legacy) => {
  const client = () => connect(running.url, "janitor", fetchImpl, transport, legacy);

  test("pause, restart, subscribe, approve, completed", async () => {
    const paused = asTask(await (await client()).sendMessage(request(message(["tidy up"]))));
    await restart();
    const [asked] = dataOf(
      (await (await client()).getTask({ tenant: "", id: paused.id, historyLength: undefined })).status?.message,
    );
    const seen: string[] = [];
    for await (const item of (await client()).resubscribeTask({ tenant: "", id: paused.id })) {
      seen.push(describeItem(item));
      if (seen.length > 1) continue;
      const answer = message([approve(asked?.requestId)], { taskId: paused.id });
      expect(stateOf(asTask(await (await client()).sendMessage(request(answer))))).toBe("TASK_STATE_COMPLETED");
    }
    expect(seen).toEqual([
      "task TASK_STATE_INPUT_REQUIRED",
      "status TASK_STATE_WORKING",
      "status TASK_STATE_WORKING",
      "status TASK_STATE_COMPLETED",
    ]);
    expect(stage.ran).toEqual([{ path: "old.csv" }]);
  });
});

test("a subscriber that comes back sees everything once", async () => {
  const client = await connect(running.url, "janitor", fetchImpl, "JSONRPC");
  const { id } = asTask(await client.sendMessage(request(message(["tidy up"]))));
  const subscribe = (after?: string) =>
    fetchImpl(`${running.url}/a2a/janitor/tasks/${id}:subscribe`, {
      headers: { "a2a-version": "1.0", ...(after === undefined ? {} : { "last-event-id": after }) },
    });
  const cutOff = readFrames(await subscribe());
  await systemClock.sleep(20);
  await restart();
  const first = await cutOff;
  expect(first.map((frame) => frame.id)).toEqual(["3-0"]);
  const again = await connect(running.url, "janitor", fetchImpl, "JSONRPC");
  await again.sendMessage(request(message(["approve"], { taskId: id })));
  // The task is over by now; what was missed is still told.
  const rest = await readFrames(await subscribe(first.at(-1)?.id));
  expect(rest.map((frame) => frame.id)).toEqual(["3-0", "5-1", "7-1", "9-1"]);
});

test("whoever hangs up while waiting leaves the task alone and nothing behind", async () => {
  const hangUp = new AbortController();
  const body = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message: rawMessage() } };
  const sent = fetchImpl(`${running.url}/a2a/talker`, {
    method: "POST",
    headers: { "a2a-version": "1.0", "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: hangUp.signal,
  }).catch((error: Error) => error.name);
  await systemClock.sleep(20);
  hangUp.abort();
  expect(await sent).toBe("AbortError");
  const list = () =>
    fetchImpl(`${running.url}/a2a/talker/tasks`, { headers: { "a2a-version": "1.0" } }).then((r) => r.json());
  await expect.poll(list).toMatchObject({ tasks: [{ status: { state: "TASK_STATE_INPUT_REQUIRED" } }] });
});

function rawMessage() {
  return { messageId: "hang-up", role: "ROLE_USER", parts: [{ text: "go" }] };
}
