import { describe, expect, test } from "vitest";
import {
  approval,
  auth,
  ben,
  digest,
  idOf,
  inDoubt,
  input,
  multiselect,
  select,
  several,
  taskWith,
  text,
} from "../../test/dialects/requests.ts";
import type { JsonObject } from "../task/json.ts";
import { ANSWERS_MAX, DIALECTS, decodeMessage, SERVED_DIALECTS } from "./registry.ts";
import type { Mount } from "./resolve-answers.ts";

const HITL = "https://kagent.dev/extensions/hitl/v1";
const OURS = "urn:holdpoint:hitl:v1";

const say = (words: string): JsonObject => ({ text: words });
const data = (value: JsonObject): JsonObject => ({ data: value });
const respond = (values: JsonObject, rest: JsonObject = { requestId: idOf(1) }) =>
  data({ type: "a2a.input.response", values, ...rest });
const approved = respond({ decision: "approve" });
const denied = respond({ decision: "deny" });

function read(parts: readonly JsonObject[], task = taskWith(approval()), mount: Mount = "a2a", metadata?: JsonObject) {
  return decodeMessage({ parts, ...(metadata ? { metadata } : {}) }, task, mount);
}

/** What was said, shortly: the choices, "chat", or where it is wrong. */
function short(...message: Parameters<typeof read>): string {
  const reading = read(...message);
  if (reading.type === "chat") return "chat";
  if (reading.type === "malformed") return `malformed ${reading.pointer}`;
  return reading.answers.map(({ answer }) => `${answer.choice} ${answer.requestId ?? "-"}`).join(", ");
}

