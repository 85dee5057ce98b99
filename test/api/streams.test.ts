import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Client, ClientError, createClient } from "../../src/client/client.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { Streams } from "../../src/server/streams.ts";
import { OWNER_TOKEN, startTask, startWorld, type World } from "./world.ts";

let world: World;
let client: Client;
beforeEach(() => {
  world = startWorld();
  client = clientOf(world);
});
afterEach(() => world.stop());

function clientOf({ app }: World, token = OWNER_TOKEN): Client {
  return createClient({ url: "http://localhost/", token, fetch: async (url, init) => app.request(url, init) });
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

describe("watching a task", () => {
  test("begins with the task, brings text as it comes and every append, and ends with the task", async () => {
    const { id } = await client.submit({ agent: "talker", message: "go" });
    const seen: string[] = [];
    let text = "";
    let version = 0;
    for await (const event of client.watchTask(id)) {
      seen.push(event.type);
      if (event.type === "text") text += event.delta;
      if (event.type === "task") version = event.task.version;
      if (event.type !== "change") continue;
      // No gap and nothing twice.
      expect(event.change.timeline.map(({ seq }) => seq)).toEqual(
        Array.from({ length: event.change.version - version }, (_, i) => version + 1 + i),
      );
      version = event.change.version;
      for (const { id: requestId, digest } of event.change.open) {
        await client.decide(requestId, { decision: "approve", digest });
      }
    }
    expect([seen[0], text]).toEqual(["task", "I am talking."]);
    expect(version).toBe((await client.getTask(id)).version);
    expect(world.stage.ran).toHaveLength(1);
  });

  test("that is over is its snapshot and the end", async () => {
    const { taskId } = await startTask(world, "looker");
    const events = await collect(client.watchTask(taskId));
    expect(events.map(({ type }) => type)).toEqual(["task"]);
  });

  test("that does not exist is an error before anything is streamed", async () => {
    await expect(collect(client.watchTask("nothing"))).rejects.toMatchObject({
      status: 404,
      code: "task-unknown",
    });
  });
});

describe("watching requests", () => {
  test("begins with what is open, then tells what is opened and closed", async () => {
    const first = await startTask(world, "janitor");
    const seen: unknown[] = [];
    let second = "";
    for await (const event of client.watchRequests()) {
      seen.push(
        event.type === "snapshot" ? event.requests.map(({ id }) => id) : [event.request.id, event.request.status],
      );
      if (seen.length === 1) second = (await startTask(world, "asker")).requestId;
      if (seen.length === 2) await client.decide(first.requestId, { decision: "deny", reason: "no" });
      if (seen.length === 3) break;
    }
    expect(seen).toEqual([[first.requestId], [second, "open"], [first.requestId, "denied"]]);
  });

  test("of one agent tells nothing of others", async () => {
    const seen: unknown[] = [];
    for await (const event of client.watchRequests({ agent: "asker" })) {
      seen.push(event.type === "snapshot" ? "snapshot" : event.request.agent);
      if (seen.length > 1) break;
      await startTask(world, "janitor");
      await startTask(world, "asker");
    }
    expect(seen).toEqual(["snapshot", "asker"]);
  });

  test("shows what another node has changed, in a new snapshot", async () => {
    await world.stop();
    world = startWorld({ parts: { lookAgainMs: 5 } });
    client = clientOf(world);
    const seen: number[] = [];
    // Another node appends to the same store: nobody here is told.
    const silent = world.runtime.onChange.bind(world.runtime);
    world.runtime.onChange = () => () => undefined;
    for await (const event of client.watchRequests()) {
      if (event.type !== "snapshot") continue;
      seen.push(event.requests.length);
      if (seen.length === 2) break;
      await startTask(world, "janitor");
    }
    world.runtime.onChange = silent;
    expect(seen).toEqual([0, 1]);
  });
});

test("whoever goes away leaves nothing behind", async () => {
  const { taskId } = await startTask(world, "janitor");
  let listeners = 0;
  for (const name of ["onChange", "onText"] as const) {
    const original = world.runtime[name].bind(world.runtime) as (listener: (it: never) => void) => () => void;
    world.runtime[name] = ((listener: (it: never) => void) => {
      listeners++;
      let isHeld = true;
      const forget = original(listener);
      return () => {
        if (isHeld) listeners--;
        isHeld = false;
        forget();
      };
    }) as never;
  }
  for (const path of [`/api/tasks/${taskId}:watch`, "/api/requests:watch"]) {
    const response = await world.call("GET", path);
    const reader = response.body?.getReader();
    await reader?.read();
    expect(listeners).toBeGreaterThan(0);
    await reader?.cancel();
    await systemClock.sleep(1);
    expect([path, listeners]).toEqual([path, 0]);
  }
});

test("streams end when the server drains", async () => {
  const { taskId } = await startTask(world, "janitor");
  const ends = collect(client.watchTask(taskId));
  await systemClock.sleep(5);
  world.draining.abort();
  expect((await ends).map(({ type }) => type)).toEqual(["task"]);
});

describe("a stream", () => {
  const principal = { name: "a", issuer: "b", tenant: "c", via: "d" };

  test("says that it is still there every 15 seconds, and no longer when it is over", async () => {
    const sleeps: number[] = [];
    let wake = () => {};
    const clock = {
      ...systemClock,
      sleep: (ms: number, signal?: AbortSignal) => {
        sleeps.push(ms);
        return new Promise<void>((resolve) => {
          wake = resolve;
          signal?.addEventListener("abort", () => resolve());
        });
      },
    };
    const streams = new Streams(clock, new AbortController().signal);
    const response = streams.open(
      principal,
      ({ signal }) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
    );
    const reader = response?.body?.getReader();
    wake();
    const { value } = (await reader?.read()) ?? {};
    expect([new TextDecoder().decode(value), sleeps[0]]).toEqual([": still here\n\n", 15_000]);
    await reader?.cancel();
    await systemClock.turn();
    expect([streams.size, sleeps.length]).toEqual([0, 2]);
  });

  test("that nobody reads is cut off after 1 MiB, and its writer is told", async () => {
    const streams = new Streams(systemClock, new AbortController().signal);
    let sent = 0;
    const response = streams.open(principal, async ({ signal, send }) => {
      for (; !signal.aborted && sent < 1000; sent++) send("x", "y".repeat(64 * 1024));
    });
    await systemClock.turn();
    expect(sent).toBeLessThan(20);
    await expect(response?.text()).rejects.toThrow("too slow");
    expect(streams.size).toBe(0);
  });

  test("is refused when its principal has 100 already, and others are not", async () => {
    const streams = new Streams(systemClock, new AbortController().signal);
    const wait = ({ signal }: { signal: AbortSignal }) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    const open = Array.from({ length: 100 }, () => streams.open(principal, wait));
    expect(open.every(Boolean)).toBe(true);
    expect(streams.open(principal, wait)).toBeUndefined();
    const other = streams.open({ ...principal, name: "other" }, wait);
    expect(other).toBeDefined();
    await open[0]?.body?.cancel();
    const again = streams.open(principal, wait);
    expect(again).toBeDefined();
    for (const response of [...open.slice(1), other, again]) await response?.body?.cancel();
    expect(streams.size).toBe(0);
  });

  test("cannot be broken up by what it carries", async () => {
    const streams = new Streams(systemClock, new AbortController().signal);
    const response = streams.open(principal, async ({ send }) => send("x", "a\n\nevent: request\r\ndata: {}\u2028"));
    expect((await response?.text())?.split("\n")).toHaveLength(4);
  });
});

describe("the client", () => {
  test("says what the server said no to, with the winner", async () => {
    const { requestId } = await startTask(world, "janitor");
    await client.decide(requestId, { decision: "deny", reason: "wrong" });
    const { digest } = await client.getRequest(requestId);
    const error = await client.decide(requestId, { decision: "approve", digest }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ status: 409, code: "already-decided", body: { decision: { outcome: "denied" } } });
  });

  test("says that nothing is known when nobody answers", async () => {
    const lost = createClient({
      url: "http://localhost",
      token: "x",
      fetch: () => Promise.reject(new Error("refused")),
    });
    await expect(lost.agents()).rejects.toMatchObject({ status: 0, code: "unreachable" });
  });

  test("survives an answer from something else", async () => {
    const odd = createClient({
      url: "http://localhost",
      token: "x",
      fetch: async () => new Response("<html>", { status: 502 }),
    });
    await expect(odd.agents()).rejects.toMatchObject({ status: 502, code: "answer-unreadable" });
  });

  test("lists, starts and cancels", async () => {
    const { id } = await client.submit({ agent: "janitor", message: "go" });
    expect((await client.listTasks({ limit: 1 })).tasks.map((task) => task.id)).toEqual([id]);
    expect((await client.agents()).length).toBeGreaterThan(2);
    const canceled = await client.cancel(id);
    expect(["canceled", "working"]).toContain(canceled.state);
  });
});
