/** What is written in a dialect is read back as it was meant; and whatever else is read, nothing approves by accident. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { askedOf } from "../../src/dialects/asked.ts";
import type { Answer, Asked, Dialect, Question, Reply } from "../../src/dialects/dialect.ts";
import { fieldsOf } from "../../src/dialects/fields.ts";
import { decodeText, encodeText } from "../../src/dialects/plain-text.ts";
import { DIALECTS, decodeMessage, type WireMessage } from "../../src/dialects/registry.ts";
import { resolveAnswers } from "../../src/dialects/resolve-answers.ts";
import { findJsonProblem, type Json, type JsonObject } from "../../src/task/json.ts";
import type { Request } from "../../src/task/request.ts";
import { ana, approval, auth, idOf, inDoubt, input, taskWith } from "./requests.ts";

const [A2A_INPUT, A2A_HITL, HECTOR, KAGENT, HITL, OURS] = DIALECTS as readonly [
  Dialect,
  Dialect,
  Dialect,
  Dialect,
  Dialect,
  Dialect,
];
const RUNS = 400;

// Anything that can be asked

const words = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const name = fc.oneof(
  words,
  fc.constantFrom("answer", "decision", "reason", "values", "constructor", "toString", "type"),
);
const sha = fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 });
const digests = sha.map((hex) => `sha256:${hex}` as const);
// What the core takes, as a parser gives it (minus zero is zero).
const json = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => JSON.parse(JSON.stringify(value)) as Json)
  .filter((value) => findJsonProblem(value) === undefined);
const objects = fc.dictionary(name, json, { maxKeys: 4, noNullPrototype: true }) as fc.Arbitrary<JsonObject>;
const choices = fc.uniqueArray(words, { minLength: 1, maxLength: 4 });

const textProperty = fc.record({ type: fc.constant("string"), title: words });
const selectProperty = fc.record({ type: fc.constant("string"), enum: choices, title: words });
const manyProperty = fc.record({
  type: fc.constant("array"),
  title: words,
  items: fc.record({ type: fc.constant("string"), enum: choices }),
  uniqueItems: fc.constant(true),
});
const otherProperty = fc.oneof(
  fc.record({ type: fc.constantFrom("number", "integer", "boolean", "object"), title: words }),
  fc.constant({}),
);
const properties = fc.dictionary(name, fc.oneof(textProperty, selectProperty, manyProperty, otherProperty), {
  minKeys: 1,
  maxKeys: 3,
  noNullPrototype: true,
}) as fc.Arbitrary<JsonObject>;

const ofAll = fc.record({
  digest: digests,
  prompt: words,
  risk: fc.constantFrom("low", "medium", "high"),
  expiresAtMs: fc.option(fc.integer({ min: 0, max: 4e12 })),
  onTimeout: fc.constantFrom("fail", "deny"),
});
const facts = fc.record({
  identity: fc.constantFrom("builtin:command", "builtin:write_file", "mcp:k8s", "code:pay"),
  schemaHash: fc.constant("s"),
  policyVersion: fc.constant("p"),
  plan: fc.constantFrom<JsonObject>({ argv: ["ls", "-l"] }, { path: "a" }, {}),
});
const args = fc.oneof(objects, fc.record({ command: words }), fc.record({ path: words, content: words }));
const calls = fc.record({ tool: words, args, facts, editable: fc.boolean() });

const approvals = fc.tuple(ofAll, calls).map(([a, b]): Request => ({ ...approval(), ...a, ...b, title: b.tool }));
const doubts = fc
  .tuple(ofAll, calls)
  .map(([a, { editable: _, ...b }]): Request => ({ ...inDoubt(), ...a, ...b, title: b.tool }));
const questions = fc
  .tuple(ofAll, words, properties, fc.boolean())
  .map(([a, title, p, all]): Request => ({ ...input(1, p, all ? Object.keys(p) : []), ...a, title }));
const signIns = fc
  .tuple(ofAll, words, fc.webUrl())
  .map(([a, title, url]): Request => ({ ...auth(), ...a, title, url }));
const requests = fc.oneof(approvals, doubts, questions, signIns);
const numbered = (all: readonly Request[]) => all.map((request, i) => ({ ...request, id: idOf(i + 1) }));

// Anything that can be answered

/** An answer that fits the request; `plain` says nothing that an old wire has no place for. */
const answersTo = (request: Request, plain = false): fc.Arbitrary<Answer> => {
  const requestId = request.id;
  const more = plain ? fc.constant({}) : fc.record({ digest: digests, reason: words }, { requiredKeys: [] });
  const said = (choice: Answer["choice"], rest: fc.Arbitrary<Partial<Answer>> = fc.constant({})) =>
    fc.tuple(more, rest).map(([a, b]): Answer => ({ requestId, choice, ...a, ...b }));
  const cancel = plain ? [] : [said("cancel")];
  switch (request.kind) {
    case "approval":
      return fc.oneof(
        said("approve"),
        said("deny", plain ? fc.record({ reason: words }, { requiredKeys: [] }) : undefined),
        ...(plain ? [] : [said("approve", fc.record({ editedArgs: objects }))]),
        ...cancel,
      );
    case "in-doubt":
      return fc.oneof(
        said(
          "answer",
          fc.constantFrom("done", "failed", "retry").map((outcome) => ({ values: { outcome } })),
        ),
        ...cancel,
      );
    case "auth":
      return fc.oneof(said("answer", fc.constant({ values: {} })), ...cancel);
    case "input":
      return fc.oneof(
        said(
          "answer",
          valuesOf(request).map((values) => ({ values })),
        ),
        ...cancel,
      );
  }
};

