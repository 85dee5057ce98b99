/** How many tasks of one agent are worked on at once; the others queue, a bounded number in memory. */
import { nameOf, type TaskKey } from "../task/event.ts";
import { RetryLater } from "./runtime.ts";

const QUEUE_MAX = 64;
const COME_BACK_MS = 1000;

interface Pool {
  busy: number;
  readonly queue: (() => void)[];
}

export class Pools {
  readonly #pools = new Map<string, Pool>();

  /** Answers how to leave. Where too many queue already, the task comes round again later. */
  async enter(key: TaskKey, agent: string, size: number): Promise<() => void> {
    const pool = this.#pools.get(agent) ?? { busy: 0, queue: [] };
    this.#pools.set(agent, pool);
    if (pool.busy < size) {
      pool.busy++;
    } else {
      if (pool.queue.length >= QUEUE_MAX)
        throw new RetryLater(`${nameOf(key)}: ${agent} has no worker free`, COME_BACK_MS);
      await new Promise<void>((resolve) => pool.queue.push(resolve));
    }
    return () => {
      const next = pool.queue.shift();
      // A place is handed on, so that nobody overtakes.
      if (next) next();
      else pool.busy--;
    };
  }
}
