import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ARGS_BYTES_MAX, canonicalJson, findJsonProblem, JSON_DEPTH_MAX, parseJson } from "./json.ts";

const nested = (depth: number, [open, close] = ["[", "]"]) => `${open?.repeat(depth)}${close?.repeat(depth)}`;
const nestedObject = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;
const PLENTY = 10_000_000;

describe("takes what every reader reads alike", () => {
  test.each([
    ["null", null],
    ["true", true],
    ['"text"', "text"],
    [" [ 1 , 2.5 , -3e2 ] ", [1, 2.5, -300]],
    ['{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}', { a: { a: { a: 1 } }, b: [{ a: 1 }, { a: 1 }] }],
    ["9007199254740991", 2 ** 53 - 1],
    ["-9007199254740991", -(2 ** 53) + 1],
    ["0.1", 0.1],
    ["1e-7", 1e-7],
    [
      '{"constructor":1,"toString":2,"prototype":3,"hasOwnProperty":4}',
      { constructor: 1, toString: 2, prototype: 3, hasOwnProperty: 4 },
    ],
    ['{"":1,"a":2,"A":3}', { "": 1, a: 2, A: 3 }],
    ['{"a":"\\"b\\":1,\\"b\\":2"}', { a: '"b":1,"b":2' }],
    ['{"a\\"b":1,"a":2,"b":3}', { 'a"b': 1, a: 2, b: 3 }],
    ['["{","}",":",",","[","]"]', ["{", "}", ":", ",", "[", "]"]],
    ['"\\u0000 \u2028 \\ud83d\\ude00"', "\u0000 \u2028 😀"],
    // The composed and the decomposed letter are two keys; nothing is normalised.
    ['{"\u00e9":1,"e\u0301":2}', { "\u00e9": 1, "e\u0301": 2 }],
  ])("%s", (text, value) => {
    expect(parseJson(text)).toEqual({ ok: true, value });
  });

  test(`nesting of ${JSON_DEPTH_MAX}, with what stands in the innermost`, () => {
    expect(parseJson(nested(JSON_DEPTH_MAX)).ok).toBe(true);
    expect(parseJson(nestedObject(JSON_DEPTH_MAX)).ok).toBe(true);
    expect(parseJson(`${"[".repeat(JSON_DEPTH_MAX - 1)}1${"]".repeat(JSON_DEPTH_MAX - 1)}`).ok).toBe(true);
  });

  test(`exactly ${ARGS_BYTES_MAX} bytes, counted in UTF-8`, () => {
    const fits = JSON.stringify("x".repeat(ARGS_BYTES_MAX - 2));
    expect(parseJson(fits).ok).toBe(true);
    expect(findJsonProblem(JSON.parse(fits))).toBeUndefined();
    const wide = JSON.stringify("é".repeat(ARGS_BYTES_MAX / 2 - 1));
    expect(parseJson(wide).ok).toBe(true);
    expect(findJsonProblem(JSON.parse(wide))).toBeUndefined();
  });

  test("minus zero, as the zero that it is when written", () => {
    expect(parseJson("-0").ok).toBe(true);
    expect(canonicalJson(-0)).toBe(canonicalJson(0));
  });

  test("objects without a prototype", () => {
    expect(findJsonProblem(Object.assign(Object.create(null), { a: 1 }))).toBeUndefined();
  });
});

