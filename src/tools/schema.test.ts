import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../task/json.ts";
import { createArgumentCheck, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SchemaRefused, schemaHash } from "./schema.ts";
import { CallRefused } from "./tool.ts";

const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: "object", properties, ...more });

function refusal(schema: JsonObject, args: JsonObject): CallRefused | undefined {
  try {
    createArgumentCheck(schema)(args);
    return undefined;
  } catch (error) {
    if (error instanceof CallRefused) return error;
    throw error;
  }
}

describe("arguments that do not fit are refused with pointers", () => {
  const schema = object(
    {
      path: { type: "string" },
      mode: { enum: ["a", "b"] },
      list: { type: "array", items: { type: "number" } },
      mail: { type: "string", format: "email" },
    },
    { required: ["path"], additionalProperties: false },
  );

  test.each([
    ["nothing at all", {}, "/path: is missing"],
    ["a wrong type", { path: 1 }, "/path: must be string"],
    ["an unknown key", { path: "x", other: 1 }, "/other: is not known"],
    ["a wrong choice", { path: "x", mode: "c" }, '/mode: must be one of ["a","b"]'],
    ["a wrong item", { path: "x", list: [1, "2"] }, "/list/1: must be number"],
    ["a wrong format", { path: "x", mail: "nobody" }, '/mail: must match format "email"'],
  ] as const)("%s", (_what, args, text) => {
    expect(refusal(schema, args)).toMatchObject({ code: "arguments-invalid", message: text });
  });

  test("and those that fit are not", () => {
    expect(refusal(schema, { path: "x", mode: "a", list: [1], mail: "ana@example.com" })).toBeUndefined();
  });
});

test("nothing is filled in and nothing is converted", () => {
  const args = { n: "5" };
  expect(refusal(object({ n: { type: "number" }, m: { default: 1 } }), args)).toBeDefined();
  expect(args).toEqual({ n: "5" });
});

test("older drafts and patterns without Unicode mode are understood", () => {
  const $schema = "http://json-schema.org/draft-07/schema#";
  const tuple = object({ t: { type: "array", items: [{ type: "string" }, { type: "number" }] } }, { $schema });
  expect(refusal(tuple, { t: ["a", 1] })).toBeUndefined();
  expect(refusal(tuple, { t: ["a", "b"] })).toBeDefined();
  const pattern = object({ p: { type: "string", pattern: "^[\\w-.]+$" } });
  expect(refusal(pattern, { p: "a-b.c" })).toBeUndefined();
  expect(refusal(pattern, { p: "a b" })).toBeDefined();
});

describe("a hostile schema is refused when it comes", () => {
  const nested = (depth: number): JsonObject => {
    let schema: JsonObject = { type: "string" };
    for (let i = 0; i < depth; i++) schema = { properties: { a: schema } };
    return schema;
  };
  const veryDeep = (): JsonObject => {
    let value: Json = [];
    for (let i = 0; i < 100_000; i++) value = [value];
    return { enum: value as Json[] };
  };

  test.each([
    ["too large", object({ a: { enum: ["x".repeat(SCHEMA_BYTES_MAX)] } }), "bytes"],
    ["too deep", nested(SCHEMA_DEPTH_MAX), "deeper"],
    ["deeper than the stack", veryDeep(), "deeper"],
    ["a reference to the network", object({ a: { $ref: "http://127.0.0.1:1/schema" } }), "only references inside it"],
    ["a reference to a file", object({ a: { $ref: "file:///etc/passwd" } }), "only references inside it"],
    ["a relative reference under a foreign id", { $id: "http://evil/", $ref: "other" }, "only references inside it"],
    ["a reference to nothing", object({ a: { $ref: "#/$defs/none" } }), "not valid"],
    ["no schema", { type: "nonsense" }, "not valid"],
    ["a broken pattern", object({ a: { pattern: "(" } }), "not valid"],
  ])("%s", (_what, schema, text) => {
    expect(() => createArgumentCheck(schema as JsonObject)).toThrow(SchemaRefused);
    expect(() => createArgumentCheck(schema as JsonObject)).toThrow(text);
  });
});

describe("a hostile schema that looks well cannot hold us up", () => {
  const doubling: Record<string, Json> = { d0: { type: "string" } };
  for (let i = 1; i <= 40; i++) {
    doubling[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
  }

  test.each([
    ["a catastrophic pattern", object({ a: { pattern: "^(a+)+$" } }), { a: `${"a".repeat(60)}!` }],
    ["a catastrophic key pattern", { patternProperties: { "^(a+)+$": {} } }, { [`${"a".repeat(60)}!`]: 1 }],
    ["references that double 40 times", { $defs: doubling, properties: { a: { $ref: "#/$defs/d40" } } }, { a: "x" }],
    ["a schema that is itself", { allOf: [{ $ref: "#" }] }, { a: 1 }],
    ["slow uniqueness", object({ a: { uniqueItems: true } }), { a: Array.from({ length: 12_000 }, (_, i) => [i]) }],
  ])("%s", (_what, schema, args) => {
    const startMs = performance.now();
    expect(refusal(schema as JsonObject, args as JsonObject)).toMatchObject({ code: "arguments-invalid" });
    expect(performance.now() - startMs).toBeLessThan(5_000);
  });
});

test("a schema of one server is not seen by another", () => {
  const one = { $id: "https://example.com/a", type: "object", properties: { a: { type: "string" } } };
  const two = { $id: "https://example.com/a", type: "object", properties: { a: { type: "number" } } };
  expect(refusal(one, { a: "x" })).toBeUndefined();
  expect(refusal(two, { a: "x" })).toBeDefined();
});

test("the hash is of the content, not of its order", () => {
  expect(schemaHash({ a: 1, b: { c: 2, d: 3 } })).toBe(schemaHash({ b: { d: 3, c: 2 }, a: 1 }));
  expect(schemaHash({ a: 1 })).not.toBe(schemaHash({ a: 2 }));
});
