import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { BREAKS } from "./breaks.ts";

test.each(BREAKS)("$name: still fits the source, and names who must catch it", ({ file, find, replace, caughtBy }) => {
  const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
  expect(text.split(find)).toHaveLength(2);
  expect(replace).not.toBe(find);
  expect(caughtBy).not.toEqual([]);
});
