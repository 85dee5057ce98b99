import fc from "fast-check";
import { expect, test } from "vitest";
import type { RequestView } from "../client/client.ts";
import { shortTails } from "./find.ts";
import { list } from "./inbox.ts";
import { columnsOf } from "./words.ts";

const NOW = Date.parse("2026-01-01T01:00:00.000Z");
const clock = { nowMs: () => NOW } as never;

function request(id: string, changes: Partial<RequestView> = {}): RequestView {
  // What a list looks at.
  const known = { id, kind: "approval", tool: "delete_file", args: { path: "a" }, risk: "medium", path: ["assistant"] };
  const times = { openedAt: "2026-01-01T00:00:00.000Z", expiresAt: null };
  return { ...known, ...times, ...changes } as unknown as RequestView;
}

test("the end of an id stands for it: seven characters, or as many more as it takes", () => {
  const a = "input-019a8f3e-0000-7000-8000-0000aaabcb7b-1";
  const b = "input-019a8f3e-0000-7000-8000-0000bbbbcb7b-1";
  expect(shortTails([a])).toEqual(["bcb7b-1"]);
  expect(shortTails([a, b])).toEqual(["abcb7b-1", "bbcb7b-1"]);
  expect(shortTails([a, a.replace(/1$/, "2")])).toEqual(["bcb7b-1", "bcb7b-2"]);
  // One that is the end of another is whole.
  expect(shortTails(["b-1234567", "ab-1234567"])).toEqual(["b-1234567", "ab-1234567"]);
});

test("every row of the list fits on a line of 80 columns, or of the terminal", () => {
  const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 90, size: "max" });
  const columns = fc.constantFrom(undefined, 0, 80, 120);
  fc.assert(
    fc.property(words, words, fc.array(words, { minLength: 1, maxLength: 4 }), columns, (prompt, tool, path, width) => {
      const rows = [
        request("input-t-1234567", { kind: "input", prompt, path }),
        request("input-t-7654321", { tool, risk: "high", expiresAt: "2026-04-01T00:00:00.000Z" }),
      ];
      const output = width === undefined ? {} : { columns: width };
      for (const line of list(rows, () => true, { clock, output }).split("\n"))
        expect(columnsOf(line)).toBeLessThan(width || 80);
    }),
  );
});

test("the list says how old each is, and what is not wanted still counts for the ends of ids", () => {
  const rows = [request("input-aa-1234567"), request("input-ba-1234567", { risk: "high" })];
  expect(list(rows, ({ risk }) => risk === "high", { clock, output: {} })).toBe(
    'ID          RISK  WHAT                      AGENT      AGE   EXPIRES\nba-1234567  high  delete_file {"path":"a"}  assistant  1h0m  -\n',
  );
  expect(list(rows, () => false, { clock, output: {} })).toBe("Nothing needs you.\n");
});
