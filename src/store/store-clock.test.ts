import { expect, test } from "vitest";
import { StoreClock } from "./store-clock.ts";

const HOUR_MS = 3_600_000;

function clockAt(wallMs: number, committedMs?: number) {
  const wall = { ms: wallMs };
  const clock = new StoreClock({ nowMs: () => wall.ms }, committedMs);
  return { wall, clock };
}

test("follows the wall clock", () => {
  const { wall, clock } = clockAt(1000);
  expect(clock.nowMs()).toBe(1000);
  wall.ms = 1500;
  expect(clock.nowMs()).toBe(1500);
});

test("does not go back with the wall clock, and goes on ticking", () => {
  const { wall, clock } = clockAt(10 * HOUR_MS);
  wall.ms -= HOUR_MS;
  expect(clock.nowMs()).toBe(10 * HOUR_MS);
  wall.ms += 250;
  expect(clock.nowMs()).toBe(10 * HOUR_MS + 250);
});

test("starts no earlier than what was committed", () => {
  const { wall, clock } = clockAt(1000, 5000);
  expect(clock.nowMs()).toBe(5000);
  wall.ms = 1100;
  expect(clock.nowMs()).toBe(5100);
});

test("a jump ahead is taken: it can only close what is due, never revive it", () => {
  const { wall, clock } = clockAt(1000);
  wall.ms += HOUR_MS;
  expect(clock.nowMs()).toBe(1000 + HOUR_MS);
});