describe("what a message means", () => {
  const both = taskWith(approval(1), approval(2));
  const closed = taskWith([approval(1), { principal: ben }]);
  const hitl = (approvals: JsonObject[]) => ({ [HITL]: { type: "tool_approval_response", approvals } });
  const ours = (...decisions: JsonObject[]) => ({ [OURS]: { decisions } });

  test.each([
    ["a structured answer", "approve input-T-1", [approved]],
    ["structured wins over text", "approve input-T-1", [say("deny"), approved]],
    ["structured wins over text, wherever it stands", "deny input-T-1", [denied, say("approve")]],
    [
      "structured in metadata wins over text",
      "deny input-T-1",
      [say("yes")],
      undefined,
      hitl([{ id: idOf(1), approved: false }]),
    ],
    [
      "our own metadata wins over text",
      "cancel input-T-1",
      [say("yes")],
      undefined,
      ours({ requestId: idOf(1), decision: "cancel" }),
    ],
    [
      "two parts about two requests",
      "approve input-T-1, deny input-T-2",
      [approved, respond({ decision: "deny" }, { requestId: idOf(2) })],
      both,
    ],
    ["the same said twice", "approve input-T-1", [approved, approved]],
    [
      "the same said in two dialects",
      "approve input-T-1",
      [approved],
      undefined,
      hitl([{ id: idOf(1), approved: true }]),
    ],
    ["two parts that disagree", "malformed /parts/1/data", [approved, denied]],
    [
      "two dialects that disagree",
      `malformed /metadata/${OURS}`,
      [approved],
      undefined,
      ours({ requestId: idOf(1), decision: "deny" }),
    ],
    [
      "two nameless parts that disagree",
      "malformed /parts/1/data",
      [data({ decision: "approve" }), data({ decision_type: "deny" })],
    ],
    [
      "as shown and with changes are not the same",
      "malformed /parts/1/data",
      [approved, respond({ decision: "approve", editedArgs: {} })],
    ],
    [
      "an invalid part beside a valid one",
      "malformed /parts/1/data/values/decision",
      [approved, respond({ decision: "maybe" }, { requestId: idOf(2) })],
      both,
    ],
    ["an invalid part before a valid one", "malformed /parts/0/data/decision", [data({ decision: "maybe" }), approved]],
    [
      "an invalid part and a text",
      "malformed /parts/1/data/decision_type",
      [say("approve"), data({ decision_type: "maybe" })],
    ],
    ["changes to what is denied", "malformed /parts/0/data", [respond({ decision: "deny", editedArgs: {} })]],
    ["a keyword", "approve -", [say(" Approve\n")]],
    ["a keyword of 0.3", "deny -", [{ kind: "text", text: "no" }]],
    ["other words", "chat", [say("what would it do?")]],
    ["a keyword and more words", "chat", [say("approve"), say("but only this")]],
    ["a keyword and data that is no answer", "chat", [say("approve"), data({ note: 1 })]],
    ["a keyword and a file", "chat", [say("approve"), { url: "https://example.com/a" }]],
    ["a keyword in a part that has data too", "chat", [{ text: "approve", data: { note: 1 } }]],
    ["a keyword in the metadata", "chat", [say("hello")], undefined, { text: "approve", decision: "approve" }],
    ["nothing", "chat", []],
    ["data that is no answer", "chat", [data({ type: "note", values: { decision: "approve" } })]],
    ["an echo of what was asked", "chat", [data({ type: "a2a.input.request", requestId: idOf(1) })]],
    ["an echo of what was refused", "chat", [say("hm")], undefined, { [OURS]: { refused: [] } }],
    [
      "an echo of what kagent was asked",
      "chat",
      [say("hm")],
      undefined,
      { [HITL]: { type: "tool_approval_request", tools: [] } },
    ],
    ["nested once", "approve -", [data({ data: { decision: "approve" } })]],
    ["nested once, any dialect", "approve input-T-1", [data(approved)]],
    ["nested twice", "chat", [data({ data: { data: { decision: "approve" } } })]],
    ["nested beside something", "chat", [data({ data: { decision: "approve" }, more: 1 })]],
    ["a keyword with two open is an answer, though nobody knows to what", "approve -", [say("yes")], both],
    ["a keyword after the last approval is closed is late", "approve -", [say("yes")], closed],
    ["other words after that", "chat", [say("thanks")], closed],
    ["a keyword where nothing was ever asked", "chat", [say("yes")], taskWith()],
    ["a keyword after a question only", "chat", [say("yes")], taskWith([text(1), {}])],
    ["a late answer by name", "approve input-T-1", [approved], closed],
    ["a late answer without a name", "approve -", [data({ decision: "approve" })], closed],
    ["text for a question", "answer -", [say("because")], taskWith(text())],
    ["a choice", "answer -", [say("pg")], taskWith(select())],
    ["not a choice", "chat", [say("mysql")], taskWith(select())],
    ["one of several choices", "answer -", [say("a")], taskWith(multiselect())],
    ["text for several questions", "chat", [say("because")], taskWith(several())],
    ["text for a number", "chat", [say("3")], taskWith(input(1, { n: { type: "number" } }))],
    ["text for an in-doubt request", "chat", [say("retry")], taskWith(inDoubt())],
    ["a keyword for an in-doubt request", "chat", [say("yes")], taskWith(inDoubt())],
    ["text for a sign-in", "chat", [say("done")], taskWith(auth())],
    ["a text that one of two open requests would take", "answer -", [say("because")], taskWith(approval(1), text(2))],
    ["a structured in-doubt answer", "answer input-T-1", [respond({ outcome: "retry" })], taskWith(inDoubt())],
    ["a cancel of a question", "cancel input-T-1", [respond({ decision: "cancel" })], taskWith(text())],
    [
      "a question about a decision",
      "answer input-T-1",
      [respond({ decision: "cancel" })],
      taskWith(input(1, { decision: { type: "string" } })),
    ],
    [
      "an id of another task, read as it stands",
      "approve input-X-1",
      [respond({ decision: "approve" }, { requestId: "input-X-1" })],
    ],
  ] as const)("%s: %s", (_what, expected, parts: readonly JsonObject[], task?, metadata?) => {
    expect(short(parts, task, "a2a", metadata)).toBe(expected);
  });

  test.each([
    ["a keyword means the lowest one only", "approve -", [say("yes")], both],
    ["a text for what is not shown", "chat", [say("because")], taskWith(approval(1), text(2))],
    ["a text for what is shown", "answer -", [say("because")], taskWith(text(1), approval(2))],
    ["a keyword for a question is its text", "answer -", [say("yes")], taskWith(text(1), approval(2))],
    ["Hector's word for what is shown", "answer -", [data({ decision: "approve" })], taskWith(text(1), approval(2))],
    ["an in-doubt request before an approval takes no word", "chat", [say("yes")], taskWith(inDoubt(1), approval(2))],
  ] as const)("on /v1/agents, where one request is shown: %s", (_what, expected, parts, task) => {
    expect(short(parts, task, "v1")).toBe(expected);
  });

  test("parts complete each other", () => {
    const reading = read([respond({ decision: "approve", reason: "fine" })], undefined, "a2a", {
      [OURS]: { decisions: [{ requestId: idOf(1), decision: "approve", digest }] },
    });
    const answer = { requestId: idOf(1), choice: "approve", reason: "fine", digest };
    expect(reading).toEqual({ type: "answers", answers: [{ answer, pointer: "/parts/0/data" }] });
  });

  test("values come back as they were sent, whatever their type", () => {
    const values = { n: 1.5, list: ["a"], sure: false, more: { deep: [null] }, text: "3" };
    const reading = read([respond(values)], taskWith(input(1, { n: {}, list: {}, sure: {}, more: {}, text: {} })));
    expect(reading).toMatchObject({ type: "answers", answers: [{ answer: { choice: "answer", values } }] });
  });
});

