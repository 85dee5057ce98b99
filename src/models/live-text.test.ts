import fc from "fast-check";
import { expect, test } from "vitest";
import { LiveText, TEXT_CHARACTERS_MAX } from "./live-text.ts";

function hear(pieces: readonly string[]) {
  const heard: string[] = [];
  const text = new LiveText((delta) => heard.push(delta));
  const hasRoom = pieces.map((piece) => text.add(piece)).at(-1);
  return { whole: text.end(), heard, hasRoom };
}

test("what was heard in pieces is the whole, well-formed however it was cut", () => {
  const unit = fc.constantFrom("a", " ", "é", "\ud83d", "\ude00", "😀");
  fc.assert(
    fc.property(fc.array(fc.string({ unit })), (pieces) => {
      const { whole, heard } = hear(pieces);
      expect(whole).toBe(pieces.join("").toWellFormed());
      expect(heard.join("")).toBe(whole);
      for (const piece of heard) expect(piece.isWellFormed() && piece !== "").toBe(true);
    }),
  );
});

test("a character that is cut in two is heard once, whole", () => {
  expect(hear(["ok \ud83d", "\ude00"]).heard).toEqual(["ok ", "😀"]);
});

test("text ends at its limit, between two characters", () => {
  const { whole, hasRoom } = hear(["a".repeat(TEXT_CHARACTERS_MAX - 1), "😀 more"]);
  expect(hasRoom).toBe(false);
  expect(whole).toBe("a".repeat(TEXT_CHARACTERS_MAX - 1));
  expect(hear(["a".repeat(TEXT_CHARACTERS_MAX + 5)]).whole.length).toBe(TEXT_CHARACTERS_MAX);
  expect(hear(["a".repeat(TEXT_CHARACTERS_MAX - 1)]).hasRoom).toBe(true);
});
