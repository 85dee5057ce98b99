import { getEventListeners } from "node:events";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "./clock.ts";

describe("sleeping", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("takes as long as asked", async () => {
    const woke = vi.fn();
    void systemClock.sleep(1_000).then(woke);
    await vi.advanceTimersByTimeAsync(999);
    expect(woke).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(woke).toHaveBeenCalled();
  });

  test("ends when its signal aborts, without an error and without a timer left", async () => {
    const abort = new AbortController();
    const sleep = systemClock.sleep(1_000_000, abort.signal);
    abort.abort();
    await sleep;
    expect(vi.getTimerCount()).toBe(0);
  });

  test("does not begin when its signal has aborted before", async () => {
    await systemClock.sleep(1_000_000, AbortSignal.abort());
    expect(vi.getTimerCount()).toBe(0);
  });

  test("leaves no listener on a signal that outlives it", async () => {
    const { signal } = new AbortController();
    const sleeps = Array.from({ length: 20 }, () => systemClock.sleep(10, signal));
    expect(getEventListeners(signal, "abort")).toHaveLength(20);
    await vi.advanceTimersByTimeAsync(10);
    await Promise.all(sleeps);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

test("time is in whole milliseconds since 1970", () => {
  const now = systemClock.nowMs();
  expect(Number.isSafeInteger(now)).toBe(true);
  expect(Math.abs(now - Date.now())).toBeLessThan(1_000);
});

test("a turn lets everything go first that was ready", async () => {
  const order: string[] = [];
  queueMicrotask(() => order.push("microtask"));
  setImmediate(() => order.push("immediate"));
  await systemClock.turn();
  expect(order).toEqual(["microtask", "immediate"]);
});

// setTimeout takes 31 bits: what is longer fires after 1 ms. A deadline in a month would become a busy loop.
test("sleeping longer than 24.8 days does not end at once", async () => {
  const abort = new AbortController();
  const long = systemClock.sleep(2 ** 31, abort.signal).then(() => "woke");
  const first = await Promise.race([long, systemClock.sleep(30).then(() => "still asleep")]);
  abort.abort();
  expect(first).toBe("still asleep");
});
