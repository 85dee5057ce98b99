/** One working node: the runtime, a worker with its waker, and the sealer. */
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Store } from "../store/store.ts";
import type { TaskKey } from "../task/event.ts";
import { wakeAtMs } from "../task/rows.ts";
import type { Agents } from "./agent.ts";
import { Runtime } from "./runtime.ts";
import { Sealer } from "./sealer.ts";
import { SqlWaker, type SqlWakerOptions, type Waker } from "./waker.ts";
import { Worker } from "./worker.ts";

export interface NodeParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly agents: Agents;
  readonly hints?: Hints;
  readonly waker?: Omit<SqlWakerOptions, "leases" | "clock">;
}

/** Nodes that share a database tell each other what has changed, and what is due; without it they find out by polling. */
export interface Hints {
  hint(key: TaskKey, isDue: boolean): void;
  listen(onHint: (key: TaskKey, isDue: boolean) => void): Promise<void>;
  stop(): Promise<void>;
}

export interface HoldpointNode {
  readonly runtime: Runtime;
  /** Finishes what is under way, seals it, and takes nothing new. The store stays open. */
  stop(): Promise<void>;
}

export function startNode({ store, clock, ids, agents, hints, waker: options }: NodeParts): HoldpointNode {
  const runtime = new Runtime({ store, clock, ids, agents });
  const worker = new Worker({ runtime, clock, ids });
  const waker: Waker = new SqlWaker({ leases: store, clock, ...options });
  const sealer = new Sealer(store, clock);
  const forget = runtime.onChange((task) => {
    const atMs = wakeAtMs(task);
    if (atMs !== null) waker.hint(task.key, atMs);
    hints?.hint(task.key, atMs !== null && atMs <= task.updatedAtMs);
  });
  void hints?.listen((key, isDue) => {
    if (isDue) waker.hint(key, 0);
    runtime.tellElsewhere(key);
  });
  waker.start((lease) => worker.advance(lease));
  sealer.start();
  return {
    runtime,
    async stop() {
      worker.stop();
      await waker.stop();
      forget();
      await hints?.stop();
      await sealer.stop();
    },
  };
}
