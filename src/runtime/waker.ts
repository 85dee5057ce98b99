/**
 * Who calls `advance` when a task is due. `wake_at`, written by `append`, is the truth; a hint only makes it sooner.
 * The SQL waker works on leases and is right for every store; engines that people already run are adapters of the port.
 *
 * W1  A task is advanced by one worker at a time, which holds its lease.
 * W2  Losing every hint costs at most one poll.
 */
import { isFault } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Lease, Leases, Retry } from "../store/store.ts";
import { nameOf, type TaskKey } from "../task/event.ts";
import { LeaseLost, RetryLater } from "./runtime.ts";

export interface Waker {
  /** The task may be due at `atMs`. */
  hint(key: TaskKey, atMs: number): void;
  start(advance: (lease: Lease) => Promise<void>): void;
  /** Takes nothing new and waits for what is under way. */
  stop(): Promise<void>;
}

export interface SqlWakerOptions {
  readonly leases: Leases;
  readonly clock: Clock;
  readonly concurrency?: number;
  readonly pollMs?: number;
  readonly leaseMs?: number;
  readonly heartbeatMs?: number;
  /** Where a failed advance is told. */
  readonly onFailure?: (key: TaskKey, error: unknown) => void;
}

/** A reason of its own: without one, each abort would make an error with a stack. */
const AWAKE = "awake";
/** Taken at a time; bounds how long the event loop is held. */
const CLAIM_MAX = 128;
const BACKOFF_FIRST_MS = 250;
const BACKOFF_MAX_MS = 30_000;

export class SqlWaker implements Waker {
  readonly #options: Required<SqlWakerOptions>;
  readonly #active = new Map<Lease, Promise<void>>();
  readonly #busy = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #stopped = new AbortController();
  #nap = new AbortController();
  #loops: readonly Promise<void>[] = [];

  constructor(options: SqlWakerOptions) {
    this.#options = {
      concurrency: 64,
      pollMs: 1000,
      leaseMs: 5000,
      heartbeatMs: 1500,
      onFailure: () => {},
      ...options,
    };
  }

  hint(key: TaskKey): void {
    // Whoever works on it looks at it again before he gives it back, and then everything due is looked for.
    if (!this.#busy.has(nameOf(key))) this.#nap.abort(AWAKE);
  }

  start(advance: (lease: Lease) => Promise<void>): void {
    this.#loops = [this.#takeDue(advance), this.#keepAlive()];
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#nap.abort(AWAKE);
    await this.#loops[0];
    await Promise.all(this.#active.values());
    this.#stopped.abort();
    await this.#loops[1];
  }

  async #takeDue(advance: (lease: Lease) => Promise<void>): Promise<void> {
    const { leases, concurrency, leaseMs, pollMs, clock } = this.#options;
    while (!this.#stopping.signal.aborted) {
      // A hint from here on cuts the nap short, so nothing that is due is slept over.
      this.#nap = new AbortController();
      const free = Math.min(concurrency - this.#active.size, CLAIM_MAX);
      const taken = free > 0 ? await leases.claimDue(free, leaseMs, this.#working()).catch(noneIfDown) : [];
      for (const lease of taken) this.#run(lease, advance);
      // Fewer than there was room for: that was all.
      if (taken.length < free || this.#active.size >= concurrency) await clock.sleep(pollMs, this.#nap.signal);
    }
  }

  #working(): readonly Lease[] {
    return [...this.#active.keys()];
  }

  #run(lease: Lease, advance: (lease: Lease) => Promise<void>): void {
    const work = this.#advance(lease, advance).finally(() => {
      this.#active.delete(lease);
      this.#busy.delete(nameOf(lease.key));
      // Somebody may be waiting for the slot.
      this.#nap.abort(AWAKE);
    });
    this.#active.set(lease, work);
    this.#busy.add(nameOf(lease.key));
  }

  async #advance(lease: Lease, advance: (lease: Lease) => Promise<void>): Promise<void> {
    const { onFailure, clock, pollMs } = this.#options;
    const { attempts } = lease;
    let retry: Retry | undefined;
    try {
      await advance(lease);
    } catch (error) {
      if (error instanceof LeaseLost) return;
      onFailure(lease.key, error);
      // A store that was away is not the task's failure: wait a little and let it come round again, uncounted.
      if (isFault(error) && error.retry) await clock.sleep(pollMs, this.#stopping.signal);
      else if (error instanceof RetryLater) retry = { afterMs: error.afterMs, attempts };
      else retry = { afterMs: backoffMs(attempts), attempts: attempts + 1 };
    }
    await this.#release(lease, retry);
  }

  /** Nobody else may take it before it is given back or has run out, so giving back is worth trying again. */
  async #release(lease: Lease, retry: Retry | undefined): Promise<void> {
    const { leases, clock, pollMs } = this.#options;
    for (;;) {
      try {
        return await leases.release(lease, retry);
      } catch (error) {
        if (!isFault(error)) throw error;
        if (this.#stopping.signal.aborted) return; // it runs out
        await clock.sleep(pollMs, this.#stopping.signal);
      }
    }
  }

  async #keepAlive(): Promise<void> {
    const { leases, leaseMs, heartbeatMs, clock } = this.#options;
    while (!this.#stopped.signal.aborted) {
      await clock.sleep(heartbeatMs, this.#stopped.signal);
      if (this.#active.size > 0) await leases.renew(this.#working(), leaseMs).catch(noneIfDown);
    }
  }
}

function backoffMs(attempts: number): number {
  return Math.min(BACKOFF_FIRST_MS * 2 ** attempts, BACKOFF_MAX_MS);
}

/** Polling is the floor: while the store is away there is nothing to take, and the next poll asks again. */
function noneIfDown(error: unknown): readonly Lease[] {
  if (isFault(error)) return [];
  throw error;
}