function valuesOf({ schema }: Request & { kind: "input" }): fc.Arbitrary<JsonObject> {
  const entries = fieldsOf(schema).map(({ name: field, type, options = [] }) => {
    const value: fc.Arbitrary<Json> =
      type === "text"
        ? words
        : type === "select"
          ? fc.constantFrom(...options)
          : type === "multiselect"
            ? fc.subarray([...options])
            : json;
    return value.map((one) => [field, one] as const);
  });
  return fc.tuple(...entries).map((all) => Object.fromEntries(all) as JsonObject);
}

const replies = (plain = false) =>
  requests.chain((request) => answersTo(request, plain).map((answer) => ({ request, answer })));

const decodeOne = (dialect: Dialect, data: unknown, to: Question) => dialect.decodeAnswers(data, () => to);

// The laws

const KEPT: Record<string, (asked: Asked) => Partial<Asked>> = {
  "a2a-input": withoutCallDetails,
  "a2a-hitl": withoutCallDetails,
  holdpoint: (asked) => asked,
  "hector-v1": (asked) =>
    "tool" in asked
      ? pick(asked, ["kind", "requestId", "title", "tool", "input"])
      : pick(asked, ["kind", "requestId", "title", "prompt", "schema", "url"]),
  "kagent-a": (asked) => pick(asked, ["kind", "requestId", "title", "tool", "args"]),
  "hitl-v1": (asked) =>
    pick(asked, [
      "requestId",
      ...(asked.kind === "approval" ? ["kind", "title", "prompt", "tool", "args", "callId"] : []),
    ]),
};

function withoutCallDetails(asked: Asked): Partial<Asked> {
  const { input: _i, callId: _c, ...rest } = asked as Asked & { kind: "approval" };
  return rest;
}

function pick(from: object, keys: readonly string[]): object {
  return Object.fromEntries(Object.entries(from).filter(([key]) => keys.includes(key)));
}

