/** All deadlines pass in one second: how long until every request is closed, and does the node still breathe? */
import { type Clock, systemClock } from "../src/ports/clock.ts";
import { systemIds } from "../src/ports/ids.ts";
import { Runtime } from "../src/runtime/runtime.ts";
import type { Store } from "../src/store/store.ts";
import { type Append, type BedAddress, keepAppends, openBed } from "./bed.ts";
import { type Stalls, type Summary, summarize, watchStalls } from "./measure.ts";
import { createAgents, startMeasured, TENANT } from "./workload.ts";

export interface ExpirePlan {
  readonly address: BedAddress;
  /** The same database again, for the bare statements. */
  readonly twin: BedAddress;
  readonly tasks: number;
  readonly bareTasks: number;
  readonly deadlinesFromMs: number;
}

export interface Expired {
  /** From the first deadline to the last closed request. */
  readonly closedMs: number;
  readonly stalls: Stalls;
  readonly bare: Summary;
  readonly peakRssBytes: number;
}

/** How many tasks a node advances at once, and so how many appends share a commit at most. */
const AT_ONCE = 64;
const AHEAD_MS = 3000;
const GIVE_UP_MS = 10 * 60_000;

export async function expire(plan: ExpirePlan): Promise<Expired> {
  const store = await (await openBed(plan.address)).open(clockAt(plan.deadlinesFromMs - AHEAD_MS));
  const node = startMeasured(
    store,
    createAgents(() => 0),
  );
  const firstMs = performance.now() + AHEAD_MS;
  let stopWatch = watchStalls();
  setTimeout(() => {
    stopWatch(); // the start itself is not part of it
    stopWatch = watchStalls();
  }, AHEAD_MS / 2);
  const lastMs = await new Promise<number>((resolve, reject) => {
    let closed = 0;
    const giveUp = setTimeout(() => reject(new Error(`only ${closed} of ${plan.tasks} were closed`)), GIVE_UP_MS);
    node.runtime.onChange((task) => {
      if (!task.end || ++closed < plan.tasks) return;
      clearTimeout(giveUp);
      resolve(performance.now());
    });
  });
  const stalls = stopWatch();
  const peakRssBytes = process.resourceUsage().maxRSS * 1024;
  await node.stop();
  await store.close();
  return { closedMs: lastMs - firstMs, stalls, bare: await expireBare(plan), peakRssBytes };
}

async function expireBare({ twin, bareTasks, deadlinesFromMs }: ExpirePlan): Promise<Summary> {
  const bed = await openBed(twin);
  const store = await bed.open(clockAt(deadlinesFromMs + 2000));
  const kept: Append[] = [];
  const runtime = new Runtime({
    store: keepAppends(store, kept, true),
    clock: systemClock,
    ids: systemIds,
    agents: createAgents(),
  });
  for (const id of await firstToExpire(store, bareTasks)) {
    await runtime.execute({ tenant: TENANT, id }, [{ type: "expire" }]);
  }
  const bare = await bed.openBare();
  const timing = await bare.run(
    kept.map((append) => [append]),
    AT_ONCE,
  );
  await bare.close();
  await store.close();
  return summarize(timing);
}

/** The ids of tasks, in the order in which a node takes them up. */
async function firstToExpire(store: Store, count: number): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listByDeadline({ tenant: TENANT, limit: 200, ...(cursor ? { cursor } : {}) });
    ids.push(...page.items.map(({ taskId }) => taskId));
    cursor = page.nextCursor;
  } while (cursor !== undefined && ids.length < count);
  return ids.slice(0, count);
}

function clockAt(nowMs: number): Clock {
  const offsetMs = nowMs - Date.now();
  return { ...systemClock, nowMs: () => Date.now() + offsetMs };
}
