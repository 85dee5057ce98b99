import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { callDigest, chainHash, requestDigest, sha256 } from "./digest.ts";
import type { JsonObject } from "./json.ts";
import { type RequestDraft, type RequestId, requestId } from "./request.ts";

/** Everything that a digest binds, flat, so that a property can change one thing at a time. */
interface Bound {
  readonly tenant: string;
  readonly epoch: string;
  readonly task: string;
  readonly request: RequestId | "";
  readonly tool: string;
  readonly identity: string;
  readonly schemaHash: string;
  readonly policyVersion: string;
  readonly plan: JsonObject;
  readonly args: JsonObject;
}

const bound: Bound = {
  tenant: "default",
  epoch: "epoch-1",
  task: "0198c0de-0000-7000-8000-000000000001",
  request: requestId("0198c0de-0000-7000-8000-000000000001", 1),
  tool: "execute_command",
  identity: "command@1",
  schemaHash: "aa",
  policyVersion: "bb",
  plan: { argv: ["ls", "-l"], executable: "/usr/bin/ls" },
  args: { command: "ls -l" },
};

function digestOf({ tenant, epoch, task, request, tool, identity, schemaHash, policyVersion, plan, args }: Bound) {
  const scope = { key: { tenant, id: task }, epoch };
  return callDigest(scope, request, tool, args, { identity, schemaHash, policyVersion, plan });
}

const text = fc.string({ unit: "grapheme", maxLength: 8 });
const object = fc.dictionary(
  text.filter((key) => key !== "__proto__"),
  fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text, { maxLength: 2 })),
  { maxKeys: 3 },
);
const anyBound: fc.Arbitrary<Bound> = fc.record({
  tenant: text,
  epoch: text,
  task: text,
  request: fc.nat({ max: 20 }).map((n) => (n === 0 ? ("" as const) : (`input-T-${n}` as const))),
  tool: text,
  identity: text,
  schemaHash: text,
  policyVersion: text,
  plan: object,
  args: object,
});

describe("the digest of a call", () => {
  // Computed once by another program; a change of format makes every open approval worthless, so it must be noticed.
  test("has this format", () => {
    expect(digestOf(bound)).toBe("sha256:939b714ccbb2b883433011ba8f628bb64c10327f9ca614203b877a019d4d7324");
  });

  test.each(Object.keys(bound) as (keyof Bound)[])("changes with %s, whatever the rest is", (name) => {
    fc.assert(
      fc.property(anyBound, anyBound, (one, two) => {
        fc.pre(JSON.stringify(one[name]) !== JSON.stringify(two[name]));
        fc.pre(!(isObject(one[name]) && sameKeys(one[name], two[name])));
        expect(digestOf({ ...one, [name]: two[name] })).not.toBe(digestOf(one));
      }),
      { numRuns: 100 },
    );
  });

  test("cannot be kept by moving text from one field to the next", () => {
    fc.assert(
      fc.property(anyBound, fc.constantFrom("tenant", "tool", "identity", "schemaHash"), text, (one, name, moved) => {
        fc.pre(moved !== "" && one.policyVersion !== one[name]);
        const swapped = { ...one, [name]: one.policyVersion, policyVersion: one[name] };
        expect(digestOf(swapped)).not.toBe(digestOf(one));
        expect(digestOf({ ...one, [name]: one[name] + moved })).not.toBe(
          digestOf({ ...one, policyVersion: moved + one.policyVersion }),
        );
      }),
      { numRuns: 200 },
    );
  });

  test("does not change with the order of keys", () => {
    fc.assert(
      fc.property(anyBound, (one) => {
        const turned = { ...one, plan: reverse(one.plan), args: reverse(one.args) };
        expect(digestOf(turned)).toBe(digestOf(one));
      }),
      { numRuns: 200 },
    );
  });

  test.each<[string, JsonObject, JsonObject]>([
    ["a number and its text", { n: 1 }, { n: "1" }],
    ["absent and null", {}, { a: null }],
    ["a list and its only item", { a: ["x"] }, { a: "x" }],
    ["another order of a list", { a: [1, 2] }, { a: [2, 1] }],
    ["another case", { a: "X" }, { a: "x" }],
    ["a composed and a decomposed letter", { a: "\u00e9" }, { a: "e\u0301" }],
    ["an invisible character", { a: "rm" }, { a: "r\u200bm" }],
    ["a trailing space", { a: "x" }, { a: "x " }],
    ["something nested", { a: { b: [{ c: 1 }] } }, { a: { b: [{ c: 2 }] } }],
  ])("tells apart %s", (_what, one, two) => {
    expect(digestOf({ ...bound, args: one })).not.toBe(digestOf({ ...bound, args: two }));
    expect(digestOf({ ...bound, plan: one })).not.toBe(digestOf({ ...bound, plan: two }));
  });

  test("refuses what cannot be hashed without doubt", () => {
    expect(() => digestOf({ ...bound, args: { a: "\ud800" } })).toThrow(/surrogate/i);
    expect(() => digestOf({ ...bound, args: { a: Number.NaN } })).toThrow(/NaN/);
  });
});