describe("a wrong answer is told where", () => {
  test.each([
    ["no values", data({ type: "a2a.input.response", requestId: idOf(1) }), "/parts/0/data/values"],
    ["values that are a list", data({ type: "a2a.input.response", values: ["approve"] }), "/parts/0/data/values"],
    ["values that are a text", data({ type: "a2a.input.response", values: "approve" }), "/parts/0/data/values"],
    ["no decision", respond({}), "/parts/0/data/values/decision"],
    ["a decision that is true", respond({ decision: true }), "/parts/0/data/values/decision"],
    ["a decision in a list", respond({ decision: ["approve"] }), "/parts/0/data/values/decision"],
    ["a decision in capitals", respond({ decision: "APPROVE" }), "/parts/0/data/values/decision"],
    ["an AG-UI answer", respond({ approved: true }), "/parts/0/data/values/decision"],
    ["a misspelt change", respond({ decision: "approve", editedargs: {} }), "/parts/0/data/values/editedargs"],
    [
      "a change as text",
      respond({ decision: "approve", editedArgs: '{"command":"ls"}' }),
      "/parts/0/data/values/editedArgs",
    ],
    ["a change as a list", respond({ decision: "approve", editedArgs: [] }), "/parts/0/data/values/editedArgs"],
    ["a reason that is a number", respond({ decision: "approve", reason: 1 }), "/parts/0/data/values/reason"],
    ["a reason too long", respond({ decision: "deny", reason: "x".repeat(10_001) }), "/parts/0/data/values/reason"],
    ["an id that is a number", respond({ decision: "approve" }, { requestId: 1 }), "/parts/0/data/requestId"],
    ["an empty id", respond({ decision: "approve" }, { requestId: "" }), "/parts/0/data/requestId"],
    ["an endless id", respond({ decision: "approve" }, { requestId: "x".repeat(513) }), "/parts/0/data/requestId"],
    [
      "a digest that is none",
      respond({ decision: "approve" }, { metadata: { digest: "abc" } }),
      "/parts/0/data/metadata/digest",
    ],
    [
      "a digest in capitals",
      respond({ decision: "approve" }, { metadata: { digest: digest.toUpperCase() } }),
      "/parts/0/data/metadata/digest",
    ],
    ["Hector's unknown key", data({ decision: "approve", note: 1 }), "/parts/0/data/note"],
    ["Hector's misspelt change", data({ decision: "approve", editedArgs: {} }), "/parts/0/data/editedArgs"],
    ["Hector's decision as true", data({ decision: true }), "/parts/0/data/decision"],
    ["Hector's id as a number", data({ decision: "approve", request_id: 1 }), "/parts/0/data/request_id"],
    ["Hector's values with another word", data({ decision: "approve", values: {} }), "/parts/0/data/decision"],
    ["both Hector and kagent", data({ decision: "approve", decision_type: "deny" }), "/parts/0/data/decision_type"],
  ])("%s", (_what, part, pointer) => {
    expect(short([part])).toBe(`malformed ${pointer}`);
  });

  test("a key with a slash and a tilde is written as RFC 6901 wants it", () => {
    expect(short([data({ decision: "approve", "a/b~c": 1 })])).toBe("malformed /parts/0/data/a~1b~0c");
    expect(short([], undefined, "a2a", { [HITL]: { type: "x" } })).toBe(
      "malformed /metadata/https:~1~1kagent.dev~1extensions~1hitl~1v1/type",
    );
  });

  test("null is nothing said", () => {
    expect(
      short([respond({ decision: "approve", reason: null, editedArgs: null }, { requestId: null, metadata: null })]),
    ).toBe("approve -");
  });
});

