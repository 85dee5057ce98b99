import fc from "fast-check";
import { expect, test } from "vitest";
import { systemIds } from "./ids.ts";

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

test("an id is a UUIDv7 that carries its time, up to the year 10889", () => {
  fc.assert(
    fc.property(fc.nat({ max: 2 ** 48 - 1 }), (nowMs) => {
      const id = systemIds.uuid(nowMs);
      expect(id).toMatch(UUID_V7);
      expect(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16)).toBe(nowMs);
    }),
    { numRuns: 200 },
  );
});

test("a later id sorts after an earlier one", () => {
  const ids = [1, 255, 256, 65_536, 1_700_000_000_000, 1_700_000_000_001].map((nowMs) => systemIds.uuid(nowMs));
  expect(ids).toEqual(ids.toSorted());
});

test("no id and no token comes twice", () => {
  const ids = Array.from({ length: 2_000 }, () => systemIds.uuid(1));
  const tokens = Array.from({ length: 2_000 }, () => systemIds.token());
  expect(new Set([...ids, ...tokens]).size).toBe(4_000);
});

test("a token holds 128 bits and fits into a URL and a file name", () => {
  expect(systemIds.token()).toMatch(/^[A-Za-z0-9_-]{22}$/);
});
