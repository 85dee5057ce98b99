/** Time as a port. The store's clock is the authority for deadlines; this one paces the work of a process. */

export interface Clock {
  nowMs(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Resolves when the event loop comes round: a yield for long work, and the moment a group commit is gathered. */
  turn(): Promise<void>;
}

/** A longer one would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, TIMER_MAX_MS));
      signal?.addEventListener("abort", done, { once: true });
    }),
  turn: () => new Promise((resolve) => setImmediate(resolve)),
};
