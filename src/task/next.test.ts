import { expect, test } from "vitest";
import type { Command } from "./command.ts";
import { advanceLog } from "./log.ts";
import { next, type Step } from "./next.ts";
import type { Principal, RequestDraft } from "./request.ts";
import type { Task } from "./task.ts";

const key = { tenant: "default", id: "T" };
const ana: Principal = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };
const facts = { identity: "tool@1", schemaHash: "s", policyVersion: "p", plan: {} };
const isGated = (tool: string) => ({ refund: true, search: false })[tool];

const submit: Command = {
  type: "submit",
  agent: "assistant",
  contextId: "context-1",
  principal: ana,
  message: { messageId: "m1", role: "user", parts: [] },
};
const reply = (...tools: string[]): Command => ({
  type: "reply",
  turn: 1,
  text: "Let me see.",
  calls: tools.map((tool) => ({ tool, args: {} })),
});
const draft = (i: number, expiresAtMs: number | null = null) => ({
  callId: `call-1-${i}`,
  tool: "refund",
  args: {},
  facts,
  title: "refund",
  prompt: "Refund?",
  risk: "low" as const,
  expiresAtMs,
  onTimeout: "deny" as const,
});
const approval = (i: number, expiresAtMs?: number): RequestDraft => ({
  ...draft(i, expiresAtMs),
  kind: "approval",
  editable: true,
});
const ask = (...drafts: RequestDraft[]): Command => ({ type: "open", drafts });
const choose = (n: number, choice: "approve" | "deny" | "cancel"): Command => ({
  type: "choose",
  choice: { requestId: `input-T-${n}`, choice },
  principal: ana,
});
const answer = (n: number, outcome: string): Command => ({
  type: "choose",
  choice: { requestId: `input-T-${n}`, choice: "answer", values: { outcome } },
  principal: ana,
});
const claim = (i: number, gated = true): Command => ({
  type: "claim",
  callId: `call-1-${i}`,
  token: `token-${i}`,
  gated,
  facts,
  mayRetry: false,
});
const finish = (i: number, attempt = 1): Command => ({
  type: "finish",
  effectId: `call-1-${i}-${attempt}`,
  token: `token-${i}`,
  outcome: "done",
  result: null,
});
const doubt: Command = {
  type: "doubt",
  effectId: "call-1-1-1",
  why: "crash",
  onAmbiguous: "ask",
  draft: { ...draft(1), kind: "in-doubt", effectId: "call-1-1-1" },
};
const cancel: Command = { type: "cancel", principal: ana };

function taskAfter(...commands: Command[]): Task {
  const result = advanceLog(undefined, [submit, ...commands], { key, nowMs: 1_000, epoch: "e" });
  if (!result.ok || !result.task) throw new Error(JSON.stringify(result));
  return result.task;
}

/** A step in one word and what it is about. */
function say(step: Step): string {
  if (step.type === "run" || step.type === "refuse") return `${step.type} ${step.call.callId}`;
  if (step.type === "ask") return `ask ${step.calls.map(({ callId }) => callId).join(" ")}`;
  if (step.type === "settle") return `settle ${step.effect.effectId}`;
  if (step.type === "think") return `think ${step.turn}`;
  return step.type;
}

