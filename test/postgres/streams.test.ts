/** A stream on one node sees what another node does: soon by a hint, and soon enough without. */
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { Follower } from "../../src/runtime/follower.ts";
import { startNode } from "../../src/runtime/node.ts";
import { PostgresStore } from "../../src/store/postgres.ts";
import { PostgresHints } from "../../src/store/postgres-hints.ts";
import { createAgents } from "../api/world.ts";
import { describePostgres } from "./suite.ts";

const LOOK_AGAIN_MS = 1000;
const PRINCIPAL = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };

describePostgres("streams across nodes", (suite) => {
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  /** Node A only follows, node B only works; answers how long A has waited for each task's end. */
  async function measure(rounds: number, withHints: boolean): Promise<number[]> {
    const { url } = suite.server;
    const agents = new Map(createAgents({ ran: [], plan: "x" }).map((agent) => [agent.name, agent]));
    const open = async () => {
      const store = await PostgresStore.open({ url, ids: systemIds });
      ends.push(() => store.close());
      return store;
    };
    const own = withHints ? { hints: new PostgresHints({ url, clock: systemClock }) } : {};
    const waker = { concurrency: 0 };
    const a = startNode({ store: await open(), clock: systemClock, ids: systemIds, agents, waker, ...own });
    ends.push(() => a.stop());
    const hints = new PostgresHints({ url, clock: systemClock });
    const b = startNode({ store: await open(), clock: systemClock, ids: systemIds, agents, hints });
    ends.push(() => b.stop());
    await systemClock.sleep(100);
    const follower = new Follower({ runtime: a.runtime, clock: systemClock, lookAgainMs: LOOK_AGAIN_MS });
    const endedAt = new Map<string, number>();
    b.runtime.onChange((task) => task.end && endedAt.set(task.key.id, performance.now()));
    const waits: number[] = [];
    for (let i = 0; i < rounds; i++) {
      const message = { messageId: `${withHints} ${i}`, role: "user" as const, parts: [{ text: "go" }] };
      const begun = await b.runtime.submit({ tenant: "default", agent: "looker", principal: PRINCIPAL, message });
      if (!begun.ok) throw new Error(begun.refusal.code);
      const { key } = begun.task;
      for await (const events of follower.follow(key, 0, new AbortController().signal)) {
        if (events.at(-1)?.type === "task-completed") break;
      }
      waits.push(performance.now() - (endedAt.get(key.id) ?? Number.NaN));
    }
    expect(follower.size).toBe(0);
    return waits.sort((x, y) => x - y);
  }

  test("within 150 ms by a hint", async () => {
    const waits = await measure(100, true);
    expect(waits.at(-2)).toBeLessThan(150);
  }, 60_000);

  test("within 1.5 s when no hint comes through", async () => {
    const waits = await measure(5, false);
    expect(waits.at(-1)).toBeLessThan(1500);
    expect(waits.at(-1)).toBeGreaterThan(50);
  }, 60_000);
});
