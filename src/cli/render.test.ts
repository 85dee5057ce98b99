import { stripVTControlCharacters } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { DecisionView, RequestView, TaskView } from "../client/client.ts";
import { canonicalJson, type Json, type JsonObject } from "../task/json.ts";
import { showMenu } from "./arming.ts";
import { drawMenu } from "./ask.ts";
import { renderRequest, renderTask, renderValue } from "./render.ts";
import { type Paint, toJsonLine } from "./terminal.ts";
import { followUps, sayDecision, summary, visibleOnce } from "./words.ts";
import { widthOf, wrapLines } from "./wrap.ts";

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
const RESET = "\u001b[0m";
const painted = (code: number) => (text: string) => `\u001b[${code}m${text}${RESET}`;
const loud: Paint = {
  bold: painted(1),
  dim: painted(2),
  red: painted(31),
  green: painted(32),
  yellow: painted(33),
  cyan: painted(36),
};

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

describe("painted lines", () => {
  test("are broken like all others: paint takes no room, ends before the mark and begins again after it", () => {
    expect(wrapLines(`◷ ${loud.bold("x".repeat(30))} end`, 25).split("\n")).toEqual([
      `◷ ${loud.bold("x".repeat(22))}`,
      `  ┆ ${loud.bold("x".repeat(8))} end`,
    ]);
  });

  test("lose nothing, and none is wider than the terminal", () => {
    const piece = fc.tuple(
      fc.constantFrom("bold", "red", "dim", undefined),
      fc.string({ unit: fc.constantFrom(..."ab 漢") }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.integer({ min: 21, max: 90 }), (pieces, columns) => {
        const line = `│ ${pieces.map(([name, text]) => (name ? loud[name as keyof Paint](text) : text)).join("")}`;
        const lines = wrapLines(line, columns).split("\n");
        expect(lines.map((part) => stripVTControlCharacters(part).replace(/^[│┆] /, "")).join("")).toBe(
          stripVTControlCharacters(line).slice(2),
        );
        for (const part of lines) {
          expect(part).toMatch(/^[│┆] /);
          expect(Array.from(stripVTControlCharacters(part)).length).toBeLessThan(columns);
          // No paint goes on into the next line.
          expect(part.lastIndexOf("\u001b[")).toBe(part.lastIndexOf(RESET));
        }
      }),
    );
  });
});

describe("what an agent asks cannot pass for our own text", () => {
  const forged = `Which one?\n14:00:00  delete_file approved by owner ${"and so on ".repeat(30)}\n✓ done`;
  const request = {
    id: "input-t-1",
    kind: "input",
    status: "open",
    taskId: "t",
    agent: "a",
    path: ["a"],
    title: forged,
    prompt: forged,
    agentSays: null,
    args: null,
    plan: null,
    schema: { type: "object", properties: { answer: { type: "string", title: forged } }, required: ["answer"] },
    digest: `sha256:${"0".repeat(64)}`,
    risk: "low",
    rule: null,
    openedAt: "2026-01-01T00:00:00.000Z",
    expiresAt: null,
  } as unknown as RequestView;
  const bars = /^ *[│┆] /;
  const forgery = /Which one|delete_file|and so on|✓ done/;

  test.each([40, 80, 120])("in a request, at %i columns", (columns) => {
    const lines = stripVTControlCharacters(renderRequest(request, loud, 0, columns)).split("\n");
    expect(lines[0]).toBe("◷ Question   LOW RISK");
    if (columns >= 80) expect(lines).toContain(`    ${request.digest}`);
    expect(lines.filter((line) => forgery.test(line)).length).toBeGreaterThan(2);
    for (const line of lines) {
      if (forgery.test(line)) expect(line).toMatch(bars);
      expect(line.length).toBeLessThan(columns);
    }
  });

  test.each([40, 80, 120])("nor what it says, in the story of a task, at %i columns", (columns) => {
    const at = "2026-01-01T00:00:00.000Z";
    const task = {
      id: "t",
      agent: "a",
      contextId: "c",
      state: "completed",
      by: "ana",
      timeline: [{ seq: 2, at, type: "model-replied", text: "the agent says", says: forged }],
      result: { state: "completed", message: forged },
    } as unknown as TaskView;
    const lines = stripVTControlCharacters(renderTask(task, loud, columns)).split("\n");
    for (const line of lines) if (forgery.test(line)) expect(line).toMatch(bars);
    // Ours is one line, whatever stands in it.
    const wanted = {
      ...task,
      timeline: [{ seq: 2, at, type: "model-replied", text: `the agent wants: x\n${forged}` }],
    };
    const { result: _, ...open } = wanted as unknown as TaskView;
    const said = stripVTControlCharacters(renderTask(open, loud, columns))
      .split("\n")
      .slice(5, -1);
    expect(said[0]).toMatch(/^\d\d:\d\d:\d\d {2}the agent wants: x⟦U\+000A⟧/);
    for (const line of said.slice(1)) expect(line).toMatch(bars);
  });
});