test.each<[string, step: string, Command[]]>([
  ["a new task thinks", "think 1", []],
  ["without calls it is complete", "complete", [reply()]],
  ["a tool that is gone refuses its call", "refuse call-1-1", [reply("gone", "search")]],
  ["an ungated call runs at once", "run call-1-1", [reply("search", "refund")]],
  ["ungated calls run before anything is asked", "run call-1-2", [reply("refund", "search")]],
  [
    "then all questions are asked at once",
    "ask call-1-1 call-1-3",
    [reply("refund", "search", "refund"), claim(2, false), finish(2)],
  ],
  [
    "while one is open it rests",
    "rest",
    [reply("refund", "refund"), ask(approval(1), approval(2)), choose(1, "approve")],
  ],
  [
    "approved calls run in order when the last is closed",
    "run call-1-1",
    [reply("refund", "refund"), ask(approval(1), approval(2)), choose(2, "approve"), choose(1, "approve")],
  ],
  [
    "a denied call is skipped",
    "run call-1-2",
    [reply("refund", "refund"), ask(approval(1), approval(2)), choose(1, "deny"), choose(2, "approve")],
  ],
  [
    "when all have their result it thinks again",
    "think 2",
    [reply("refund"), ask(approval(1)), choose(1, "approve"), claim(1), finish(1)],
  ],
  ["a denial is a result too", "think 2", [reply("refund"), ask(approval(1)), choose(1, "deny")]],
  ["so is a canceled request", "think 2", [reply("refund"), ask(approval(1)), choose(1, "cancel")]],
  ["a passed deadline expires", "expire", [reply("refund"), ask(approval(1, 1_000))]],
  ["a deadline ahead does not", "rest", [reply("refund"), ask(approval(1, 1_001))]],
  ["an effect without an outcome is settled first", "settle call-1-1-1", [reply("search", "search"), claim(1, false)]],
  ["even while it is to be canceled", "settle call-1-1-1", [reply("search"), claim(1, false), cancel]],
  [
    "a wish to cancel comes before more work",
    "cancel",
    [reply("search", "search"), claim(1, false), cancel, finish(1)],
  ],
  [
    "an unknown outcome that nobody was asked about is settled",
    "settle call-1-1-1",
    [reply("search"), claim(1, false), { ...doubt, onAmbiguous: "retry" } as Command],
  ],
  ["while a person is asked about it, it rests", "rest", [reply("search"), claim(1, false), doubt]],
  ["the answer retry runs it again", "run call-1-1", [reply("search"), claim(1, false), doubt, answer(1, "retry")]],
  ["the answer done is its result", "think 2", [reply("search"), claim(1, false), doubt, answer(1, "done")]],
  ["a canceled task rests", "rest", [reply("refund"), ask(approval(1)), cancel]],
  ["a failed task rests", "rest", [{ type: "fail", message: "no", code: "test" }]],
])("%s", (_sentence, step, commands) => {
  expect(say(next(taskAfter(...commands), isGated, 1_000))).toBe(step);
});

test("once a person was asked, a rule that asks nobody any more does not let the call through", () => {
  expect(say(next(taskAfter(reply("refund"), ask(approval(1))), () => false, 1_000))).toBe("rest");
  expect(say(next(taskAfter(reply("refund"), ask(approval(1)), choose(1, "deny")), () => false, 1_000))).toBe(
    "think 2",
  );
});

test("a call whose rule asks a person now is asked about, though it was not when it was made", () => {
  expect(say(next(taskAfter(reply("search")), () => true, 1_000))).toBe("ask call-1-1");
});

test("what a rule asks about by now is asked before anything approved runs", () => {
  const task = taskAfter(reply("refund", "search"), claim(2, false), finish(2), ask(approval(1)), choose(1, "approve"));
  expect(say(next(task, isGated, 1_000))).toBe("run call-1-1");
  const later = taskAfter(reply("refund", "search"), ask(approval(1)), choose(1, "approve"));
  expect(say(next(later, () => true, 1_000))).toBe("ask call-1-2");
});

test("a message that came after the last words is heard before the task completes", () => {
  const message = { messageId: "m2", role: "user", parts: [{ text: "wait" }] } as const;
  const late: Command = { type: "receive", message, principal: ana, choices: [] };
  expect(say(next(taskAfter(reply(), late), isGated, 1_000))).toBe("think 2");
});

test("a task completes with its last words, or with Done", () => {
  expect(next(taskAfter(reply()), isGated, 1_000)).toEqual({ type: "complete", message: "Let me see." });
  const silent: Command = { type: "reply", turn: 1, text: "", calls: [] };
  expect(next(taskAfter(silent), isGated, 1_000)).toEqual({ type: "complete", message: "Done." });
});
