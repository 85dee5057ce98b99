/** The last SDK of 0.3, as people have it installed, and what it cannot see: `final`. */
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "a2a-sdk-03/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OWNER_TOKEN, startTask, startWorld, type World } from "../api/world.ts";
import { collect, type Fetch } from "./clients.ts";
import { readFrames } from "./wire.ts";

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world.stop());

const fetchImpl: Fetch = async (url, init) => {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${OWNER_TOKEN}`);
  return world.app.request(String(url), { ...init, headers });
};

let count = 0;
const message = (parts: object[], more: object = {}) => ({
  message: {
    kind: "message" as const,
    messageId: `old-${++count}`,
    role: "user" as const,
    parts: parts as never,
    ...more,
  },
});

describe.each([["JSONRPC"], ["HTTP+JSON"]])("the 0.3 SDK over %s", (transport) => {
  const connect = () =>
    new ClientFactory({
      transports: [
        transport === "JSONRPC" ? new JsonRpcTransportFactory({ fetchImpl }) : new RestTransportFactory({ fetchImpl }),
      ],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    }).createFromUrl("http://127.0.0.1:4141", "/a2a/janitor/.well-known/agent-card.json");

  test("reads the card, sends, is paused, approves, and gets the end", async () => {
    const client = await connect();
    const paused = await client.sendMessage(message([{ kind: "text", text: "tidy up" }]));
    if (paused.kind !== "task") throw new Error("no task");
    expect(paused.status.state).toBe("input-required");
    const [, part] = paused.status.message?.parts ?? [];
    expect(part).toMatchObject({
      kind: "data",
      data: { type: "a2a.input.request", requestId: `input-${paused.id}-1` },
    });
    const response = { type: "a2a.input.response", requestId: `input-${paused.id}-1`, values: { decision: "approve" } };
    const ended = await client.sendMessage(message([{ kind: "data", data: response }], { taskId: paused.id }));
    if (ended.kind !== "task") throw new Error("no task");
    expect(ended.status).toMatchObject({
      state: "completed",
      message: { parts: [{ kind: "text", text: "All done." }] },
    });
    expect((await client.getTask({ id: paused.id })).status.state).toBe("completed");
    expect(world.stage.ran).toHaveLength(1);
  });

  test("streams to the pause, subscribes and cancels", async () => {
    const client = await connect();
    const items = await collect(client.sendMessageStream(message([{ kind: "text", text: "tidy up" }])));
    expect(items.map((item) => [item.kind, "status" in item ? item.status.state : ""])).toEqual([
      ["task", "working"],
      ["status-update", "working"],
      ["status-update", "input-required"],
    ]);
    const id = items[0]?.kind === "task" ? items[0].id : "";
    const seen: unknown[] = [];
    for await (const item of client.resubscribeTask({ id })) {
      seen.push("status" in item ? item.status.state : item.kind);
      if (seen.length === 1) expect((await client.cancelTask({ id })).status.state).toBe("canceled");
    }
    expect(seen).toEqual(["input-required", "canceled"]);
  });
});

describe("final is true exactly where the stream closes", () => {
  const stream = (method: string, params: object) =>
    world.call("POST", "/a2a/janitor", { body: { jsonrpc: "2.0", id: 7, method, params } });
  const finals = (frames: { data: { result: { kind: string; final?: boolean } } }[]) =>
    frames.map(({ data }) => data.result.final ?? data.result.kind);

  test("at the pause, for who sent the message; at the end, for who follows the task", async () => {
    const frames = await readFrames(await stream("message/stream", message([{ kind: "text", text: "tidy up" }])));
    expect(finals(frames)).toEqual(["task", false, true]);
    const { taskId, requestId } = await startTask(world, "janitor");
    const followed = readFrames(await stream("tasks/resubscribe", { id: taskId }));
    const { digest } = (await (await world.call("GET", `/api/requests/${requestId}`)).json()) as { digest: string };
    await world.call("POST", `/api/requests/${requestId}/decision`, { body: { decision: "approve", digest } });
    expect(finals(await followed)).toEqual(["task", false, false, true]);
  });
});