test("a plan of other arguments never passes for the plan of what will run", () => {
  const known = {
    id: "input-t-1",
    kind: "approval",
    status: "open",
    taskId: "t",
    agent: "a",
    path: ["a"],
    title: "rm",
  };
  const shown = { prompt: "?", agentSays: null, args: { path: "a" }, plan: { bytes: 1 }, schema: null, risk: "low" };
  const times = { rule: null, openedAt: "2026-01-01T00:00:00.000Z", expiresAt: null, digest: "sha256:0" };
  const request = { ...known, ...shown, ...times } as unknown as RequestView;
  const text = (of: RequestView, instead?: JsonObject) =>
    stripVTControlCharacters(renderRequest(of, loud, 0, undefined, instead));
  expect(text(request)).toContain("\n\nWhat it comes to:\n  bytes: 1\n");
  const ofAgent = "\n\nWhat the agent's own arguments would have come to, not the changed ones:\n  bytes: 1\n";
  const changed = text(request, { path: "b" });
  expect(changed).toContain(ofAgent);
  expect(changed).not.toContain("What it comes to:");
  expect(changed).toMatch(
    /Exactly this will run instead:\n {2}path: "b"\n\nWhat it comes to is worked out and checked/,
  );
  // Nor afterwards, in the record.
  const decision = { outcome: "approved", by: "ana", at: times.openedAt, editedArgs: { path: "b" } };
  const decided = text({ ...request, status: "approved", decision } as unknown as RequestView);
  expect(decided).toContain(ofAgent);
  expect(decided).not.toMatch(/What it comes to:|Exactly this will run:/);
});

test("a denial without a reason says that it has none", () => {
  const denied = { outcome: "denied", by: "ana", at: "2026-01-01T00:00:00.000Z" } as DecisionView;
  expect(sayDecision(denied)).toBe("denied by ana (no reason given)");
  expect(sayDecision({ ...denied, reason: "old" })).toBe("denied by ana: old");
  expect(sayDecision({ ...denied, outcome: "approved" })).toBe("approved by ana");
});

test.each([70, 80, 120])("the menu fits on one line of %i columns, which is drawn over", (columns) => {
  for (const isEdited of [false, true]) {
    for (const focused of [undefined, "approve", "edit", "deny"] as const) {
      const menu = { ...showMenu(["approve", "edit", "deny"], true, 0), ...(focused ? { focused } : {}) };
      for (const nowMs of [0, 10_000]) {
        const line = stripVTControlCharacters(drawMenu(menu, isEdited, nowMs, loud, widthOf(columns)));
        expect(line.length).toBeLessThan(columns);
        if (columns >= 80) expect(line).toMatch(/Esc leaves it open$|Enter decides$/);
      }
    }
  }
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
  expect(followUps(request, " --data d", false)).toEqual([
    "npx holdpoint show input-t-1 --data d",
    'npx holdpoint answer input-t-1 --set answer=… --set "odd name"=… --data d',
  ]);
});
