/** The shapes that DESIGN §6, the seeds and facts/seed-systems.md print, word for word. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { a2aHitl } from "../../src/dialects/a2a-hitl.ts";
import { a2aInput } from "../../src/dialects/a2a-input.ts";
import { hectorV1 } from "../../src/dialects/hector-v1.ts";
import { hitlV1 } from "../../src/dialects/hitl-v1.ts";
import { holdpoint } from "../../src/dialects/holdpoint.ts";
import { kagentA } from "../../src/dialects/kagent-a.ts";
import { decodeMessage, encodeMetadata, encodeParts, SERVED_DIALECTS } from "../../src/dialects/registry.ts";
import type { Request } from "../../src/task/request.ts";
import * as requests from "./requests.ts";
import { approval, digest, idOf, taskWith } from "./requests.ts";

const seed = (name: string) => JSON.parse(readFileSync(new URL(`../seeds/${name}`, import.meta.url), "utf8"));
const PATH = ["assistant"];
const served = (name: keyof typeof SERVED_DIALECTS, ...asked: Request[]) =>
  encodeParts(SERVED_DIALECTS[name], asked, PATH).map(({ data }) => data);

describe("a2a.input", () => {
  const expiring = approval(1, { expiresAtMs: Date.UTC(2026, 10, 15, 12) });
  const decisionFields = [
    { name: "decision", type: "select", label: "Decision", required: true, options: ["approve", "deny"] },
    { name: "reason", type: "text", label: "Reason", required: false },
  ];
  const editField = { name: "editedArgs", type: "json", label: "Changed arguments", required: false };
  const asked = {
    type: "a2a.input.request",
    requestId: "input-T-1",
    title: "execute_command",
    description: "Run ls -l?",
    fields: [...decisionFields, editField],
    metadata: {
      kind: "approval",
      tool: "execute_command",
      args: { command: "ls -l" },
      argv: ["ls", "-l"],
      digest,
      editable: true,
      risk: "high",
      path: ["assistant"],
      expiresAt: "2026-11-15T12:00:00.000Z",
      onTimeout: "fail",
    },
  };

  test("asks as DESIGN §6 shows it, key by key and in that order", () => {
    expect(JSON.stringify(served("input", expiring)[0])).toBe(JSON.stringify(asked));
  });

  test("offers changed arguments only where they are taken, a deadline only where there is one", () => {
    const [data] = served("input", approval(1, { editable: false }));
    expect(data?.fields).toEqual(decisionFields);
    expect(data?.metadata).not.toHaveProperty("expiresAt");
  });

  test("shows an argv only where it is what would run", () => {
    const facts = { ...approval().facts, identity: "mcp:stdio:k8s" };
    expect(served("input", approval(1, { facts }))[0]?.metadata).not.toHaveProperty("argv");
  });

  test("asks a question with one field for each property, and its schema", () => {
    const schema = {
      type: "object",
      required: ["why", "db"],
      properties: {
        why: { type: "string", title: "Why?" },
        db: { type: "string", enum: ["pg", "sqlite"], title: "Which?" },
        tags: { type: "array", items: { enum: ["a", "b"] } },
        count: { type: "integer", title: "How many?" },
        share: { type: "number" },
        sure: { type: "boolean" },
        more: { type: "object" },
        list: { type: "array", items: { type: "string" } },
        mixed: { enum: ["a", 1] },
        any: true,
      },
    };
    const [data] = served("input", { ...requests.text(), schema });
    expect(data?.fields).toEqual([
      { name: "why", type: "text", label: "Why?", required: true },
      { name: "db", type: "select", label: "Which?", required: true, options: ["pg", "sqlite"] },
      { name: "tags", type: "multiselect", label: "tags", required: false, options: ["a", "b"] },
      { name: "count", type: "number", label: "How many?", required: false },
      { name: "share", type: "number", label: "share", required: false },
      { name: "sure", type: "boolean", label: "sure", required: false },
      { name: "more", type: "json", label: "more", required: false },
      { name: "list", type: "json", label: "list", required: false },
      { name: "mixed", type: "json", label: "mixed", required: false },
      { name: "any", type: "json", label: "any", required: false },
    ]);
    expect(data?.metadata).toMatchObject({ kind: "input", schema });
  });

  test("asks what happened after a crash with one field, and where to sign in", () => {
    const [doubt, signIn] = served("input", requests.inDoubt(1), requests.auth(2));
    expect(doubt).toMatchObject({
      fields: [{ name: "outcome", type: "select", required: true, options: ["done", "failed", "retry"] }],
      metadata: { kind: "in-doubt", tool: "execute_command", args: { command: "ls -l" } },
    });
    expect(signIn).toMatchObject({ fields: [], metadata: { kind: "auth", url: "https://login.example" } });
  });

  test("a question without properties has no fields", () => {
    for (const schema of [{}, { type: "object" }, { properties: [] }, { anyOf: [{ properties: { a: {} } }] }]) {
      expect(served("input", { ...requests.text(), schema })[0]?.fields).toEqual([]);
    }
  });

  test("seed 001: a request of another agent says as much as it likes", () => {
    expect(a2aInput.decodeRequests({ type: "a2a.input.request" })).toEqual({
      outcome: "decoded",
      value: [{ kind: "input", schema: { type: "object", additionalProperties: false, required: [], properties: {} } }],
    });
    const fields = [
      { name: "email", type: "email", required: true },
      { name: "n", type: "number", label: "N" },
    ];
    expect(a2aInput.decodeRequests({ type: "a2a.input.request", requestId: "r", title: "Who?", fields })).toMatchObject(
      {
        value: [
          {
            kind: "input",
            requestId: "r",
            title: "Who?",
            schema: {
              required: ["email"],
              properties: { email: { type: "string", title: "email" }, n: { type: "number", title: "N" } },
            },
          },
        ],
      },
    );
  });

  test("seed 001: an answer has a requestId or none", () => {
    const values = { decision: "approve", reason: "fine", editedArgs: { command: "ls" } };
    const response = { type: "a2a.input.response", requestId: "input-T-1", values, metadata: { digest } };
    const said = { choice: "approve", reason: "fine", editedArgs: { command: "ls" }, digest };
    const find = () => approval();
    expect(a2aInput.decodeAnswers(response, find)).toEqual({
      outcome: "decoded",
      value: [{ ...said, requestId: "input-T-1" }],
    });
    const { requestId: _, ...nameless } = response;
    expect(a2aInput.decodeAnswers(nameless, find)).toEqual({ outcome: "decoded", value: [said] });
    // As the bridge of ag-ui PR #763 answers.
    expect(a2aInput.decodeAnswers({ ...nameless, interruptId: idOf(1), payload: values }, find)).toMatchObject({
      value: [{ requestId: idOf(1), choice: "approve" }],
    });
    expect(a2aInput.decodeAnswers({ ...response, interruptId: idOf(2) }, find)).toMatchObject({
      pointer: "/interruptId",
    });
  });
});

test("seed 000: a2a.hitl has forms with other names", () => {
  const [form] = served("hitl", approval());
  const [standard] = served("input", approval());
  const { type, requestId, ...same } = standard ?? {};
  expect(form).toEqual({ type: "a2a.hitl.form", formId: requestId, ...same });
  const response = { type: "a2a.hitl.formResponse", formId: "input-T-1", values: { decision: "deny" } };
  expect(a2aHitl.decodeAnswers(response, () => approval())).toEqual({
    outcome: "decoded",
    value: [{ requestId: "input-T-1", choice: "deny" }],
  });
  expect(a2aHitl.decodeAnswers({ ...response, type: "a2a.input.response" }, () => approval()).outcome).toBe("not-mine");
});

describe("Hector v1", () => {
  const messages = seed("002-messages.json");

  test("seed 002: asks as it asks, and with an id", () => {
    const facts = { ...approval().facts };
    const command = approval(1, { facts, args: { command: "rm -rf /tmp/old-files" } });
    expect(served("hector", command)).toEqual([{ ...messages.pause.parts[1].data, request_id: "input-T-1" }]);
  });

  test.each([
    ["builtin:write_file", { path: "a.txt", content: "x" }, "a.txt"],
    ["builtin:delete_file", { path: "a.txt" }, "a.txt"],
    ["builtin:command", { command: "ls -l", working_directory: "b" }, "ls -l"],
    [
      "mcp:k8s:delete_pod",
      { ns: "b", command: "ls", a: [1, { c: 2, b: 1 }] },
      '{"a":[1,{"b":1,"c":2}],"command":"ls","ns":"b"}',
    ],
    ["code:pay", { path: "x" }, '{"path":"x"}'],
  ])("the input of %s is what a person can read in a line", (identity, args, tool_input) => {
    const facts = { ...approval().facts, identity };
    expect(served("hector", approval(1, { facts, args }))[0]).toMatchObject({ tool_input });
  });

  test("asks what Hector never asks in its manner", () => {
    const [doubt, choice, words, signIn] = served(
      "hector",
      requests.inDoubt(1),
      requests.select(2),
      requests.text(3),
      requests.auth(4),
    );
    expect(doubt).toMatchObject({
      interaction_type: "in_doubt",
      options: ["done", "failed", "retry"],
      request_id: idOf(1),
    });
    expect(choice).toMatchObject({ interaction_type: "user_input", options: ["pg", "sqlite"], request_id: idOf(2) });
    expect(words).not.toHaveProperty("options");
    expect(signIn).toMatchObject({ interaction_type: "user_input", options: ["done"], url: "https://login.example" });
  });

  test.each(["approve", "deny"] as const)("seed 002: takes %s as its curl commands send it", (choice) => {
    const reading = decodeMessage(messages[choice], taskWith(approval()), "v1");
    expect(reading).toEqual({ type: "answers", answers: [{ answer: { choice }, pointer: "/parts/1/data" }] });
  });

  test.each(["approve", "deny"] as const)("takes %s nested as protojson has it", (choice) => {
    const parts = [{ text: choice }, { data: { data: { decision: choice } } }];
    const reading = decodeMessage({ parts }, taskWith(approval()), "v1");
    expect(reading).toEqual({ type: "answers", answers: [{ answer: { choice }, pointer: "/parts/1/data/data" }] });
  });

  test.each([
    ["pg", requests.select(), { choice: "answer", values: { answer: "pg" } }],
    ["because", requests.text(), { choice: "answer", values: { answer: "because" } }],
    ["retry", requests.inDoubt(), { choice: "answer", values: { outcome: "retry" } }],
    [" Done ", requests.inDoubt(), { choice: "answer", values: { outcome: "done" } }],
    ["done", requests.auth(), { choice: "answer", values: {} }],
    ["YES", approval(), { choice: "approve" }],
    ["reject", approval(), { choice: "deny" }],
    ["cancel", approval(), { choice: "cancel" }],
    ["cancel", requests.text(), { choice: "cancel" }],
    ["cancel", requests.inDoubt(), { choice: "cancel" }],
    ["cancel", requests.select(1, ["cancel", "go"]), { choice: "answer", values: { answer: "cancel" } }],
  ] as const)("its loop answers with the word that was typed: %s", (decision, question, answer) => {
    expect(hectorV1.decodeAnswers({ decision }, () => question)).toEqual({ outcome: "decoded", value: [answer] });
  });

  test.each([
    ["maybe", approval()],
    ["disapprove", approval()],
    ["do not approve", approval()],
    ["approve", requests.inDoubt()],
    ["approve", requests.auth()],
    ["mysql", requests.select()],
    ["words", requests.several()],
    ["", approval()],
    ["pg", undefined],
  ] as const)("and is told when it is no answer: %j", (decision, question) => {
    expect(hectorV1.decodeAnswers({ decision }, () => question)).toMatchObject({
      outcome: "malformed",
      pointer: "/decision",
    });
  });

  test("leaves Hector v2 to others", () => {
    const v2 = { type: "tool_approval", decision: "approve", tool_call_id: "call_1" };
    expect(hectorV1.decodeAnswers(v2, () => approval()).outcome).toBe("not-mine");
  });

  test("reads what a real one asks: arguments as JSON in a text, or words", () => {
    const ask = (tool_input: string) =>
      hectorV1.decodeRequests({ interaction_type: "tool_approval", tool_name: "write_file", tool_input, options: [] });
    expect(ask('{"path":"a"}')).toMatchObject({
      value: [{ kind: "approval", tool: "write_file", args: { path: "a" } }],
    });
    const words = ask("Command: ls\nWorking Directory: .");
    expect(words).toMatchObject({ value: [{ input: "Command: ls\nWorking Directory: ." }] });
    expect(words.outcome === "decoded" && words.value[0]).not.toHaveProperty("args");
  });
});

describe("kagent A", () => {
  const messages = seed("003-messages.json");

  test("seed 003: asks as it asks", () => {
    const [payload] = encodeParts(kagentA, [approval()], PATH);
    const [, { data, metadata }] = messages.pause.parts;
    expect(payload).toEqual({
      data: {
        interrupt_type: data.interrupt_type,
        action_requests: [{ name: "execute_command", args: { command: "ls -l" }, id: "input-T-1" }],
      },
      metadata,
    });
    expect(kagentA.decodeRequests(data)).toMatchObject({
      outcome: "decoded",
      value: [{ kind: "approval", tool: "..." }],
    });
  });

  test("seed 003: an answer without ids names none", () => {
    const reading = decodeMessage(messages.approve, taskWith(approval()), "a2a");
    expect(reading).toEqual({
      type: "answers",
      answers: [{ answer: { choice: "approve" }, pointer: "/parts/0/data" }],
    });
  });

  test.each([
    [{ decision_type: "deny" }, [{ choice: "deny" }]],
    [{ decision_type: "reject", rejection_reason: "no" }, [{ choice: "deny", reason: "no" }]],
    [{ decision_type: "approve", rejection_reason: null }, [{ choice: "approve" }]],
    [
      {
        decision_type: "batch",
        decisions: { "input-T-1": "approve", "input-T-2": "reject" },
        rejection_reasons: { "input-T-2": "wrong pod" },
      },
      [
        { requestId: "input-T-1", choice: "approve" },
        { requestId: "input-T-2", choice: "deny", reason: "wrong pod" },
      ],
    ],
  ])("takes %j", (data, value) => {
    expect(kagentA.decodeAnswers(data, () => undefined)).toEqual({ outcome: "decoded", value });
  });

  test.each([
    [{ decision_type: "yes" }, "/decision_type"],
    [{ decision_type: "Approve" }, "/decision_type"],
    [{ decision_type: true }, "/decision_type"],
    [{ decision_type: "approve", rejection_reason: "too risky" }, "/rejection_reason"],
    [{ decision_type: "approve", ask_user_answers: [{ answer: ["x"] }] }, "/ask_user_answers"],
    [{ decision_type: "approve", decisions: { "input-T-1": "reject" } }, "/decisions"],
    [{ decision_type: "batch", decisions: {} }, "/decisions"],
    [{ decision_type: "batch" }, "/decisions"],
    [{ decision_type: "batch", decisions: { "input-T-1": true } }, "/decisions/input-T-1"],
    [{ decision_type: "batch", decisions: { a: "approve" }, rejection_reasons: { a: "no" } }, "/rejection_reasons/a"],
    [{ decision_type: "batch", decisions: { a: "reject" }, rejection_reasons: { b: "no" } }, "/rejection_reasons/b"],
  ])("refuses %j", (data, pointer) => {
    expect(kagentA.decodeAnswers(data, () => undefined)).toMatchObject({ outcome: "malformed", pointer });
  });

  test("what it cannot ask is asked in the standard way", () => {
    const asked = served("kagent", approval(1), requests.text(2), requests.inDoubt(3), requests.auth(4));
    expect(asked.map(({ type, interrupt_type }) => type ?? interrupt_type)).toEqual([
      "tool_approval",
      "a2a.input.request",
      "a2a.input.request",
      "a2a.input.request",
    ]);
  });
});

describe("kagent's hitl/v1", () => {
  const uri = "https://kagent.dev/extensions/hitl/v1";
  const negotiated = (...asked: Request[]) => encodeMetadata([uri], asked, PATH)[uri];

  test("asks about all approvals at once, and before any question", () => {
    expect(negotiated(approval(1), requests.text(2), approval(3, { prompt: "And this?" }))).toEqual({
      type: "tool_approval_request",
      hint: "Run ls -l?\n\nAnd this?",
      tools: [
        { id: "input-T-1", call_id: "call-1-1", name: "execute_command", args: { command: "ls -l" } },
        { id: "input-T-3", call_id: "call-1-3", name: "execute_command", args: { command: "ls -l" } },
      ],
    });
  });

  test("asks questions with texts as answers, the lowest first; others it cannot ask", () => {
    const number = requests.input(1, { n: { type: "number" } });
    expect(negotiated(number, requests.several(2), requests.text(3))).toEqual({
      type: "ask_user_request",
      id: "input-T-2",
      questions: [{ question: "Why?" }, { question: "Which?", choices: ["x", "y"], multiple: false }],
    });
    expect(negotiated(requests.inDoubt())).toEqual({
      type: "ask_user_request",
      id: "input-T-1",
      questions: [{ question: "Run ls -l?", choices: ["done", "failed", "retry"], multiple: false }],
    });
    expect(negotiated(number, requests.auth(2))).toBeUndefined();
  });

  test.each([
    [
      { type: "tool_approval_response", approvals: [{ id: "a", approved: false, rejection_reason: "no" }] },
      [{ requestId: "a", choice: "deny", reason: "no" }],
    ],
    [
      {
        type: "tool_approval_response",
        approvals: [
          { id: "a", approved: true },
          { id: "b", approved: false },
        ],
      },
      [
        { requestId: "a", choice: "approve" },
        { requestId: "b", choice: "deny" },
      ],
    ],
    [
      { type: "ask_user_response", id: "q", answers: [{ answer: ["because"] }, { answer: ["x"] }] },
      [{ requestId: "q", choice: "answer", values: { answer1: "because", answer2: "x" } }],
    ],
  ])("takes %j", (data, value) => {
    expect(hitlV1.decodeAnswers(data, () => requests.several())).toEqual({ outcome: "decoded", value });
  });

  test.each([
    [{ type: "tool_approval_response", approvals: [] }, "/approvals"],
    [{ type: "tool_approval_response", approvals: [{ id: "a", approved: "true" }] }, "/approvals/0/approved"],
    [{ type: "tool_approval_response", approvals: [{ id: "a", approved: 1 }] }, "/approvals/0/approved"],
    [{ type: "tool_approval_response", approvals: [{ id: "a", approved: true, note: 1 }] }, "/approvals/0/note"],
    [{ type: "tool_approval_response", approvals: [{ id: "a", approved: true }], more: 1 }, "/more"],
    [
      {
        type: "tool_approval_response",
        approvals: [
          { id: "a", approved: true },
          { id: "a", approved: true },
        ],
      },
      "/approvals/1/id",
    ],
    [
      { type: "tool_approval_response", approvals: [{ id: "a", approved: true, rejection_reason: "no" }] },
      "/approvals/0/rejection_reason",
    ],
    [{ type: "ask_user_response", id: "q", answers: [] }, "/answers"],
    [{ type: "ask_user_response", id: "q", answers: [{ answer: ["a"] }] }, "/answers"],
    [{ type: "ask_user_response", id: "q", answers: [{ answer: ["a", "b"] }, { answer: ["x"] }] }, "/answers/0/answer"],
    [{ type: "ask_user_response", id: "q", answers: [{ answer: [] }, { answer: ["x"] }] }, "/answers/0/answer"],
    [{ type: "ask_user_response", answers: [{ answer: ["a"] }] }, "/id"],
    [{ type: "approval" }, "/type"],
    [{ type: { toString: null } }, "/type"],
  ])("refuses %j", (data, pointer) => {
    expect(hitlV1.decodeAnswers(data, () => requests.several())).toMatchObject({ outcome: "malformed", pointer });
  });

  test("reads a sub-agent's calls with its own ids", () => {
    const tool = (id: string, name: string) => ({ id, call_id: `c-${id}`, name, args: null });
    const data = {
      type: "tool_approval_request",
      hint: "Delete?",
      tools: [tool("a1", "k8s_agent")],
      nested: { subagent_name: "k8s_agent", task_id: "t", context_id: "c", tools: [tool("child-1", "delete_pod")] },
    };
    expect(hitlV1.decodeRequests(data)).toEqual({
      outcome: "decoded",
      value: [
        {
          kind: "approval",
          requestId: "child-1",
          title: "delete_pod",
          prompt: "Delete?",
          tool: "delete_pod",
          args: {},
          callId: "c-child-1",
          path: ["k8s_agent"],
        },
      ],
    });
  });
});

test("an approval with changes is never said as one without", () => {
  const answer = { requestId: idOf(1), choice: "approve", editedArgs: { command: "ls" } } as const;
  for (const dialect of [kagentA, hitlV1]) expect(dialect.encodeAnswers([{ answer, to: approval() }])).toEqual([]);
  for (const dialect of [a2aInput, a2aHitl, hectorV1, holdpoint]) {
    expect(JSON.stringify(dialect.encodeAnswers([{ answer, to: approval() }]))).toContain('{"command":"ls"}');
  }
});

describe("ours", () => {
  test("shows requests whole", () => {
    expect(encodeMetadata([holdpoint.uri ?? ""], [approval(), requests.text(2)], PATH)).toMatchObject({
      "urn:holdpoint:hitl:v1": {
        requests: [
          { requestId: idOf(1), kind: "approval", tool: "execute_command", digest, editable: true, callId: "call-1-1" },
          { requestId: idOf(2), kind: "input", schema: { required: ["answer"] } },
        ],
      },
    });
  });

  test("is written only for who has negotiated it", () => {
    expect(encodeMetadata([], [approval()], PATH)).toEqual({});
    expect(encodeMetadata(["urn:other"], [approval()], PATH)).toEqual({});
    expect(encodeMetadata([holdpoint.uri ?? ""], [], PATH)).toEqual({});
  });

  test.each([
    [{ decisions: [] }, "/decisions"],
    [{ decisions: {} }, "/decisions"],
    [{ decisions: [{ decision: "approve" }] }, "/decisions/0/requestId"],
    [{ decisions: [{ requestId: "a", decision: "yes" }] }, "/decisions/0/decision"],
    [{ decisions: [{ requestId: "a", decision: "approve", editedargs: {} }] }, "/decisions/0/editedargs"],
    [{ decisions: [{ requestId: "a", decision: "deny", editedArgs: {} }] }, "/decisions/0/editedArgs"],
    [{ decisions: [{ requestId: "a", decision: "approve", values: {} }] }, "/decisions/0/values"],
    [{ decisions: [{ requestId: "a", decision: "answer" }] }, "/decisions/0/values"],
    [{ decisions: [{ requestId: "a", decision: "approve", digest: "sha256:0" }] }, "/decisions/0/digest"],
    [{ decisions: [{ requestId: "a", decision: "approve", editedArgs: [] }] }, "/decisions/0/editedArgs"],
  ])("refuses %j", (data, pointer) => {
    expect(holdpoint.decodeAnswers(data, () => undefined)).toMatchObject({ outcome: "malformed", pointer });
  });
});
