/** How time is taken: closed loops, percentiles, and a watch on the event loop. */
import { monitorEventLoopDelay } from "node:perf_hooks";

export interface Timing {
  readonly durationsMs: readonly number[];
  /** From the first start to the last end. */
  readonly wallMs: number;
}

export interface Summary {
  readonly count: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** `atOnce` loops share `works`; each takes the next one as soon as its last one is done. */
export async function closedLoops<T>(
  works: readonly T[],
  atOnce: number,
  run: (work: T) => Promise<unknown>,
): Promise<Timing> {
  const durationsMs: number[] = [];
  const left = works.values();
  const startMs = performance.now();
  const loop = async () => {
    for (const work of left) {
      const beganMs = performance.now();
      await run(work);
      durationsMs.push(performance.now() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
  return { durationsMs, wallMs: performance.now() - startMs };
}

const WARM_UP = 100;

/**
 * One after the other, with a turn of the event loop in between, so that timers and the node's own work go on. The
 * first ones do not count: the code is being compiled.
 */
export async function repeat(times: number, run: () => Promise<unknown>): Promise<Timing> {
  const durationsMs: number[] = [];
  for (let i = -WARM_UP; i < times; i++) {
    const beganMs = performance.now();
    await run();
    if (i >= 0) durationsMs.push(performance.now() - beganMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { durationsMs, wallMs: durationsMs.reduce((sum, ms) => sum + ms, 0) };
}

export function summarize(...timings: readonly Timing[]): Summary {
  const sorted = timings.flatMap(({ durationsMs }) => durationsMs).sort((a, b) => a - b);
  const wallMs = timings.reduce((sum, timing) => sum + timing.wallMs, 0);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return {
    count: sorted.length,
    perSecond: (sorted.length / wallMs) * 1000,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    maxMs: at(1),
  };
}

export interface Stalls {
  /** The longest time in which no timer of ours could fire. */
  readonly maxMs: number;
  /** The same as Node's own histogram sees it. */
  readonly histogramMaxMs: number;
  readonly p99Ms: number;
}

const SAMPLE_EVERY_MS = 2;

/** Watches the event loop until the answer is called. */
export function watchStalls(): () => Stalls {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  let maxMs = 0;
  let lastMs = performance.now();
  const timer = setInterval(() => {
    const nowMs = performance.now();
    maxMs = Math.max(maxMs, nowMs - lastMs - SAMPLE_EVERY_MS);
    lastMs = nowMs;
  }, SAMPLE_EVERY_MS);
  histogram.enable();
  return () => {
    clearInterval(timer);
    histogram.disable();
    return { maxMs, histogramMaxMs: histogram.max / 1e6, p99Ms: histogram.percentile(99) / 1e6 };
  };
}
