import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, type Json } from "../task/json.ts";
import { renderValue } from "./render.ts";
import { toJsonLine } from "./terminal.ts";
import { followUps, summary, visibleOnce } from "./words.ts";
import { wrapLines } from "./wrap.ts";

/** Whatever a terminal would act on, or not show. */
const HIDDEN = /(?!\n)[\p{C}\p{Zl}\p{Zp}]/u;
const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'\n\t -:│┆"\\{}[]\u001b\u202e\u200b⟦⟧'),
    fc.string({ unit: "grapheme", maxLength: 1 }),
  ),
});
const anyJson = fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }) as fc.Arbitrary<Json>;
const anyTextInside = fc.oneof(
  anyJson,
  anyText,
  fc.array(anyText),
  fc.dictionary(anyText, anyText),
) as fc.Arbitrary<Json>;

describe("a value", () => {
  test("is shown whole: two different ones never look the same", () => {
    fc.assert(
      fc.property(anyTextInside, anyTextInside, (a, b) => {
        fc.pre(canonicalJson(a) !== canonicalJson(b));
        // Keys may stand in another order; what is shown is compared as a person would, line by line.
        expect(renderValue(a).join("\n")).not.toBe(renderValue(b).join("\n"));
      }),
      { numRuns: 2000 },
    );
  });

  test("shows nothing that a terminal would act on", () => {
    fc.assert(
      fc.property(anyTextInside, (value) => {
        expect(renderValue(value).join("\n").replaceAll("\t", "")).not.toMatch(HIDDEN);
      }),
    );
  });

  test("reads like a list of names and values", () => {
    const value = { path: "a.txt", content: "one\ntwo\n", argv: ["ls", "-l"], none: {}, mode: 420, deep: { x: null } };
    expect(renderValue(value)).toEqual([
      'path: "a.txt"',
      "content:",
      "  │ one",
      "  │ two",
      "  │ ",
      "argv:",
      '  - "ls"',
      '  - "-l"',
      "none: {}",
      "mode: 420",
      "deep:",
      "  x: null",
    ]);
  });
});

test("JSON for programs reads back the same, and hides nothing from a person", () => {
  fc.assert(
    fc.property(anyTextInside, (value) => {
      const line = toJsonLine(value);
      expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(value)));
      expect(line.slice(0, -1)).not.toMatch(HIDDEN);
    }),
  );
});

describe("long lines", () => {
  test("are broken before the terminal does it, with a mark before the rest", () => {
    const lines = wrapLines(`  │ ${"x".repeat(30)}\npath: "${"y".repeat(30)}"`, 25).split("\n");
    expect(lines).toEqual([
      `  │ ${"x".repeat(20)}`,
      `  ┆ ${"x".repeat(10)}`,
      `path: "${"y".repeat(17)}`,
      `  ┆ ${"y".repeat(13)}"`,
    ]);
  });

  test("lose nothing, and none is wider than the terminal", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(..."ab 漢字😀".split("")), maxLength: 300 }),
        fc.integer({ min: 21, max: 90 }),
        (text, columns) => {
          const lines = wrapLines(`│ ${text}`, columns).split("\n");
          expect(lines.map((line) => line.replace(/^[│┆] /, "")).join("")).toBe(text);
          for (const line of lines) expect(Array.from(line).length).toBeLessThan(columns);
        },
      ),
    );
  });
});

test("what a tool has made visible is not named twice, what it has not is", () => {
  expect(visibleOnce("⟦U+202E⟧ and \u202e, ⟨41 spaces⟩")).toBe("⟦U+202E⟧ and ⟦U+202E⟧, ⟨41 spaces⟩");
});

test("a summary is one short line", () => {
  expect(summary("a\nb\u001b", 60)).toBe("a b⟦U+001B⟧");
  expect(summary("x".repeat(100), 10)).toBe("xxxxxxxxx…");
});

test("the follow-up commands name the question's values", () => {
  const request = { id: "input-t-1", kind: "input", schema: { properties: { answer: {}, "odd name": {} } } } as never;
  expect(followUps(request, " --data d")).toEqual([
    "npx holdpoint show input-t-1 --data d",
    'npx holdpoint answer input-t-1 --set answer=… --set "odd name"=… --data d',
  ]);
});
