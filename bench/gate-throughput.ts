/**
 * Pause, decide and resume, at several levels of concurrency. The product works on one database, the bare statements on
 * its twin; both take turns in short slices, so that a noisy minute hits both.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../src/ports/clock.ts";
import { systemIds } from "../src/ports/ids.ts";
import { Runtime } from "../src/runtime/runtime.ts";
import { MemoryStore } from "../src/store/memory.ts";
import type { Store } from "../src/store/store.ts";
import { type Append, type Bare, type Bed, type BedAddress, keepAppends, openBed } from "./bed.ts";
import { timeFdatasync } from "./floor.ts";
import { closedLoops, type Summary, summarize, type Timing } from "./measure.ts";
import {
  approve,
  createAgents,
  createOrders,
  Follower,
  type Open,
  type Order,
  startMeasured,
  TENANT,
} from "./workload.ts";

export interface ThroughputPlan {
  readonly product: BedAddress;
  readonly twin: BedAddress;
  /** A folder on the disk whose fdatasync is the floor. */
  readonly disk: string;
  readonly levels: readonly { readonly atOnce: number; readonly tasks: number }[];
}

/** One figure, its two floors. */
export interface Compared {
  readonly product: Summary;
  readonly bare: Summary;
  readonly fdatasync: Summary;
}

export interface Level {
  readonly atOnce: number;
  readonly pause: Compared;
  readonly decide: Compared;
  /** Approval to completed, workers running. */
  readonly resume: Compared;
}

const SLICES = 5;
const WARM_UP = 200;
const FDATASYNCS = 100;

export async function measureThroughput(plan: ThroughputPlan): Promise<Level[]> {
  const product = await openBed(plan.product);
  const twin = await openBed(plan.twin);
  await (await twin.open()).close(); // makes the schema
  const bare = await twin.openBare();
  await measureLevel(product, bare, plan.disk, { atOnce: 16, tasks: WARM_UP });
  const levels: Level[] = [];
  for (const level of plan.levels) {
    process.stderr.write(`  ${level.atOnce} at once: ${level.tasks} tasks\n`);
    levels.push(await measureLevel(product, bare, plan.disk, level));
  }
  await bare.close();
  return levels;
}

interface PausedOrder {
  readonly order: Order;
  readonly open: Open;
}

async function measureLevel(
  product: Bed,
  bare: Bare,
  disk: string,
  { atOnce, tasks }: { atOnce: number; tasks: number },
): Promise<Level> {
  const compare = async <T, B>(
    works: readonly T[],
    bareWorks: readonly B[],
    run: (slice: readonly T[]) => Promise<Timing>,
    runBare: (slice: readonly B[]) => Promise<Timing>,
  ): Promise<Compared> => {
    const ours: Timing[] = [];
    const theirs: Timing[] = [];
    const disks: Timing[] = [];
    const size = Math.ceil(works.length / SLICES);
    for (let i = 0; i < works.length; i += size) {
      ours.push(await run(works.slice(i, i + size)));
      theirs.push(await runBare(bareWorks.slice(i, i + size)));
      disks.push(timeFdatasync(disk, FDATASYNCS));
    }
    return { product: summarize(...ours), bare: summarize(...theirs), fdatasync: summarize(...disks) };
  };

  // Half of the tasks are decided with nobody working on them, the other half with workers running.
  const half = Math.ceil(tasks / 2);
  const logs = await recordLogs(tasks);
  const paused: PausedOrder[] = [];
  const pause = await withNode(product, (follower) =>
    compare(
      createOrders(tasks),
      logs.map((log) => log.slice(0, 2)),
      (slice) =>
        closedLoops(slice, atOnce, async (order) => {
          paused.push({ order, open: await follower.pause(order) });
        }),
      (slice) => bare.run(slice, atOnce),
    ),
  );
  const resume = await withNode(product, (follower) =>
    compare(
      paused.slice(half),
      logs.slice(half).map((log) => log.slice(2)),
      (slice) => closedLoops(slice, atOnce, ({ order, open }) => follower.resume(order, open)),
      (slice) => bare.run(slice, atOnce),
    ),
  );
  const decide = await withRuntime(product, (runtime) =>
    compare(
      paused.slice(0, half),
      logs.slice(0, half).map((log) => log.slice(2, 3).map((append) => ({ ...append, readsLog: true }))),
      (slice) => closedLoops(slice, atOnce, ({ open }) => approve(runtime, open)),
      (slice) => bare.run(slice, atOnce),
    ),
  );
  await finishAll(product);
  return { atOnce, pause, decide, resume };
}

/** What was decided with nobody working on it must not be the workload of the next level. */
async function finishAll(bed: Bed): Promise<void> {
  await withNode(bed, async (_, store) => {
    while ((await store.listTasks({ tenant: TENANT, state: "working", limit: 1 })).items.length > 0) await sleep(50);
  });
}

/** The store is opened anew, so no task is in the runtime's cache: decisions come long after the pause. */
async function withRuntime<T>(bed: Bed, use: (runtime: Runtime) => Promise<T>): Promise<T> {
  const store = await bed.open();
  const result = await use(new Runtime({ store, clock: systemClock, ids: systemIds, agents: createAgents() }));
  await store.close();
  return result;
}

async function withNode<T>(bed: Bed, use: (follower: Follower, store: Store) => Promise<T>): Promise<T> {
  const store = await bed.open();
  const node = startMeasured(store, createAgents());
  const result = await use(new Follower(node.runtime), store);
  await node.stop();
  await store.close();
  return result;
}

/** The memory store looks through all its tasks at every step; small ones stay quick. */
const RECORD_AT_ONCE = 200;

/** What whole tasks append, from order to end, recorded in memory for the bare statements. */
async function recordLogs(count: number): Promise<Append[][]> {
  const logs: Append[][] = [];
  for (let left = count; left > 0; left -= RECORD_AT_ONCE) {
    logs.push(...(await recordSome(Math.min(left, RECORD_AT_ONCE))));
  }
  return logs;
}

async function recordSome(count: number): Promise<Append[][]> {
  const kept: Append[] = [];
  const store: Store = keepAppends(new MemoryStore(systemClock), kept, false);
  const node = startMeasured(store, createAgents());
  const follower = new Follower(node.runtime);
  await closedLoops(createOrders(count), 64, async (order) => follower.resume(order, await follower.pause(order)));
  await node.stop();
  return [...Map.groupBy(kept, ({ key }) => key.id).values()];
}