describe("the digest of a request", () => {
  const scope = { key: { tenant: bound.tenant, id: bound.task }, epoch: bound.epoch };
  const id = bound.request as RequestId;
  const base = { title: "t", prompt: "p", risk: "low", expiresAtMs: null, onTimeout: "deny" } as const;
  const { identity, schemaHash, policyVersion, plan } = bound;
  const call = {
    callId: "call-1-1",
    tool: bound.tool,
    args: bound.args,
    facts: { identity, schemaHash, policyVersion, plan },
  };
  const approval: RequestDraft = { ...base, ...call, kind: "approval", editable: true };
  const inDoubt: RequestDraft = { ...base, ...call, kind: "in-doubt", effectId: "call-1-1-1" };
  const input: RequestDraft = { ...base, kind: "input", schema: { type: "object" } };
  const auth: RequestDraft = { ...base, kind: "auth", url: "https://login.example" };

  test("of a question has this format", () => {
    expect(requestDigest(scope, id, input)).toBe(
      "sha256:bbd6c316e9e81dad2d97bd0d00c623406e091e99dba711b182e0dc0e8cc4e736",
    );
    expect(requestDigest(scope, id, auth)).toBe(
      "sha256:29f33587faea736325cae4dd6cec2151d2a5c2262773ad7f72521b48c2537226",
    );
  });

  test("about a call is the digest of that call under the request's id", () => {
    expect(requestDigest(scope, id, approval)).toBe(digestOf(bound));
    expect(requestDigest(scope, id, inDoubt)).toBe(digestOf(bound));
  });

  test.each<[string, RequestDraft, RequestDraft]>([
    ["the title", input, { ...input, title: "other" }],
    ["the prompt", input, { ...input, prompt: "other" }],
    ["the schema", input, { ...input, schema: { type: "string" } }],
    ["the address", auth, { ...auth, url: "https://evil.example" }],
    ["the kind", input, auth],
  ])("of a question changes with %s", (_what, one, two) => {
    expect(requestDigest(scope, id, one)).not.toBe(requestDigest(scope, id, two));
  });

  test("differs between requests, tasks, tenants and epochs", () => {
    const { key, epoch } = scope;
    const digests = [approval, input, auth].flatMap((draft) => [
      requestDigest(scope, id, draft),
      requestDigest(scope, "input-T-2", draft),
      requestDigest({ key: { ...key, id: "T" }, epoch }, id, draft),
      requestDigest({ key: { ...key, tenant: "other" }, epoch }, id, draft),
      requestDigest({ key, epoch: "epoch-2" }, id, draft),
    ]);
    expect(new Set(digests).size).toBe(15);
  });
});

describe("the hash of an event", () => {
  const key = { tenant: "default", id: "T" };
  const body = '{"type":"task-completed","message":"Done.","v":1,"path":["assistant"]}';

  // As above: an audit that was written by this release must verify for ever.
  test("has this format", () => {
    const first = chainHash("", key, 1, 1_700_000_000_000, body);
    expect(first).toBe("baec3eb66b881f1f3c09a0f2eed0568a0e4d4520cde38fad939109ccb10138e8");
    expect(chainHash(first, key, 2, 1_700_000_000_001, body)).toBe(
      "0a0b685c3730baf1e0afb034b014179e8c7496ac2805887c24728216e96b5534",
    );
  });

  test("covers the one before it, the task, the place, the time and every character", () => {
    const hashes = [
      chainHash("", key, 1, 1, body),
      chainHash("00", key, 1, 1, body),
      chainHash("", { ...key, tenant: "other" }, 1, 1, body),
      chainHash("", { ...key, id: "U" }, 1, 1, body),
      chainHash("", key, 2, 1, body),
      chainHash("", key, 1, 2, body),
      chainHash("", key, 1, 1, `${body} `),
      chainHash("", { tenant: 'default","T', id: "" }, 1, 1, body),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("is SHA-256 in lower-case hex", () => {
    expect(sha256("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});

function isObject(item: unknown): item is JsonObject {
  return typeof item === "object" && item !== null;
}

function sameKeys(one: JsonObject, two: unknown): boolean {
  const sorted = (item: unknown) => JSON.stringify(Object.entries(item as JsonObject).toSorted());
  return sorted(one) === sorted(two);
}

function reverse(item: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(item).reverse());
}
