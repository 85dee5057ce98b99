import { describe, expect, test } from "vitest";
import type { Command } from "./command.ts";
import { advanceLog } from "./log.ts";
import type { Principal, RequestDraft } from "./request.ts";
import { type Rows, rowsOf, wakeAtMs } from "./rows.ts";

const ana: Principal = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };
const facts = { identity: "search@1", schemaHash: "s", policyVersion: "p", plan: {} };
const submit: Command = {
  type: "submit",
  agent: "assistant",
  contextId: "context-1",
  principal: ana,
  message: { messageId: "m1", role: "user", parts: [] },
};
const reply: Command = {
  type: "reply",
  turn: 1,
  text: "",
  calls: [
    { tool: "search", args: {} },
    { tool: "search", args: {} },
  ],
};
const question = (expiresAtMs: number | null): RequestDraft => ({
  kind: "input",
  schema: {},
  title: "question",
  prompt: "Which?",
  risk: "low",
  expiresAtMs,
  onTimeout: "deny",
});
const ask = (...deadlines: (number | null)[]): Command => ({ type: "open", drafts: deadlines.map(question) });
const answer: Command = {
  type: "choose",
  choice: { requestId: "input-T-1", choice: "answer", values: {} },
  principal: ana,
};
const claim = (i: number): Command => ({
  type: "claim",
  callId: `call-1-${i}`,
  token: `token-${i}`,
  gated: false,
  facts,
  mayRetry: false,
});
const finish: Command = {
  type: "finish",
  effectId: "call-1-1-1",
  token: "token-1",
  outcome: "done",
  result: "x".repeat(9_000),
};
const doubt: Command = {
  type: "doubt",
  effectId: "call-1-1-1",
  why: "crash",
  onAmbiguous: "ask",
  draft: {
    ...question(null),
    kind: "in-doubt",
    callId: "call-1-1",
    effectId: "call-1-1-1",
    tool: "search",
    args: {},
    facts,
  },
};

/** The rows of the last command, after the others. */
function rowsAfter(...commands: Command[]): Rows {
  const now = { key: { tenant: "default", id: "T" }, nowMs: 1_000, epoch: "e" };
  const before = advanceLog(undefined, [submit, ...commands.slice(0, -1)], now);
  if (!before.ok) throw new Error(JSON.stringify(before.refusal));
  const result = advanceLog(before.task, commands.slice(-1), { ...now, nowMs: 2_000 });
  if (!result.ok || !result.task) throw new Error(JSON.stringify(result));
  return rowsOf(result.task, result.events, result.blobs);
}

describe("an append writes", () => {
  test("the row of the task as it is then", () => {
    expect(rowsAfter(ask(5_000)).task).toEqual({
      agent: "assistant",
      contextId: "context-1",
      state: "input-required",
      createdAtMs: 1_000,
      updatedAtMs: 2_000,
      wakeAtMs: 5_000,
    });
  });

  test("a row for each request that it opens", () => {
    expect(rowsAfter(ask(null, 5_000)).opened).toMatchObject([
      { n: 1, kind: "input", agent: "assistant", openedAtMs: 2_000, expiresAtMs: null },
      { n: 2, kind: "input", agent: "assistant", openedAtMs: 2_000, expiresAtMs: 5_000 },
    ]);
  });

  test.each<[string, Command[], object]>([
    ["a person closes in time", [ask(5_000), answer], { n: 1, outcome: "answered", deadline: "ahead" }],
    ["a deadline closes late", [ask(2_000), { type: "expire" }], { n: 1, outcome: "expired", deadline: "passed" }],
    [
      "the end closes whenever",
      [ask(5_000), { type: "cancel", principal: ana }],
      { n: 1, outcome: "canceled", deadline: "any" },
    ],
  ])("how a request may close: %s", (_sentence, commands, closed) => {
    expect(rowsAfter(...commands).closed).toMatchObject([closed]);
  });

  test("an effect's claim and its end under the same token, with the large result beside it", () => {
    expect(rowsAfter(reply, claim(1)).effects).toMatchObject([
      { type: "claimed", effectId: "call-1-1-1", token: "token-1" },
    ]);
    const { effects, blobs } = rowsAfter(reply, claim(1), finish);
    expect(effects).toEqual([{ type: "ended", effectId: "call-1-1-1", token: "token-1", outcome: "done" }]);
    expect(blobs).toHaveLength(1);
    expect(rowsAfter(reply, claim(1), doubt).effects).toMatchObject([
      { type: "ended", outcome: "unknown", token: "token-1" },
    ]);
  });
});

describe("a task wakes", () => {
  test.each<[string, number | null, Command[]]>([
    ["at once while it works", 2_000, [reply]],
    ["at once while an effect runs, for its worker may be gone", 2_000, [reply, claim(1)]],
    ["at once while an effect runs beside an open question", 2_000, [reply, claim(1), claim(2), doubt]],
    ["never by itself while it waits for ever", null, [ask(null)]],
    ["at the earliest deadline while it waits", 5_000, [ask(null, 9_000, 5_000)]],
    ["at a deadline that has passed already", 500, [ask(500)]],
    ["at once when the last question was answered", 2_000, [ask(null), answer]],
    ["never when it is over", null, [ask(5_000), { type: "cancel", principal: ana }]],
  ])("%s", (_sentence, wakeAtMs, commands) => {
    expect(rowsAfter(...commands).task.wakeAtMs).toBe(wakeAtMs);
  });
});

test("a task that is to be canceled is looked after, even if something was asked since", () => {
  const commands: Command[] = [
    submit,
    reply,
    { type: "claim", callId: "call-1-1", token: "token", gated: false, facts, mayRetry: false },
    { type: "cancel", principal: ana },
    { type: "doubt", effectId: "call-1-1-1", why: "crash", onAmbiguous: "retry" },
    { type: "open", drafts: [question(null)] },
  ];
  const now = { key: { tenant: "default", id: "T" }, nowMs: 1_000, epoch: "epoch-1" };
  const result = advanceLog(undefined, commands, now);
  if (!result.ok || !result.task) throw new Error("this must be accepted");
  expect(wakeAtMs(result.task)).not.toBeNull();
});