describe("hostile data", () => {
  const parse = (json: string) => JSON.parse(json) as JsonObject;
  const deep = (depth: number) => parse(`${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`);

  test.each([
    ["__proto__ in the values", '{"type":"a2a.input.response","values":{"decision":"approve","__proto__":{"x":1}}}'],
    [
      "__proto__ in changes",
      '{"type":"a2a.input.response","values":{"decision":"approve","editedArgs":{"__proto__":{}}}}',
    ],
    ["__proto__ beside the decision", '{"decision":"approve","__proto__":{"request_id":"input-T-1"}}'],
    ["__proto__ as an id", '{"decision_type":"batch","decisions":{"__proto__":"approve","input-T-1":"approve"}}'],
    ["__proto__ at the top", '{"type":"a2a.input.response","values":{"decision":"approve"},"__proto__":null}'],
    [
      "a number beyond 2^53",
      '{"type":"a2a.input.response","values":{"decision":"approve","editedArgs":{"n":9007199254740993}}}',
    ],
    ["an endless number", '{"type":"a2a.input.response","values":{"decision":"approve","editedArgs":{"n":1e999}}}'],
    ["half a character", '{"type":"a2a.input.response","values":{"decision":"approve","reason":"\\ud800"}}'],
  ])("%s", (_what, json) => {
    expect(read([data(parse(json))]).type).toBe("malformed");
    expect(read([data({ data: parse(json) })]).type).toBe("malformed");
  });

  test("a decision that stands in a prototype is none", () => {
    expect(short([data(parse('{"__proto__":{"decision":"approve"}}'))])).toBe("chat");
    expect(short([data(parse('{"__proto__":{"type":"a2a.input.response","values":{"decision":"approve"}}}'))])).toBe(
      "chat",
    );
    expect(short([data(Object.create({ decision: "approve" }))])).toBe("chat");
  });

  test("depth", () => {
    expect(read([respond({ decision: "approve", editedArgs: deep(30) })]).type).toBe("answers");
    for (const depth of [100, 10_000]) {
      expect(read([respond({ decision: "approve", editedArgs: deep(depth) })]).type).toBe("malformed");
      expect(
        read([respond({ decision: "approve" }), respond({ decision: "approve", editedArgs: deep(depth) })]).type,
      ).toBe("malformed");
      expect(read([data(deep(depth))]).type).toBe("chat");
    }
  });

  test("size", () => {
    const huge = "x".repeat(2 * 1024 * 1024);
    expect(read([respond({ decision: "approve", editedArgs: { huge } })]).type).toBe("malformed");
    expect(read([data({ huge })]).type).toBe("chat");
    expect(read([say(huge)]).type).toBe("chat");
    const wide = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`k${i}`, "approve"]));
    expect(read([data({ decision_type: "batch", decisions: wide })]).type).toBe("malformed");
  });

  test(`more than ${ANSWERS_MAX} answers`, () => {
    const decisions = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`input-T-${i + 1}`, "approve"]));
    const batch = (count: number) => data({ decision_type: "batch", decisions: decisions(count) });
    expect(read([batch(ANSWERS_MAX)]).type).toBe("answers");
    expect(read([batch(ANSWERS_MAX + 1)]).type).toBe("malformed");
    expect(read(Array.from({ length: ANSWERS_MAX + 1 }, () => approved)).type).toBe("malformed");
  });

  test.each([null, [], "approve", 1, true, [{ decision: "approve" }], { 0: { decision: "approve" } }] as const)(
    "data that is no object is no answer: %j",
    (value) => {
      expect(short([{ data: value as never }])).toBe("chat");
      expect(short([{ data: { data: value as never } }])).toBe("chat");
    },
  );

  test.each([null, "approve", 1, [], [{ decisions: [] }]] as const)(
    "metadata that is no object is no answer: %j",
    (value) => {
      expect(short([say("hm")], undefined, "a2a", { [OURS]: value as never, [HITL]: value as never })).toBe("chat");
    },
  );
});

describe("the list of dialects", () => {
  test("names each once", () => {
    const names = DIALECTS.map(({ name }) => name);
    expect(names).toEqual(["a2a-input", "a2a-hitl", "hector-v1", "kagent-a", "hitl-v1", "holdpoint"]);
    expect(Object.values(SERVED_DIALECTS).every((dialect) => DIALECTS.includes(dialect) && !dialect.uri)).toBe(true);
  });
});
