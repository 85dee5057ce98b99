import fc from "fast-check";
import { expect, test } from "vitest";
import { QuoteWriter } from "./quote-writer.ts";
import { quote } from "./render.ts";
import { wrapLines } from "./wrap.ts";

const anyWords = fc.string({ unit: fc.constantFrom(..."ab \n漢😀\u001b"), maxLength: 200 });

test("words that come in pieces look as if they had come at once, on lines that all bear a bar", () => {
  fc.assert(
    fc.property(fc.array(anyWords, { maxLength: 6 }), fc.integer({ min: 21, max: 90 }), (pieces, columns) => {
      let written = "";
      const writer = new QuoteWriter((text) => {
        written += text;
      }, columns);
      for (const piece of pieces) writer.write(piece);
      writer.end();
      writer.end();
      for (const line of written.split("\n").slice(0, -1)) {
        expect(line).toMatch(/^[│┆] /);
        expect(Array.from(line).length).toBeLessThan(columns);
      }
      expect(written).not.toContain("\u001b");
      fc.pre(!/\n{10}| {41}/.test(pieces.join("")));
      const atOnce = quote(pieces.join("")).map((line) => line.trimStart());
      // A line that was only begun is not written.
      if (atOnce.at(-1) === "│ ") atOnce.pop();
      expect(written).toBe(atOnce.map((line) => `${wrapLines(line, columns)}\n`).join(""));
    }),
  );
});

test("without a terminal no line is broken", () => {
  const written: string[] = [];
  const writer = new QuoteWriter((text) => written.push(text), undefined);
  writer.write("x".repeat(500));
  writer.end();
  expect(written.join("")).toBe(`│ ${"x".repeat(500)}\n`);
});
