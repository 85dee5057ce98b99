import { expect, test } from "vitest";
import { TIME_OVER, withinMs } from "./watchdog.ts";

test("gives what the work gives, and throws what it throws", () => {
  expect(withinMs(1_000, () => 5)).toBe(5);
  expect(() =>
    withinMs(1_000, () => {
      throw new RangeError("no");
    }),
  ).toThrow(RangeError);
});

test.each([
  [
    "a loop without end",
    () => {
      for (;;);
    },
  ],
  ["a pattern that backtracks for years", () => /^(a+)+$/.test(`${"a".repeat(60)}!`)],
])("ends %s, and what comes next works", (_what, work) => {
  const startMs = performance.now();
  expect(withinMs(50, work)).toBe(TIME_OVER);
  expect(performance.now() - startMs).toBeLessThan(2_000);
  expect(withinMs(50, () => "next")).toBe("next");
});

test("nests", () => {
  expect(withinMs(1_000, () => withinMs(1_000, () => 1))).toBe(1);
});