describe("refuses what readers read differently, and says where", () => {
  test.each([
    // duplicate keys, at any depth and in any spelling
    ['{"a":1,"a":1}', "/a", /twice/],
    ['{"a":1,"b":2,"a":3}', "/a", /twice/],
    ['{"a":1,"\\u0061":2}', "/a", /twice/],
    ['{"\\u00e9":1,"é":2}', "/é", /twice/],
    ['{"\\ud83d\\ude00":1,"😀":2}', "/😀", /twice/],
    ['{"a\\/b":1,"a/b":2}', "/a~1b", /twice/],
    ['{"a~":1,"a\\u007e":2}', "/a~0", /twice/],
    ['{"":1,"":2}', "/", /twice/],
    ['{"\\"":1,"\\u0022":2}', '/"', /twice/],
    ['{"a":[0,{"b":{"c":1,"c":2}}]}', "/a/1/b/c", /twice/],
    ['[[],[[{"k":[]},{"k":{},"k":[]}]]]', "/1/0/1/k", /twice/],
    ['{"a":{"x":1,"x":2},"a":{}}', "/a/x", /twice/],
    ['{ "a" : 1 ,\n"a"\t: 2 }', "/a", /twice/],
    ['{"constructor":1,"constructor":2}', "/constructor", /twice/],
    // what a duplicate hides from JSON.parse
    [`{"a":${nested(500)},"a":1}`, "/a", /twice/],
    // text
    ['"\\ud800"', "", /lone surrogate/],
    ['{"a":["\\udc00"]}', "/a/0", /lone surrogate/],
    ['{"\\ud800":1}', "/\ud800", /lone surrogate/],
    ['"\\ude00\\ud83d"', "", /lone surrogate/],
    // numbers
    ["9007199254740992", "", /beyond 2\^53/],
    ["-9007199254740992", "", /beyond 2\^53/],
    ["9007199254740993", "", /beyond 2\^53/],
    ['{"id":1e21}', "/id", /beyond 2\^53/],
    ["1e400", "", /too large/],
    ["[0,-1e400]", "/1", /too large/],
    // prototypes
    ['{"__proto__":{"admin":true}}', "/__proto__", /not taken/],
    ['{"a":{"__proto__":null}}', "/a/__proto__", /not taken/],
    ['{"\\u005f_proto__":1}', "/__proto__", /not taken/],
    // depth
    [nested(JSON_DEPTH_MAX + 1), "/0".repeat(JSON_DEPTH_MAX), /deeper than 64/],
    [nestedObject(JSON_DEPTH_MAX + 1), "/a".repeat(JSON_DEPTH_MAX), /deeper than 64/],
    [nested(200), "/0".repeat(JSON_DEPTH_MAX), /deeper than 64/],
    // not JSON
    ["", "", /./],
    ["{a:1}", "", /./],
    ["[1,]", "", /./],
    ["NaN", "", /./],
    ["'a'", "", /./],
    ['{"a":1}}', "", /./],
    ['"\u0000"', "", /./],
    ['{"a":1,}', "", /./],
    ["\ufeff{}", "", /./],
  ])("%j", (text, pointer, problem) => {
    expect(parseJson(text)).toEqual({ ok: false, problem: { pointer, text: expect.stringMatching(problem) } });
  });

  test("one byte more than is taken, whether characters are wide or not", () => {
    for (const character of ["x", "é"]) {
      const width = Buffer.byteLength(character);
      const text = JSON.stringify(`${character.repeat((ARGS_BYTES_MAX - 2) / width)}x`);
      const problem = { pointer: "", text: `${ARGS_BYTES_MAX + 1} bytes; at most ${ARGS_BYTES_MAX} are taken` };
      expect(parseJson(text)).toEqual({ ok: false, problem });
      expect(findJsonProblem(JSON.parse(text))).toEqual(problem);
    }
  });

  test("nesting of a hundred thousand, without running out of stack", () => {
    const problem = { pointer: "/0".repeat(JSON_DEPTH_MAX), text: "nested deeper than 64" };
    expect(parseJson(nested(100_000), PLENTY)).toEqual({ ok: false, problem });
    expect(parseJson(nested(100_000))).toMatchObject({ ok: false, problem: { pointer: "" } });
  });

  test("a value that repeats itself", () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    expect(findJsonProblem(cyclic)?.text).toMatch(/deeper than 64/);
  });

  test.each([
    ["undefined", undefined, ""],
    ["undefined in an object", { a: undefined }, "/a"],
    ["a hole in an array", new Array(1), "/0"],
    ["a function", { a: () => 1 }, "/a"],
    ["a toJSON of one's own", { toJSON: () => "other" }, "/toJSON"],
    ["a symbol", Symbol("a"), ""],
    ["a bigint", { a: [1n] }, "/a/0"],
    ["NaN", { a: Number.NaN }, "/a"],
    ["infinity", Number.POSITIVE_INFINITY, ""],
    ["a date", { at: new Date(0) }, "/at"],
    ["a map", new Map(), ""],
    ["a class instance", { a: new (class Point {})() }, "/a"],
    ["an object with another prototype", Object.create({ inherited: 1 }), ""],
    ["a boxed string", Object("text"), ""],
    ["a buffer", Buffer.from("a"), ""],
    ["an own __proto__", JSON.parse('{"__proto__":1}'), "/__proto__"],
    ["a lone surrogate in a key", { a: { "\udfff": 1 } }, "/a/\udfff"],
  ])("%s is no JSON value", (_name, value, pointer) => {
    expect(findJsonProblem(value)).toMatchObject({ pointer });
  });
});

/** JSON text with chosen spellings: objects may repeat keys, keys may be escaped. */
type Tree = { keys: [string, boolean, Tree][] } | { items: Tree[] } | { leaf: string };