describe.each(DIALECTS.map((dialect) => [dialect.name, dialect] as const))("%s", (dialectName, dialect) => {
  test("a request that was read is what was asked, and would be asked the same way again", () => {
    let carried = 0;
    fc.assert(
      fc.property(requests, (request) => {
        const asked = askedOf(request, ["assistant", "helper"]);
        const payloads = dialect.encodeRequests([asked]);
        for (const { data } of payloads) {
          carried++;
          const wire = JSON.parse(JSON.stringify(data));
          const read = dialect.decodeRequests(wire);
          if (read.outcome !== "decoded") throw new Error(`${read.outcome} ${JSON.stringify(read)}`);
          expect(read.value).toEqual([expect.objectContaining(KEPT[dialectName]?.(asked) as object)]);
          expect(dialect.encodeRequests(read.value).map((payload) => payload.data)).toEqual([wire]);
          // No request is ever taken for an answer.
          expect(decodeOne(dialect, wire, request).outcome).toBe("not-mine");
        }
      }),
      { numRuns: RUNS },
    );
    expect(carried).toBeGreaterThan(RUNS / 8);
  });

  test("a dialect that carries a request whole says nothing else about it", () => {
    if (dialect !== OURS && dialect !== A2A_INPUT && dialect !== A2A_HITL) return;
    fc.assert(
      fc.property(requests, (request) => {
        const asked = askedOf(request, ["assistant"]);
        const [payload] = dialect.encodeRequests([asked]);
        const read = dialect.decodeRequests(JSON.parse(JSON.stringify(payload?.data)));
        expect(read).toEqual({ outcome: "decoded", value: [KEPT[dialectName]?.(asked)] });
      }),
      { numRuns: RUNS },
    );
  });

  test("an answer that was read is what was said", () => {
    let carried = 0;
    const plain = dialect === KAGENT || dialect === HITL;
    fc.assert(
      fc.property(replies(plain), ({ request, answer }) => {
        const payloads = dialect.encodeAnswers([{ answer, to: request }]);
        expect(payloads.length > 0).toBe(canCarry(dialect, request, answer));
        if (payloads.length === 0) return;
        carried++;
        const wire = JSON.parse(JSON.stringify(payloads[0]?.data));
        expect(decodeOne(dialect, wire, request)).toEqual({ outcome: "decoded", value: [answer] });
        // And nobody else takes it for theirs; what stands under a uri can be nobody else's anyway.
        const rivals = dialect.uri ? [] : DIALECTS.filter((other) => other !== dialect && !other.uri);
        for (const rival of rivals) expect(decodeOne(rival, wire, request).outcome).toBe("not-mine");
      }),
      { numRuns: RUNS },
    );
    expect(carried).toBeGreaterThan(RUNS / 8);
  });

  test("several answers in one message reach the requests that they mean", () => {
    fc.assert(
      fc.property(
        fc
          .array(requests, { minLength: 1, maxLength: 4 })
          .map(numbered)
          .chain((all) =>
            fc.tuple(
              fc.constant(all),
              fc.tuple(...all.map((request) => answersTo(request, dialect.uri !== OURS?.uri && dialect !== HECTOR))),
            ),
          ),
        ([all, answers]) => {
          const sent: Reply[] = answers.flatMap((answer, i) => (all[i] ? [{ answer, to: all[i] }] : []));
          const payloads = dialect.encodeAnswers(sent);
          if (payloads.length === 0) return;
          const message: WireMessage = JSON.parse(
            JSON.stringify(
              dialect.uri === undefined
                ? { parts: payloads.map(({ data }) => ({ data })) }
                : { parts: [{ text: "See metadata" }], metadata: { [dialect.uri]: payloads[0]?.data } },
            ),
          );
          const task = taskWith(...all);
          const reading = decodeMessage(message, task, "a2a");
          if (reading.type !== "answers") throw new Error(JSON.stringify(reading));
          const resolved = resolveAnswers(reading.answers, task, { principal: ana, mount: "a2a", withoutId: "deny" });
          if (!resolved.ok) throw new Error(JSON.stringify(resolved));
          for (const choice of resolved.choices) expect(answers).toContainEqual(choice);
          expect(resolved.ambiguous).toBeUndefined();
          if (dialect !== HITL && dialect !== KAGENT) expect(resolved.choices.length).toBe(payloadCount(dialect, sent));
        },
      ),
      { numRuns: RUNS },
    );
  });
});

function payloadCount(dialect: Dialect, sent: readonly Reply[]): number {
  return sent.filter((reply) => dialect.encodeAnswers([reply]).length > 0).length;
}

/** What a dialect has words for; anything less would make the properties above empty. */
function canCarry(dialect: Dialect, request: Request, { choice, values = {} }: Answer): boolean {
  const fields = request.kind === "input" ? fieldsOf(request.schema) : [];
  switch (dialect) {
    case KAGENT:
      return request.kind === "approval";
    case HITL: {
      const texts = fields.length > 0 && fields.every(({ type }) => ["text", "select", "multiselect"].includes(type));
      return request.kind === "approval" || request.kind === "in-doubt" || texts;
    }
    case HECTOR:
      return !(choice === "cancel" && fields.length === 1 && fields[0]?.options?.includes("cancel"));
    case A2A_INPUT:
    case A2A_HITL: {
      const hasDecision = fields.some((field) => field.name === "decision");
      return choice === "answer" ? hasDecision || values.decision !== "cancel" : !hasDecision;
    }
    default:
      return true;
  }
}

test("what words can say, words say", () => {
  let carried = 0;
  fc.assert(
    fc.property(replies(true), ({ request, answer }) => {
      const said = encodeText({ answer, to: request });
      if (said === undefined) return;
      carried++;
      const { choice, values } = answer;
      expect(decodeText(said, request)).toEqual({ choice, ...(values ? { values } : {}) });
    }),
    { numRuns: RUNS },
  );
  expect(carried).toBeGreaterThan(RUNS / 8);
});

