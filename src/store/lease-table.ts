/**
 * Leases of one process, in memory. Right where one process is the only writer: when it dies, all its leases are gone
 * at once, and whoever takes over starts with none.
 */
import type { TaskKey } from "../task/event.ts";

interface Held {
  readonly owner: string;
  readonly fence: number;
  untilMs: number;
}

export class LeaseTable {
  readonly #held = new Map<string, Held>();
  #lastFence = 0;

  get size(): number {
    return this.#held.size;
  }

  /** Whether `owner` may take it: held by nobody, or by another whose lease has run out. */
  isFree(key: TaskKey, owner: string, nowMs: number): boolean {
    const held = this.#held.get(nameOf(key));
    return held === undefined || (held.owner !== owner && held.untilMs <= nowMs);
  }

  take(key: TaskKey, owner: string, untilMs: number): number {
    const fence = ++this.#lastFence;
    this.#held.set(nameOf(key), { owner, fence, untilMs });
    return fence;
  }

  isHeld(key: TaskKey, fence: number): boolean {
    return this.#held.get(nameOf(key))?.fence === fence;
  }

  renew(owner: string, untilMs: number): void {
    for (const held of this.#held.values()) {
      if (held.owner === owner) held.untilMs = untilMs;
    }
  }

  release(key: TaskKey): void {
    this.#held.delete(nameOf(key));
  }
}

export function nameOf(key: TaskKey): string {
  return `${key.tenant}\n${key.id}`;
}
