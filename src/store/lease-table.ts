/**
 * Leases of one process, in memory. Right where one process is the only writer: when it dies, all its leases are gone
 * at once, and whoever takes over starts with none.
 */
import { nameOf, type TaskKey } from "../task/event.ts";
import type { Lease } from "./store.ts";

export class LeaseTable {
  readonly #held = new Map<string, { readonly fence: number; untilMs: number }>();
  #lastFence = 0;

  get size(): number {
    return this.#held.size;
  }

  isFree(key: TaskKey, nowMs: number): boolean {
    const held = this.#held.get(nameOf(key));
    return held === undefined || held.untilMs <= nowMs;
  }

  take(key: TaskKey, untilMs: number): Pick<Lease, "fence" | "abandoned"> {
    const abandoned = this.#held.has(nameOf(key));
    const fence = ++this.#lastFence;
    this.#held.set(nameOf(key), { fence, untilMs });
    return { fence, abandoned };
  }

  isHeld({ key, fence }: Pick<Lease, "key" | "fence">): boolean {
    return this.#held.get(nameOf(key))?.fence === fence;
  }

  renew(leases: readonly Lease[], untilMs: number): void {
    for (const lease of leases) {
      const held = this.#held.get(nameOf(lease.key));
      if (held?.fence === lease.fence) held.untilMs = untilMs;
    }
  }

  release(key: TaskKey): void {
    this.#held.delete(nameOf(key));
  }
}