const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "medium", withCrossShrink: true },
    fc.record({
      leaf: fc.constantFrom("1", '"a"', "null", '"{\\"a\\":1,\\"a\\":2}"', '"\\\\"', '"\\\\\\""', "-0.5e1", '""'),
    }),
    fc.record({ items: fc.array(tie("tree"), { maxLength: 3 }) }),
    fc.record({
      keys: fc.array(fc.tuple(fc.constantFrom("a", "b", "é", '"', "\\", "", "a/b", "😀"), fc.boolean(), tie("tree")), {
        maxLength: 4,
      }),
    }),
  ),
}));

function write(node: Tree, space: string): string {
  if ("leaf" in node) return `${space}${node.leaf}${space}`;
  if ("items" in node) return `[${space}${node.items.map((item) => write(item, space)).join(",")}]`;
  const members = node.keys.map(
    ([key, escaped, value]) => `${space}${spell(key, escaped)}${space}:${write(value, space)}`,
  );
  return `{${members.join(",")}${space}}`;
}

function spell(key: string, escaped: boolean): string {
  if (!escaped) return JSON.stringify(key);
  const units = Array.from({ length: key.length }, (_, i) => key.charCodeAt(i).toString(16).padStart(4, "0"));
  return `"${units.map((unit) => `\\u${unit}`).join("")}"`;
}

function repeatsKey(node: Tree): boolean {
  if ("leaf" in node) return false;
  if ("items" in node) return node.items.some(repeatsKey);
  const names = node.keys.map(([key]) => key);
  return new Set(names).size < names.length || node.keys.some(([, , value]) => repeatsKey(value));
}

test("a duplicate key is found if and only if there is one", () => {
  let repeated = 0;
  let clean = 0;
  fc.assert(
    fc.property(tree, fc.constantFrom("", " ", "\n\t"), (node, space) => {
      const repeats = repeatsKey(node);
      if (repeats) repeated++;
      else clean++;
      const text = write(node, space);
      const result = parseJson(text);
      expect(result.ok).toBe(!repeats);
    }),
    { numRuns: 1000 },
  );
  expect(Math.min(repeated, clean)).toBeGreaterThan(100);
});

/** Values close to each other: few keys, and leaves that look alike. */
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(
      0,
      -0,
      1,
      "1",
      "0",
      "",
      null,
      true,
      "true",
      false,
      0.1,
      1e-7,
      "a",
      "é",
      "e\u0301",
      2 ** 53,
      "\ud800",
      1e21,
    ),
    fc.array(tie("value"), { maxLength: 2 }),
    fc.dictionary(fc.constantFrom("a", "b", "1", "", "é", "constructor"), tie("value"), { maxKeys: 3 }),
  ),
}));

test("two values that are taken have the same canonical text only if they are the same", () => {
  let same = 0;
  fc.assert(
    fc.property(value, value, (a, b) => {
      if (findJsonProblem(a) || findJsonProblem(b)) return;
      const equal = canonicalJson(a) === canonicalJson(b);
      if (equal) same++;
      // What is kept is the written value: there -0 is 0.
      expect(equal).toBe(isEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b))));
    }),
    { numRuns: 1000 },
  );
  expect(same).toBeGreaterThan(5);
});

/** Equal as JSON: order of keys does not count, everything else does. */
function isEqual(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [one, two] = [Object.entries(a), new Map(Object.entries(b))];
  return one.length === two.size && one.every(([key, item]) => two.has(key) && isEqual(item, two.get(key)));
}

test("canonical text reads back as the same value, and does not depend on the order of keys", () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: "binary" }), (anything) => {
      if (findJsonProblem(anything, PLENTY)) return;
      const text = canonicalJson(anything);
      expect(parseJson(text, PLENTY)).toEqual({ ok: true, value: JSON.parse(JSON.stringify(anything)) });
      expect(canonicalJson(reversed(anything))).toBe(text);
    }),
    { numRuns: 500 },
  );
});

function reversed(item: unknown): unknown {
  if (Array.isArray(item)) return item.map(reversed);
  if (typeof item !== "object" || item === null) return item;
  return Object.fromEntries(
    Object.entries(item)
      .reverse()
      .map(([key, inner]) => [key, reversed(inner)]),
  );
}

test("nothing that is sent makes it throw", () => {
  const noise = fc.array(
    fc.constantFrom("{", "}", "[", "]", ":", ",", '"', "\\", "\\u0061", "a", "1", "-", "e", " ", "\ud800"),
    {
      maxLength: 30,
    },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: "binary" }),
        noise.map((parts) => parts.join("")),
      ),
      (text) => {
        expect(typeof parseJson(text).ok).toBe("boolean");
      },
    ),
    { numRuns: 1000 },
  );
});
