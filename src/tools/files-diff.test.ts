import { applyPatch } from "diff";
import fc from "fast-check";
import { expect, test } from "vitest";
import { findDifference, OLD_BYTES_MAX, textOf } from "./files-diff.ts";

const differ = (before: string | Buffer, after: string) => {
  const old = Buffer.from(before);
  return findDifference("a.txt", old, old.length, after);
};
const unified = (before: string, after: string) => {
  const found = differ(before, after);
  if (found.type !== "unified") throw new Error(found.type);
  return found.text;
};

test("a change is shown line by line", () => {
  expect(unified("one\ntwo\n", "one\nthree\n")).toBe("--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n");
});

test("the difference is whole: applied to the old text it gives the new one", () => {
  const anyLines = fc
    .array(fc.constantFrom("a", "b", "", "c\r", "\ufeffd", "-e", "+f", "@@ -1 +1 @@", "\\ No newline at end of file"))
    .chain((lines) => fc.constantFrom(lines.join("\n"), lines.map((line) => `${line}\n`).join("")));
  fc.assert(
    fc.property(anyLines, anyLines, (before, after) => {
      expect(applyPatch(before, unified(before, after), { autoConvertLineEndings: false })).toBe(after);
    }),
  );
});

test("texts that share nothing take no longer, and nothing is left out", () => {
  const lines = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name} ${i}`).join("\n");
  const [before, after] = [lines("old", 15_000), `${lines("new", 60_000)}\n`];
  const text = unified(before, after);
  expect(text.split("\n")).toHaveLength(3 + 15_000 + 1 + 60_000 + 1);
  expect(applyPatch(before, text)).toBe(after);
});

test("what cannot be compared is said", () => {
  expect(differ(Buffer.from([0xff, 0xfe]), "x")).toEqual({
    type: "not-shown",
    why: "the old file is not text (2 bytes)",
  });
  expect(differ("a\0b", "x")).toMatchObject({ type: "not-shown" });
  expect(differ("x".repeat(OLD_BYTES_MAX), "x").type).toBe("unified");
  expect(differ("x".repeat(OLD_BYTES_MAX + 1), "x")).toMatchObject({ type: "not-shown" });
});

test("a byte order mark is part of the text", () => {
  expect(textOf(Buffer.from("\ufeffa"))).toBe("\ufeffa");
});
