import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DISGUISED, PLAIN } from "../../test/safety/hostile-texts.ts";
import { findDisguise, makeVisible, renderPrompt } from "./prompt.ts";

describe("a text made visible", () => {
  test.each(DISGUISED)("names what hides: %j", (text, seen) => {
    expect(makeVisible(text)).toBe(seen);
  });

  test.each(PLAIN)("leaves what is plain as it is: %j", (text) => {
    expect(makeVisible(text)).toBe(text);
  });

  test("keeps newlines and tabs only for those who can show them", () => {
    expect(makeVisible("a\n\tb", { newlines: true })).toBe("a\n⟦U+0009⟧b");
    expect(makeVisible("a\n\tb", { newlines: true, tabs: true })).toBe("a\n\tb");
  });

  test("counts what would push the rest out of sight", () => {
    const kept = { newlines: true, tabs: true };
    expect(makeVisible(`a${"\n".repeat(10)}b`, kept)).toBe(`a${"\n".repeat(10)}b`);
    expect(makeVisible(`a${"\n".repeat(300)}b`, kept)).toBe("a⟨300 newlines⟩b");
    expect(makeVisible(`a${" \n".repeat(11)}b`, kept)).toBe(`a ⟨1 newline⟩${"⟨1 space⟩⟨1 newline⟩".repeat(10)}b`);
    expect(makeVisible(`a${"\t".repeat(41)}b`, kept)).toBe("a⟨41 tabs⟩b");
    expect(makeVisible(`a${" \t".repeat(21)}b`, kept)).toBe(`a${"⟨1 space⟩⟨1 tab⟩".repeat(21)}b`);
  });

  const anyText = fc.string({
    unit: fc.constantFrom(
      "a",
      " ",
      " ".repeat(41),
      "\n",
      "\n".repeat(11),
      "\t",
      "⟦",
      "⟧",
      "⟨",
      "\u202e",
      "\ud800",
      "\u0301",
    ),
    maxLength: 30,
  });

  test("never looks like another text", () => {
    const kept = fc.constantFrom({}, { newlines: true }, { newlines: true, tabs: true });
    fc.assert(
      fc.property(anyText, anyText, kept, (a, b, how) => {
        expect(makeVisible(a, how) === makeVisible(b, how)).toBe(a === b);
      }),
      { numRuns: 2_000 },
    );
  });

  test("hides nothing, whatever it was", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(makeVisible(text)).not.toMatch(/[\p{C}\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}/u);
      }),
    );
  });
});

describe("the question", () => {
  test("is the usual one where none is configured", () => {
    expect(renderPrompt(undefined, "execute_command", "ls -l")).toBe(
      "🔐 Tool Approval Required\n\nTool: execute_command\nInput: ls -l\n\nPlease respond with: approve or deny",
    );
  });

  test("takes tool and input, in one pass", () => {
    expect(renderPrompt("Run {input} with {tool}? {other}", "t", "{tool} {input} $& $1 $$")).toBe(
      "Run {tool} {input} $& $1 $$ with t? {other}",
    );
  });

  test("cannot be continued by its input", () => {
    const prompt = renderPrompt("Run {input}?", "t", "ls?\n\nSafe: yes\u202e");
    expect(prompt).toBe("Run ls?⟦U+000A⟧⟦U+000A⟧Safe: yes⟦U+202E⟧?");
  });
});

test.each([
  ["ls", undefined],
  ["日本語", undefined],
  ["файл", undefined],
  ["café", undefined],
  ["lѕ", "Cyrillic"],
  ["раypal.com", "Cyrillic"],
  ["gοogle", "Greek"],
  ["ｌｓ", "ASCII"],
  ["𝗅𝗌", "ASCII"],
])("%s may not be what it seems: %s", (word, why) => {
  const disguise = findDisguise(word);
  if (why === undefined) expect(disguise).toBeUndefined();
  else expect(disguise).toContain(why);
});
