import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { splitCommandLine, WORDS_MAX } from "./command-line.ts";

const words = (line: string) => {
  const split = splitCommandLine(line);
  if (!split.ok) throw new Error(split.text);
  return split.words;
};

test("words are what quotes and backslashes say", () => {
  expect(words(`git commit -m 'two words' "and \\"more\\"" a\\ b`)).toEqual([
    "git",
    "commit",
    "-m",
    "two words",
    'and "more"',
    "a b",
  ]);
});

test("a refusal names the character, its place, and what to do", () => {
  expect(splitCommandLine("ls | wc")).toMatchObject({ ok: false, code: "not-allowed" });
  expect(splitCommandLine("ls | wc")).toHaveProperty(
    "text",
    expect.stringMatching(/"\|" at position 4 .* single quotes/),
  );
  expect(splitCommandLine("ls\nid")).toHaveProperty("text", expect.stringContaining("a line break at position 3"));
});

test("quoted words come back as they were", () => {
  const quote = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
  const anyWord = fc.string({ unit: "grapheme" }).filter((word) => !word.includes("\0"));
  fc.assert(
    fc.property(fc.array(anyWord, { minLength: 1 }), (list) => {
      fc.pre(list[0] !== "");
      expect(words(list.map(quote).join(" "))).toEqual(list);
    }),
  );
});

test("no more words than a person can look at", () => {
  expect(splitCommandLine("a ".repeat(WORDS_MAX)).ok).toBe(true);
  expect(splitCommandLine("a ".repeat(WORDS_MAX + 1)).ok).toBe(false);
});

/** The real thing is the judge: what we take, a shell takes apart in the same way. */
test("a shell splits the same words", () => {
  const unit = fc.constantFrom(
    "a",
    "b",
    " ",
    "\t",
    "'",
    '"',
    "\\",
    "\\\\",
    "\\'",
    '\\"',
    "'x y'",
    '"x y"',
    "\\\n",
    "=",
    "-",
  );
  const lines = fc
    .sample(fc.string({ unit, minLength: 1, maxLength: 12 }), { numRuns: 3_000, seed: 1 })
    .filter((line) => splitCommandLine(line).ok);
  expect(lines.length).toBeGreaterThan(500);
  const script = lines.map((line) => `printf '%s\\0' ${line}\nprintf '\\1'`).join("\n");
  const parts = execFileSync("sh", ["-f"], { input: script, encoding: "utf8" }).split("\u0001").slice(0, -1);
  expect(parts.map((part) => part.split("\0").slice(0, -1))).toEqual(lines.map(words));
});
