/**
 * Rules that the core does not hold yet, each with the shortest way to break it. A test here fails today (`test`);
 * when the rule holds, vitest says so: then drop `.fails` and move the test to its module.
 */
import { expect, test } from "vitest";
import type { Choice, Command } from "./command.ts";
import { decide } from "./decide.ts";
import { advanceLog } from "./log.ts";
import type { Principal, RequestDraft } from "./request.ts";
import { wakeAtMs } from "./rows.ts";
import type { Task } from "./task.ts";

const key = { tenant: "default", id: "T" };
const now = { key, nowMs: 1_000, epoch: "epoch-1" };
const ana: Principal = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };
const args = { order: 7 };
const facts = { identity: "refund@1", schemaHash: "s", policyVersion: "p", plan: {} };

const submit: Command = {
  type: "submit",
  agent: "assistant",
  contextId: "c",
  principal: ana,
  message: { messageId: "m1", role: "user", parts: [] },
};
const reply = (calls = 1, turn = 1): Command => ({
  type: "reply",
  turn,
  text: "",
  calls: Array.from({ length: calls }, () => ({ tool: "refund", args })),
});
const base = { tool: "refund", args, facts, title: "refund", prompt: "Refund?", risk: "low" } as const;
type Approval = RequestDraft & { kind: "approval" };
const approval = (i = 1, extra: Partial<Approval> = {}): Approval => ({
  ...base,
  kind: "approval",
  callId: `call-1-${i}`,
  editable: true,
  expiresAtMs: null,
  onTimeout: "deny",
  ...extra,
});
const question: RequestDraft = {
  kind: "input",
  schema: {},
  title: "question",
  prompt: "Which?",
  risk: "low",
  expiresAtMs: null,
  onTimeout: "deny",
};
const open = (...drafts: RequestDraft[]): Command => ({ type: "open", drafts });
const choose = (n: number, choice: Choice["choice"], extra: Partial<Choice> = {}): Command => ({
  type: "choose",
  choice: { requestId: `input-T-${n}`, choice, ...extra },
  principal: ana,
});
const claim = (i = 1, extra: Partial<Command & { type: "claim" }> = {}): Command => ({
  type: "claim",
  callId: `call-1-${i}`,
  token: "token",
  gated: true,
  facts,
  mayRetry: false,
  ...extra,
});
const ungated = (i = 1) => claim(i, { gated: false });
const inDoubt = {
  ...base,
  kind: "in-doubt",
  callId: "call-1-1",
  effectId: "call-1-1-1",
  expiresAtMs: null,
  onTimeout: "fail",
} as const;
const doubt = (onAmbiguous: "ask" | "fail" | "retry"): Command => ({
  type: "doubt",
  effectId: "call-1-1-1",
  why: "crash",
  onAmbiguous,
  draft: inDoubt,
});
const answer = (n: number, outcome: string) => choose(n, "answer", { values: { outcome } });
const cancel: Command = { type: "cancel", principal: ana };

function taskAfter(...commands: Command[]): Task {
  const result = advanceLog(undefined, [submit, ...commands], now);
  if (!result.ok || !result.task) throw new Error(`this must be accepted: ${JSON.stringify(result)}`);
  return result.task;
}

const asked = [reply(), open(approval())];
const approved = [...asked, choose(1, "approve")];
const cutOff = [...approved, claim(), doubt("ask")];

// Before the sweep it is the deadline, afterwards the moment of the sweep.
test("a late decision is told the same before and after the sweep", () => {
  const timed = taskAfter(reply(), open(approval(1, { expiresAtMs: 2_000 })));
  const swept = advanceLog(timed, [{ type: "expire" }], { ...now, nowMs: 3_000 });
  if (!swept.ok) throw new Error("this must be accepted");
  const late = { ...now, nowMs: 4_000 };
  expect(decide(swept.task, choose(1, "approve"), late)).toEqual(decide(timed, choose(1, "approve"), late));
});

// toWellFormed comes before the cut at 256 characters.
test("a long tool name is cut between characters", () => {
  const calls = [{ tool: `${"x".repeat(255)}😀`, args: {} }];
  const task = taskAfter({ type: "reply", turn: 1, text: "", calls });
  expect(task.calls["call-1-1"]?.tool.isWellFormed()).toBe(true);
});

// Whoever answers "retry" does not say what became of the first effect; if it is not repeated, that stays unknown.
test("canceling before the retry has run says that the outcome is unknown", () => {
  expect(taskAfter(...cutOff, answer(2, "retry"), cancel).end?.message).toMatch(/Outcome unknown of: refund/);
});

// The draft's own ids are taken on trust: the old request is superseded, and another call gets the new one.
test("asking again is about the call that it names", () => {
  const task = taskAfter(reply(2), open(approval(1), approval(2)));
  expect(decide(task, { type: "ask-again", callId: "call-1-1", draft: approval(2) }, now).ok).toBe(false);
});

test("a doubt asks about the effect that it names", () => {
  const about = { ...inDoubt, callId: "call-1-2", effectId: "call-1-2-1" };
  const command: Command = { ...doubt("ask"), draft: about } as Command;
  expect(decide(taskAfter(reply(2), ungated()), command, now).ok).toBe(false);
});

// wakeAtMs looks at open requests only: without a deadline nobody comes to cancel it.
test.fails("a task that is to be canceled is looked after, even if something was asked since", () => {
  const task = taskAfter(reply(), ungated(), cancel, doubt("retry"), open(question));
  expect(wakeAtMs(task)).not.toBeNull();
});
