/** Fills a database with paused tasks, through the product itself. */
import { systemClock } from "../src/ports/clock.ts";
import { type BedAddress, openBed, type Size } from "./bed.ts";
import { closedLoops } from "./measure.ts";
import { createAgents, createOrders, Follower, startMeasured } from "./workload.ts";

export interface PreparePlan {
  readonly address: BedAddress;
  readonly tasks: number;
  /** All in one second; without it there are none. */
  readonly deadlines?: Deadlines;
}

export interface Deadlines {
  readonly fromMs: number;
  /** As the requests were opened, which is what equal timeouts and a node that was down lead to; or at random. */
  readonly order: "opened" | "random";
}

const AT_ONCE = 256;
const PROGRESS_EVERY = 10_000;

export async function prepare({ address, tasks, deadlines }: PreparePlan): Promise<Size> {
  const bed = await openBed(address);
  const store = await bed.open();
  let paused = 0;
  const share = () => (deadlines?.order === "random" ? Math.random() : paused / tasks);
  const timeoutMs = deadlines && (() => deadlines.fromMs + Math.floor(share() * 1000) - systemClock.nowMs());
  const node = startMeasured(store, createAgents(timeoutMs));
  const follower = new Follower(node.runtime);
  const startMs = performance.now();
  await closedLoops(createOrders(tasks), AT_ONCE, async (order) => {
    await follower.pause(order);
    if (++paused % PROGRESS_EVERY !== 0) return;
    const perSecond = Math.round((paused / (performance.now() - startMs)) * 1000);
    process.stderr.write(`  ${paused} of ${tasks} paused, ${perSecond} a second\n`);
  });
  await node.stop();
  await store.close();
  return bed.measureSize();
}
