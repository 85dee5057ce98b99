import { describe, expect, test } from "vitest";
import { parseField, parseSets } from "./fields.ts";

describe("an answer as typed", () => {
  const colours = { type: "string", enum: ["red", "green", "2"] };
  test.each([
    ["a choice by its words", colours, "green", "green"],
    ["a choice in other letters", colours, "GREEN", "green"],
    ["a choice by its number", colours, "1", "red"],
    ["words before numbers", colours, "2", "2"],
    ["several choices", { type: "array", items: colours }, "red, 3,red", ["red", "2"]],
    ["text", { type: "string" }, "42", "42"],
    ["a number", { type: "number" }, "4.5", 4.5],
    ["a whole number", { type: "integer" }, "4", 4],
    ["yes", { type: "boolean" }, "Yes", true],
    ["no", { type: "boolean" }, "n", false],
    ["anything else as JSON", { type: "object" }, '{"a":1}', { a: 1 }],
  ] as const)("takes %s", (_what, schema, text, value) => {
    expect(parseField(schema, text)).toEqual({ value });
  });

  test.each([
    ["no choice", colours, "blue"],
    ["a number past the end", colours, "4"],
    ["zero", colours, "0"],
    ["no number", { type: "number" }, "four"],
    ["nothing as a number", { type: "number" }, " "],
    ["a fraction of a whole number", { type: "integer" }, "4.5"],
    ["neither yes nor no", { type: "boolean" }, "maybe"],
    ["a list with one that is none", { type: "array", items: colours }, "red,blue"],
    ["no JSON", { type: "object" }, "{"],
  ] as const)("says what is wrong with %s", (_what, schema, text) => {
    expect(parseField(schema, text)).toEqual({ problem: expect.any(String) });
  });
});

test("pairs are read by the schema of their name, and a name that is none is named with what was meant", () => {
  const properties = { n: { type: "integer" }, text: { type: "string" } };
  expect(parseSets(properties, ["n=3", "text=a=b"])).toEqual({ value: { n: 3, text: "a=b" } });
  expect(parseSets(properties, ["txet=a"])).toEqual({ problem: 'there is no field "txet"; did you mean "text"?' });
  expect(parseSets(properties, ["n=3", "more=1"])).toEqual({
    problem: 'there is no field "more"; there is "n", "text"',
  });
  expect(parseSets(properties, ["toString=1"])).toEqual({ problem: expect.stringContaining("there is no field") });
  expect(parseSets(properties, ["n=x"])).toEqual({ problem: "n: Must be a number" });
  expect(parseSets(properties, ["n"])).toEqual({ problem: "--set n: write name=value" });
  // Where no name is known the server says which it takes.
  const odd = parseSets({}, ["__proto__=1", "toString=2"]);
  expect("value" in odd && Object.keys(odd.value as object)).toEqual(["__proto__", "toString"]);
});