describe("whatever is sent", () => {
  const tokens = [
    "a2a.input.response",
    "a2a.hitl.formResponse",
    "a2a.input.request",
    "tool_approval",
    "tool_approval_response",
    "ask_user_response",
    "batch",
    "approve",
    "approved",
    "deny",
    "reject",
    "cancel",
    "answer",
    "yes",
    "no",
    "y",
    "maybe",
    "disapprove",
    "do not approve",
    "done",
    "retry",
    "input-T-1",
    "input-T-2",
    "input-X-1",
    "pg",
  ];
  const keys = [
    "type",
    "requestId",
    "interruptId",
    "formId",
    "request_id",
    "values",
    "decision",
    "decision_type",
    "decisions",
    "reason",
    "editedArgs",
    "edited_args",
    "digest",
    "metadata",
    "data",
    "approvals",
    "approved",
    "id",
    "answers",
    "rejection_reason",
    "rejection_reasons",
    "outcome",
    "__proto__",
    "constructor",
    "toString",
    "interaction_type",
  ];
  const { value: foreign } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...tokens),
      fc.oneof(fc.boolean(), fc.constant(null), fc.integer(), fc.string()),
      fc.array(tie("value"), { maxLength: 3 }),
      tie("object"),
      tie("object"),
    ),
    object: fc
      .array(fc.tuple(fc.constantFrom(...keys), tie("value")), { maxLength: 5 })
      // As a parser makes it: with a key called __proto__ if there is one.
      .map((entries) => JSON.parse(`{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join()}}`)),
  }));
  const parts = fc.array(
    fc.oneof(
      fc.record({ data: foreign }),
      fc.record({ data: fc.record({ data: foreign }) }),
      fc.record({ text: fc.constantFrom(...tokens) }),
      fc.record({ text: fc.string() }),
      foreign.filter((part) => typeof part === "object" && part !== null),
    ),
    { maxLength: 3 },
  );
  const metadata = fc.dictionary(fc.constantFrom(HITL.uri ?? "", OURS.uri ?? "", "other"), foreign, { maxKeys: 2 });
  const messages = fc.record({ parts, metadata }) as fc.Arbitrary<WireMessage>;
  const tasks = [
    taskWith(),
    taskWith(approval()),
    taskWith(approval(1), approval(2)),
    taskWith([approval(1), {}]),
    taskWith(input(1, { answer: { type: "string" } }), approval(2)),
    taskWith(inDoubt(1)),
    taskWith(auth(1)),
  ];

  test("it is read without a throw, and approves only if it says so", () => {
    let approvedCount = 0;
    let malformedCount = 0;
    fc.assert(
      fc.property(messages, fc.constantFrom(...tasks), fc.constantFrom("a2a", "v1"), (message, task, mount) => {
        const reading = decodeMessage(message, task, mount);
        if (reading.type === "malformed") {
          malformedCount++;
          expect(reading.pointer).toMatch(/^\/(parts\/\d+|metadata)\//);
          expect(reading.detail).not.toBe("");
        }
        if (reading.type !== "answers") return;
        for (const { answer } of reading.answers) {
          if (answer.choice !== "approve") continue;
          approvedCount++;
          expect(saysApprove(message)).toBe(true);
        }
        resolveAnswers(reading.answers, task, { principal: ana, mount, withoutId: "allow" });
      }),
      { numRuns: 20_000 },
    );
    // The generator reaches both.
    expect(approvedCount).toBeGreaterThan(20);
    expect(malformedCount).toBeGreaterThan(500);
  });

  /** Said apart from the codecs: a word of approval as a whole value, where a decision may stand. */
  function saysApprove(value: unknown, at = ""): boolean {
    if (typeof value === "string")
      return /^(decision|decision_type|text|input-.*)$/.test(at) && /^\s*(approve|approved|yes|y)\s*$/i.test(value);
    if (value === true) return at === "approved";
    if (typeof value !== "object" || value === null) return false;
    // The names of a batch are ids, and may be anything.
    return Object.entries(value).some(([key, inner]) =>
      saysApprove(inner, at === "decisions" ? "input-" : Array.isArray(value) ? at : key),
    );
  }

  test("no dialect throws on any JSON, whichever way it is read", () => {
    fc.assert(
      fc.property(foreign, fc.constantFrom(...DIALECTS), requests, (data, dialect, request) => {
        for (const find of [() => request, () => undefined]) {
          expect(["decoded", "malformed", "not-mine"]).toContain(dialect.decodeAnswers(data, find).outcome);
        }
        expect(["decoded", "malformed", "not-mine"]).toContain(dialect.decodeRequests(data).outcome);
      }),
      { numRuns: 5_000 },
    );
  });
});
