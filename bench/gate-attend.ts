/** A fresh node over a database full of paused tasks: how soon it is ready, what it weighs, how quickly it answers. */
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../src/ports/clock.ts";
import { systemIds } from "../src/ports/ids.ts";
import { Runtime } from "../src/runtime/runtime.ts";
import type { Store } from "../src/store/store.ts";
import { type Append, type Bare, type Bed, type BedAddress, keepAppends, openBed } from "./bed.ts";
import { closedLoops, repeat, type Summary, summarize } from "./measure.ts";
import { approve, createAgents, type Open, sampleOpen, startMeasured, TENANT } from "./workload.ts";

export interface AttendPlan {
  readonly address: BedAddress;
  readonly tasks: number;
  readonly scans: number;
  /** Decisions of each kind; 0 leaves the tasks as they are. */
  readonly decisions: number;
}

export interface Attended {
  readonly memory: Memory;
  readonly list: Answered;
  readonly due: Answered;
  readonly decide1?: Answered;
  readonly decide16?: Answered;
  /** With workers running, which take up every task that was approved. */
  readonly decideBusy?: Summary;
  readonly peakRssBytes: number;
}

export interface Memory {
  readonly rssBytes: number;
  readonly rssAfterGcBytes: number;
  readonly heapBytes: number;
}

export interface Answered {
  readonly product: Summary;
  readonly bare: Summary;
}

/** At least as many as a store opens. */
const CONNECTIONS = 16;
const SETTLE_MS = 2000;
const PAGE = 50;

/** The time from exec to here is taken by whoever started the process. */
export async function becomeReady(address: BedAddress): Promise<void> {
  const store = await (await openBed(address)).open();
  const node = startMeasured(store, createAgents());
  await store.listOpenRequests({ tenant: TENANT, limit: PAGE });
  process.send?.({ ready: true });
  await node.stop();
  await store.close();
}

export async function attend(plan: AttendPlan): Promise<Attended> {
  const bed = await openBed(plan.address);
  await bed.settle();
  const store = await bed.open();
  const node = startMeasured(store, createAgents());
  await store.listOpenRequests({ tenant: TENANT, limit: PAGE });
  await sleep(SETTLE_MS);
  const memory = weigh();

  const bare = await bed.openBare();
  const list = {
    product: summarize(await repeat(plan.scans, pager(store))),
    bare: summarize(await repeat(plan.scans, () => bare.listOpen())),
  };
  const due = {
    product: summarize(await repeat(plan.scans, () => store.claimDue(64, 5000, []))),
    bare: summarize(await repeat(plan.scans, () => bare.scanDue())),
  };
  const peak = () => process.resourceUsage().maxRSS * 1024;
  const peakRssBytes = peak();
  if (plan.decisions === 0) {
    await bare.close();
    await node.stop();
    await store.close();
    return { memory, list, due, peakRssBytes };
  }

  const sample = await sampleOpen(store, plan.tasks, plan.decisions * 5);
  const share = (i: number) => sample.slice(i * plan.decisions, (i + 1) * plan.decisions);
  await warm(store);
  const decideBusy = summarize(await closedLoops(share(0), 16, (open) => approve(node.runtime, open)));
  await node.stop();
  await store.close();
  const decide1 = await compareDecisions(bed, bare, share(1), share(2), 1);
  const decide16 = await compareDecisions(bed, bare, share(3), share(4), 16);
  await bare.close();
  return { memory, list, due, decide1, decide16, decideBusy, peakRssBytes: peak() };
}

/** Real decisions for some requests, and for as many others, bare, what they would have written. */
async function compareDecisions(
  bed: Bed,
  bare: Bare,
  ours: readonly Open[],
  theirs: readonly Open[],
  atOnce: number,
): Promise<Answered> {
  const store = await bed.open();
  const parts = { clock: systemClock, ids: systemIds, agents: createAgents() };
  const kept: Append[] = [];
  const dry = new Runtime({ ...parts, store: keepAppends(store, kept, true) });
  await closedLoops(theirs, 1, (open) => approve(dry, open));
  const runtime = new Runtime({ ...parts, store });
  await warm(store);
  const product = await closedLoops(ours, atOnce, (open) => approve(runtime, open));
  const floor = await bare.run(
    kept.map((append) => [{ ...append, readsLog: true }]),
    atOnce,
  );
  await store.close();
  return { product: summarize(product), bare: summarize(floor) };
}

/** As the bare one: every connection is open before the clock starts. */
async function warm(store: Store): Promise<void> {
  await Promise.all(Array.from({ length: CONNECTIONS }, () => store.ping()));
}

/** Goes through the pages one by one, and begins again at the end. */
function pager(store: Store): () => Promise<void> {
  let cursor: string | undefined;
  return async () => {
    const page = await store.listOpenRequests({ tenant: TENANT, limit: PAGE, ...(cursor ? { cursor } : {}) });
    if (page.items.length === 0) throw new Error("no open requests");
    cursor = page.nextCursor;
  };
}

function weigh(): Memory {
  const { rss: rssBytes } = process.memoryUsage();
  globalThis.gc?.();
  const { rss: rssAfterGcBytes, heapUsed: heapBytes } = process.memoryUsage();
  return { rssBytes, rssAfterGcBytes, heapBytes };
}
