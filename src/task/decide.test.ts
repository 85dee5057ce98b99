import { describe, expect, test } from "vitest";
import { ASK_AGAIN_MAX, OPEN_REQUESTS_MAX } from "./ask.ts";
import { RESULT_BYTES_MAX } from "./claim.ts";
import type { Choice, Circumstances, Command, Refusal } from "./command.ts";
import { CALLS_PER_TURN_MAX, decide } from "./decide.ts";
import { callDigest, sha256 } from "./digest.ts";
import type { Fact } from "./event.ts";
import type { JsonObject } from "./json.ts";
import { advanceLog } from "./log.ts";
import type { Principal, Request, RequestDraft, RequestId, ToolFacts } from "./request.ts";
import { callStatus, findRequest, openRequests, stateOf, type Task } from "./task.ts";

const key = { tenant: "default", id: "T" };
const ana: Principal = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };
const ben: Principal = { ...ana, name: "ben" };
const DEADLINE = 5_000;

const at = (nowMs: number): Circumstances => ({ key, nowMs, epoch: "epoch-1" });
const early = at(1_000);
const late = at(DEADLINE);

/** What the tool says it would do: a function of its arguments, like the plan of a real tool. */
const factsFor = (args: JsonObject, identity = "refund@1"): ToolFacts => ({
  identity,
  schemaHash: "schema-1",
  policyVersion: "policy-1",
  plan: { would: args },
});

const order7 = { order: 7 };
const order8 = { order: 8 };
const message = (messageId: string) => ({ messageId, role: "user", parts: [{ text: "Refund order 7" }] }) as const;

const submit: Command = {
  type: "submit",
  agent: "assistant",
  contextId: "context-1",
  principal: ana,
  message: message("m1"),
};
const reply = (calls = 1, turn = 1): Command => ({
  type: "reply",
  turn,
  text: "I will refund it.",
  calls: Array.from({ length: calls }, () => ({ tool: "refund", args: order7 })),
});

/** A reply by a model that had only the first message before it. */
const deaf = (calls: number): Command => ({ ...reply(calls), messagesHeard: 1 }) as Command;

const base = { title: "refund", prompt: "Refund?", risk: "high", expiresAtMs: null, onTimeout: "deny" } as const;
type Approval = RequestDraft & { kind: "approval" };
const approval = (i = 1, extra: Partial<Approval> = {}): Approval => ({
  ...base,
  kind: "approval",
  callId: `call-1-${i}`,
  tool: "refund",
  args: order7,
  facts: factsFor(order7),
  editable: true,
  ...extra,
});
const question: RequestDraft = { ...base, kind: "input", schema: { type: "object" } };
const signIn: RequestDraft = { ...base, kind: "auth", url: "https://login.example" };
const inDoubt = (attempt = 1, extra: object = {}): RequestDraft & { kind: "in-doubt" } => ({
  ...base,
  kind: "in-doubt",
  callId: "call-1-1",
  effectId: `call-1-1-${attempt}`,
  tool: "refund",
  args: order7,
  facts: factsFor(order7),
  ...extra,
});

const open = (...drafts: RequestDraft[]): Command => ({ type: "open", drafts });
const idOf = (n: number): RequestId => `input-T-${n}`;
const choose = (n: number, choice: Choice["choice"], extra: Partial<Choice> = {}, principal = ana): Command => ({
  type: "choose",
  choice: { requestId: idOf(n), choice, ...extra },
  principal,
});
const answer = (n: number, outcome: string) => choose(n, "answer", { values: { outcome } });
const receive = (messageId: string, ...choices: Choice[]): Command => ({
  type: "receive",
  message: message(messageId),
  principal: ana,
  choices,
});
const refund2 = factsFor(order7, "refund@2");
const askAgain = (callId = "call-1-1", facts = refund2): Command => ({
  type: "ask-again",
  callId,
  draft: approval(1, { facts }),
});
const refuseCall = (callId = "call-1-1"): Command => ({
  type: "refuse-call",
  callId,
  code: "tool-unknown",
  text: "There is no such tool.",
});
const claim = (callId = "call-1-1", extra: Partial<Command & { type: "claim" }> = {}): Command => ({
  type: "claim",
  callId,
  token: "token-1",
  gated: true,
  facts: factsFor(order7),
  mayRetry: false,
  ...extra,
});
const ungated = (callId = "call-1-1") => claim(callId, { gated: false });
const finish = (extra: Partial<Command & { type: "finish" }> = {}): Command => ({
  type: "finish",
  effectId: "call-1-1-1",
  token: "token-1",
  outcome: "done",
  result: "ok",
  ...extra,
});
const doubt = (onAmbiguous: "ask" | "fail" | "retry", extra: object = {}): Command => ({
  type: "doubt",
  effectId: "call-1-1-1",
  why: "the worker died",
  onAmbiguous,
  ...(onAmbiguous === "ask" ? { draft: inDoubt() } : {}),
  ...extra,
});
const cancel: Command = { type: "cancel", principal: ben };
const expire: Command = { type: "expire" };
const complete: Command = { type: "complete", message: "Done." };
const fail: Command = { type: "fail", message: "broken", code: "test" };
const reject: Command = { type: "reject", message: "not for me" };

/** The task after these commands, all of which must be accepted. */
function taskAfter(...commands: Command[]): Task {
  return andThen(undefined, early, submit, ...commands);
}

function andThen(task: Task | undefined, now: Circumstances, ...commands: Command[]): Task {
  const result = advanceLog(task, commands, now);
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.refusal)}`);
  if (!result.task) throw new Error("no task");
  return result.task;
}

function factsOf(task: Task, command: Command, now = early): readonly Fact[] {
  const verdict = decide(task, command, now);
  if (!verdict.ok) throw new Error(`refused: ${JSON.stringify(verdict.refusal)}`);
  return verdict.facts;
}

function requestOf(task: Task, n: number): Request {
  const record = findRequest(task, idOf(n));
  if (!record) throw new Error(`no request ${n}`);
  return record.request;
}

function decisionOf(task: Task, n: number) {
  return findRequest(task, idOf(n))?.decision;
}

function statusOf(task: Task, callId = "call-1-1") {
  const call = task.calls[callId];
  if (!call) throw new Error(`no ${callId}`);
  return callStatus(task, call);
}

const asked = taskAfter(reply(), open(approval()));
const approved = andThen(asked, early, choose(1, "approve"));
const running = andThen(approved, early, claim());
const unknown = andThen(running, early, doubt("retry"));
const doubted = andThen(running, early, doubt("ask"));
const timed = taskAfter(reply(), open(approval(1, { expiresAtMs: DEADLINE })));
const ended = andThen(asked, early, cancel);

describe("says no precisely", () => {
  const foreign: Command = {
    type: "choose",
    choice: { requestId: "input-other-1", choice: "approve" },
    principal: ana,
  };
  const expired = { code: "request-expired", requestId: idOf(1), expiredAtMs: DEADLINE } as const;
  const differs = { code: "digest-differs", requestId: idOf(1), request: requestOf(asked, 1) } as const;
  const noEffect = { code: "claim-lost", effectId: "constructor", detail: "no such effect" } as const;
  const unseen = { digest: "sha256:00" } as const;

  const everyOtherCommand: Command[] = [
    receive("m2"),
    choose(1, "approve"),
    reply(),
    refuseCall(),
    open(approval()),
    askAgain(),
    expire,
    claim(),
    finish(),
    doubt("fail"),
    { type: "update-artifact", artifact: {}, append: false, lastChunk: true },
    cancel,
    complete,
    fail,
    reject,
  ];

  test.each(everyOtherCommand)("task-unknown: $type needs a task", (command) => {
    expect(decide(undefined, command, early)).toEqual({ ok: false, refusal: { code: "task-unknown" } });
  });

  test.each(everyOtherCommand.filter(({ type }) => type !== "choose"))(
    "task-over: an ended task takes no $type and says how it ended",
    (command) => {
      const refusal = { code: "task-over", state: "canceled", message: "Canceled by ben." };
      expect(decide(ended, command, early)).toEqual({ ok: false, refusal });
    },
  );

  test.each<[string, Task, Command, Partial<Refusal>, Circumstances?]>([
    ["task-exists: a task is submitted once", asked, submit, { code: "task-exists" }],
    ["request-unknown: no such counter", asked, choose(2, "approve"), { code: "request-unknown", requestId: idOf(2) }],
    ["request-unknown: an id of another task", asked, foreign, { code: "request-unknown", requestId: "input-other-1" }],
    ["request-unknown: even after the end", ended, choose(9, "approve"), { code: "request-unknown" }],
    ["request-expired: the deadline itself is too late", timed, choose(1, "approve"), expired, at(DEADLINE)],
    ["request-expired: denying is no better", timed, choose(1, "deny"), expired, at(DEADLINE + 1)],
    ["digest-differs: what was seen is not what is asked", asked, choose(1, "approve", unseen), differs],
    ["digest-differs: denying with a wrong digest too", asked, choose(1, "deny", unseen), differs],
    ["call-unknown: refuse-call", asked, refuseCall("call-9-9"), { code: "call-unknown", callId: "call-9-9" }],
    ["call-unknown: claim", asked, claim("call-9-9"), { code: "call-unknown", callId: "call-9-9" }],
    ["call-unknown: ask-again", asked, askAgain("call-9-9"), { code: "call-unknown", callId: "call-9-9" }],
    ["call-unknown: asking again needs a first question", taskAfter(reply()), askAgain(), { code: "call-unknown" }],
    ["call-unknown: open", asked, open(approval(9)), { code: "call-unknown", callId: "call-1-9" }],
    ["call-unknown: an inherited name", asked, claim("constructor"), { code: "call-unknown", callId: "constructor" }],
    ["claim-lost: an inherited name to doubt", asked, doubt("fail", { effectId: "constructor" }), noEffect],
    ["claim-lost: an inherited name to finish", asked, finish({ effectId: "constructor" }), noEffect],
    ["turn-stale: answered already", taskAfter(reply()), reply(1, 1), { code: "turn-stale", turn: 1, expected: 2 }],
    ["turn-stale: ahead of its time", taskAfter(), reply(1, 2), { code: "turn-stale", turn: 2, expected: 1 }],
  ])("%s", (_sentence, task, command, refusal, now = early) => {
    expect(decide(task, command, now)).toMatchObject({ ok: false, refusal });
  });

  const answered = taskAfter(reply(), ungated(), finish());
  const unheard = andThen(taskAfter(reply(0)), early, receive("m2"));
  const open1 = `request ${idOf(1)} is open`;
  const noResult = "call call-1-1 has no result";

  test.each([
    ["completes over an open request", asked, complete, open1],
    ["is rejected over an open request", asked, reject, open1],
    ["is said over an open request", asked, reply(1, 2), open1],
    ["completes over a running effect", running, complete, noResult],
    ["is rejected over a running effect", running, reject, noResult],
    ["is said over a running effect", running, reply(1, 2), noResult],
    ["completes over an approved call", approved, complete, noResult],
    ["is said over an approved call", approved, reply(1, 2), noResult],
    ["completes over a call that nobody looked at", taskAfter(reply()), complete, noResult],
    ["completes over an unknown outcome", unknown, complete, noResult],
    ["is asked while an effect runs", running, open(question), "effect call-1-1-1 has no outcome"],
    ["completes over a message that nobody heard", unheard, complete, "a message has not been heard"],
    ["is said last that has not heard everything", taskAfter(receive("m2")), deaf(0), "a message has not been heard"],
  ])("task-unsettled: nothing %s", (_sentence, task, command, detail) => {
    expect(decide(task, command, early)).toEqual({ ok: false, refusal: { code: "task-unsettled", detail } });
  });

  test("a word that goes on to act may have missed a message: it hears it with the next turn", () => {
    expect(factsOf(taskAfter(receive("m2")), deaf(1))).toMatchObject([{ type: "model-replied" }]);
    expect(factsOf(answered, reply(0, 2))).toMatchObject([{ type: "model-replied" }]);
  });

  const siblings = andThen(taskAfter(reply(2), open(approval(1), approval(2))), early, choose(1, "approve"));
  const pausedBeside = taskAfter(reply(2), open(approval(1)));
  const refused = taskAfter(reply(), refuseCall());
  const canceling = taskAfter(reply(2), ungated(), cancel);
  const retry = claim("call-1-1", { mayRetry: true });
  const rival = claim("call-1-1", { mayRetry: true, token: "token-2" });
  const otherRetry = claim("call-1-1", { mayRetry: true, facts: factsFor(order8) });
  const pause = (n: number) => `at a pause nothing runs, and request ${idOf(n)} is open`;
  const settled = "it is settled";
  const gatedNow = taskAfter(reply(), ungated(), doubt("retry"));
  const another = "what would run is not what was approved";

  test.each([
    ["nobody was asked about a gated call", taskAfter(reply()), claim(), "nobody has approved it"],
    ["its request is open", asked, claim(), pause(1)],
    ["its request is open, however the rule changed", asked, ungated(), pause(1)],
    ["a sibling waits for its person", siblings, claim(), pause(2)],
    ["it is another tool than was approved", approved, claim("call-1-1", { facts: refund2 }), another],
    ["it is another plan than was approved", approved, claim("call-1-1", { facts: factsFor(order8) }), another],
    [
      "it has been claimed by another",
      running,
      claim("call-1-1", { token: "token-2" }),
      "effect call-1-1-1 has been claimed already",
    ],
    ["it has been claimed, even if idempotent", running, rival, "effect call-1-1-1 has been claimed already"],
    ["it has run", andThen(running, early, finish()), claim(), settled],
    ["it has run, even if idempotent", andThen(running, early, finish()), retry, settled],
    ["it was denied", andThen(asked, early, choose(1, "deny")), claim(), settled],
    ["it was denied, however the rule changed", andThen(asked, early, choose(1, "deny")), ungated(), settled],
    ["its request was canceled", andThen(asked, early, choose(1, "cancel")), claim(), settled],
    ["its request has expired", andThen(timed, late, expire), claim(), settled],
    ["it was refused", refused, ungated(), settled],
    ["it was cut off", unknown, claim(), "its outcome is unknown and nobody has said what to do"],
    ["it was cut off as something else", unknown, otherRetry, another],
    ["a person is asked what became of it", doubted, retry, pause(2)],
    ["a person said that it was done", andThen(doubted, early, answer(2, "done")), retry, settled],
    ["a person said that it failed", andThen(doubted, early, answer(2, "failed")), retry, settled],
    ["its rule asks a person by now", gatedNow, retry, "its rule asks a person by now"],
    ["the task is at a pause, though nobody need approve it", pausedBeside, ungated("call-1-2"), pause(1)],
    ["the task is being canceled", canceling, ungated("call-1-2"), "the task is being canceled"],
  ])("not-allowed: no claim when %s", (_sentence, task, command, detail) => {
    expect(decide(task, command, early)).toMatchObject({ ok: false, refusal: { code: "not-allowed", detail } });
  });

  test.each([
    ["asked", asked],
    ["claimed", running],
    ["doubtful", unknown],
    ["settled", andThen(running, early, finish())],
  ])("not-allowed: a call that is %s cannot be refused", (status, task) => {
    const detail = `it is ${status} and cannot be refused`;
    expect(decide(task, refuseCall(), early)).toMatchObject({ ok: false, refusal: { code: "not-allowed", detail } });
  });

  test.each([
    ["it is asked already", asked, open(approval())],
    ["it is allowed already", approved, open(approval())],
    ["it is doubtful already", unknown, open(approval())],
    ["it is settled already", andThen(running, early, finish()), open(approval())],
    ["it is settled already", andThen(asked, early, choose(1, "deny")), open(approval())],
    ["it is asked about twice", taskAfter(reply()), open(approval(), approval())],
    ["it is asked about twice", taskAfter(reply()), open(approval(), { ...question, callId: "call-1-1" })],
  ])("not-allowed: nothing is asked about a call when %s", (detail, task, command) => {
    expect(decide(task, command, early)).toMatchObject({ ok: false, refusal: { code: "not-allowed", detail } });
  });

  test.each([
    ["settled", "denied", andThen(asked, early, choose(1, "deny"))],
    ["settled", "canceled", andThen(asked, early, choose(1, "cancel"))],
    ["settled", "expired", andThen(timed, late, expire)],
    ["settled", "run", andThen(running, early, finish())],
    ["claimed", "claimed", running],
    ["doubtful", "cut off", unknown],
    ["asked", "asked about as in doubt", doubted],
  ])("not-allowed: a call that is %s, because it was %s, is not asked about again", (status, _why, task) => {
    const detail = `it is ${status} and not asked about again`;
    expect(decide(task, askAgain(), early)).toMatchObject({ ok: false, refusal: { code: "not-allowed", detail } });
  });

  const repeated = andThen(unknown, early, claim("call-1-1", { mayRetry: true }), finish({ effectId: "call-1-1-2" }));
  const failed = andThen(running, early, finish({ outcome: "failed" }));

  test.each([
    ["there is no such effect to finish", asked, finish(), "no such effect"],
    ["another worker holds the token", running, finish({ token: "token-2" }), "claimed under another token"],
    ["what was done did not fail", andThen(running, early, finish()), finish({ outcome: "failed" }), "already done"],
    ["it was given up before the report came", unknown, finish(), "already unknown"],
    ["there is no such effect to doubt", asked, doubt("ask"), "no such effect"],
    ["what is done is beyond doubt", andThen(running, early, finish()), doubt("ask"), "its call is settled by now"],
    ["what failed is beyond doubt", failed, doubt("fail"), "its call is settled by now"],
    ["what was repeated is beyond doubt", repeated, doubt("fail"), "its call is settled by now"],
    ["a person is asked about it already", doubted, doubt("ask"), "its call is asked by now"],
    ["a person has settled it", andThen(doubted, early, answer(2, "done")), doubt("ask"), "its call is settled by now"],
    [
      "a person lets it run again",
      andThen(doubted, early, answer(2, "retry")),
      doubt("ask"),
      "its call is allowed by now",
    ],
  ])("claim-lost: %s", (_sentence, task, command, detail) => {
    const refusal = { code: "claim-lost", effectId: "call-1-1-1", detail };
    expect(decide(task, command, early)).toEqual({ ok: false, refusal });
  });

  test("a draft is about what the command names, and nothing else", () => {
    const two = taskAfter(reply(2), open(approval(1), approval(2)));
    for (const draft of [approval(2), approval(1, { tool: "deploy" })]) {
      const command: Command = { type: "ask-again", callId: "call-1-1", draft };
      expect(decide(two, command, early)).toMatchObject({ ok: false, refusal: { code: "not-allowed" } });
    }
    for (const extra of [{ callId: "call-1-2" }, { effectId: "call-1-2-1" }]) {
      const command = doubt("ask", { draft: inDoubt(1, extra) });
      expect(decide(running, command, early)).toMatchObject({ ok: false, refusal: { code: "claim-lost" } });
    }
  });

  test("too-many-requests: the bound itself is taken, one more is not", () => {
    const task = taskAfter(reply(OPEN_REQUESTS_MAX + 1));
    const drafts = Array.from({ length: OPEN_REQUESTS_MAX }, (_, i) => approval(i + 1));
    const full = andThen(task, early, open(...drafts));
    expect(openRequests(full)).toHaveLength(OPEN_REQUESTS_MAX);
    const refusal = { code: "too-many-requests", max: OPEN_REQUESTS_MAX };
    expect(decide(full, open(approval(OPEN_REQUESTS_MAX + 1)), early)).toEqual({ ok: false, refusal });
    expect(decide(task, open(...drafts, approval(OPEN_REQUESTS_MAX + 1)), early)).toEqual({ ok: false, refusal });
    const room = andThen(full, early, choose(3, "deny"));
    expect(decide(room, open(approval(OPEN_REQUESTS_MAX + 1)), early).ok).toBe(true);
  });

  test("too-many-requests: asking again keeps to the bound, and may replace one when all are open", () => {
    const others = Array.from({ length: OPEN_REQUESTS_MAX }, (_, i) => approval(i + 2));
    const task = taskAfter(reply(OPEN_REQUESTS_MAX + 1), open(approval(1)), choose(1, "approve"), open(...others));
    expect(decide(task, askAgain(), early)).toMatchObject({ refusal: { code: "too-many-requests" } });
    const full = taskAfter(reply(OPEN_REQUESTS_MAX), open(approval(1), ...others.slice(0, -1)));
    expect(openRequests(andThen(full, early, askAgain()))).toHaveLength(OPEN_REQUESTS_MAX);
  });
});

describe("an invalid choice is told where it is wrong, and the request stays open", () => {
  const input = taskAfter(open(question));
  const auth = taskAfter(open(signIn));
  const fixed = taskAfter(reply(), open(approval(1, { editable: false })));
  const edited = { args: order8, facts: factsFor(order8) };
  const deep = JSON.parse(`${"[".repeat(70)}${"]".repeat(70)}`);

  test.each<[string, Task, Command, pointer: string, detail: RegExp]>([
    [
      "an approval cannot be answered",
      asked,
      choose(1, "answer", { values: {} }),
      "/decision",
      /approve, deny or cancel/,
    ],
    ["a question cannot be approved", input, choose(1, "approve"), "/decision", /answer or cancel/],
    ["a question cannot be denied", input, choose(1, "deny"), "/decision", /answer or cancel/],
    ["a sign-in cannot be approved", auth, choose(1, "approve"), "/decision", /answer or cancel/],
    ["an in-doubt question cannot be approved", doubted, choose(2, "approve"), "/decision", /answer or cancel/],
    ["an in-doubt question cannot be denied", doubted, choose(2, "deny"), "/decision", /answer or cancel/],
    [
      "arguments of a fixed tool cannot be changed",
      fixed,
      choose(1, "approve", { edited }),
      "/editedArgs",
      /does not allow/,
    ],
    ["a denial changes no arguments", asked, choose(1, "deny", { edited }), "/editedArgs", /only an approval/],
    ["a cancellation changes no arguments", asked, choose(1, "cancel", { edited }), "/editedArgs", /only an approval/],
    [
      "an answer changes no arguments",
      input,
      choose(1, "answer", { values: {}, edited }),
      "/editedArgs",
      /only an approval/,
    ],
    [
      "changed arguments must be clean JSON",
      asked,
      choose(1, "approve", { edited: { ...edited, args: { to: { name: "\ud800" } } } }),
      "/editedArgs/to/name",
      /lone surrogate/,
    ],
    [
      "changed arguments must be shallow",
      asked,
      choose(1, "approve", { edited: { ...edited, args: { deep } } }),
      `/editedArgs/deep${"/0".repeat(63)}`,
      /deeper than 64/,
    ],
    ["an answer needs values", input, choose(1, "answer"), "/values", /needs values/],
    ["a sign-in's answer needs values", auth, choose(1, "answer"), "/values", /needs values/],
    ["an in-doubt answer needs values", doubted, choose(2, "answer"), "/values", /needs values/],
    [
      "an in-doubt answer is one of three words",
      doubted,
      answer(2, "perhaps"),
      "/values/outcome",
      /done, failed, retry/,
    ],
    [
      "an in-doubt answer is a word",
      doubted,
      choose(2, "answer", { values: { outcome: ["retry"] } }),
      "/values/outcome",
      /done, failed, retry/,
    ],
    [
      "an in-doubt answer is not an inherited word",
      doubted,
      answer(2, "constructor"),
      "/values/outcome",
      /done, failed, retry/,
    ],
    ["values must be clean JSON", input, choose(1, "answer", { values: { n: 2 ** 53 } }), "/values/n", /beyond 2\^53/],
    [
      "values must be small",
      input,
      choose(1, "answer", { values: { text: "x".repeat(65 * 1024) } }),
      "/values",
      /at most 65536/,
    ],
    ["a reason must be clean text", asked, choose(1, "deny", { reason: "\udc00" }), "/reason", /lone surrogate/],
  ])("%s", (_sentence, task, command, pointer, detail) => {
    expect(decide(task, command, early)).toEqual({
      ok: false,
      refusal: {
        code: "choice-invalid",
        requestId: expect.any(String),
        pointer,
        detail: expect.stringMatching(detail),
      },
    });
  });
});

describe("each request takes one decision, ever", () => {
  const losers: [string, Command][] = [
    ["another outcome by the same principal", choose(1, "deny")],
    ["the same outcome by somebody else", choose(1, "approve", {}, ben)],
    ["the same name from another issuer", choose(1, "approve", {}, { ...ana, issuer: "jwt" })],
    ["cancelling what was decided", choose(1, "cancel")],
    ["other arguments", choose(1, "approve", { edited: { args: order8, facts: factsFor(order8) } })],
    ["other values", choose(1, "approve", { values: { note: 1 } })],
  ];

  test.each(losers)("%s lost the race and is told the winner", (_sentence, command) => {
    const winner = { requestId: idOf(1), outcome: "approved", principal: ana, atMs: 1_000 };
    expect(decide(approved, command, early)).toMatchObject({
      ok: false,
      refusal: { code: "already-decided", decision: winner },
    });
  });

  test.each([
    ["at once", approved],
    ["while it runs", running],
    ["after it has run", andThen(running, early, finish())],
    ["after the task has ended", andThen(running, early, finish(), complete)],
    ["after its deadline", andThen(timed, early, choose(1, "approve"))],
  ])("the same decision again by the same principal changes nothing: %s", (_when, task) => {
    const elsewhere = { ...ana, via: "a2a" };
    for (const again of [choose(1, "approve"), choose(1, "approve", { reason: "once more" }, elsewhere)]) {
      expect(decide(task, again, late)).toEqual({ ok: true, facts: [], blobs: [] });
    }
  });

  test("what the end of the task closed is told as its winner", () => {
    expect(decide(ended, choose(1, "approve"), early)).toMatchObject({
      ok: false,
      refusal: { code: "already-decided", decision: { outcome: "canceled", by: "task", principal: ben } },
    });
  });

  test("what a deadline closed is told as expired, before the sweep and after it", () => {
    const before = decide(timed, choose(1, "approve"), at(DEADLINE));
    const swept = decide(andThen(timed, at(DEADLINE + 500), expire), choose(1, "approve"), at(DEADLINE + 900));
    expect(swept).toEqual(before);
    expect(swept).toMatchObject({ refusal: { code: "request-expired", requestId: idOf(1) } });
  });

  test("even cancelling what the end of the task closed is late: nobody else's closing is one's own", () => {
    expect(decide(ended, choose(1, "cancel", {}, ben), early)).toMatchObject({
      ok: false,
      refusal: { code: "already-decided" },
    });
  });

  test("after asking again the old request answers digest-differs, with its successor", () => {
    const again = andThen(asked, early, askAgain());
    for (const choice of ["approve", "deny"] as const) {
      expect(decide(again, choose(1, choice), early)).toMatchObject({
        ok: false,
        refusal: { code: "digest-differs", requestId: idOf(1), request: requestOf(again, 2) },
      });
    }
  });

  test("the digest binds when it is sent, and may be left out", () => {
    const { digest } = requestOf(asked, 1);
    expect(factsOf(asked, choose(1, "approve", { digest }))).toMatchObject([{ outcome: "approved", digest }]);
    expect(factsOf(asked, choose(1, "approve"))).toMatchObject([{ outcome: "approved", digest }]);
  });
});

describe("one message is one command", () => {
  const three = taskAfter(reply(3), open(approval(1), approval(2), approval(3)));
  const part = (n: number, choice: Choice["choice"], extra: Partial<Choice> = {}): Choice => ({
    requestId: idOf(n),
    choice,
    ...extra,
  });

  test("a message without answers is kept, while paused and while working", () => {
    for (const task of [asked, taskAfter()]) {
      expect(factsOf(task, receive("m2"))).toEqual([
        { type: "message-received", message: message("m2"), principal: ana, decided: [] },
      ]);
    }
  });

  test("its answers stand in one append, behind the message that names them", () => {
    expect(factsOf(three, receive("m2", part(1, "approve"), part(3, "deny", { reason: "no" })))).toMatchObject([
      { type: "message-received", decided: [idOf(1), idOf(3)] },
      { type: "request-decided", requestId: idOf(1), outcome: "approved" },
      { type: "request-decided", requestId: idOf(3), outcome: "denied", reason: "no" },
    ]);
  });

  test("the same part twice counts once", () => {
    const facts = factsOf(three, receive("m2", part(2, "approve"), part(2, "approve")));
    expect(facts).toMatchObject([{ decided: [idOf(2)] }, { requestId: idOf(2) }]);
    expect(facts).toHaveLength(2);
  });

  test("two parts that disagree about one request refuse all", () => {
    expect(decide(three, receive("m2", part(1, "approve"), part(2, "approve"), part(2, "deny")), early)).toEqual({
      ok: false,
      refusal: { code: "choice-invalid", requestId: idOf(2), pointer: "", detail: "two parts disagree about it" },
    });
  });

  test("a second part about the same request is judged like the first", () => {
    const command = receive("m2", part(1, "approve"), part(1, "approve", { reason: "\ud800" }));
    expect(decide(three, command, early)).toMatchObject({ refusal: { code: "choice-invalid", pointer: "/reason" } });
  });

  test("one invalid part refuses all", () => {
    const command = receive("m2", part(1, "approve"), part(2, "answer", { values: {} }));
    expect(decide(three, command, early)).toMatchObject({ ok: false, refusal: { code: "choice-invalid" } });
  });

  test("one unknown request refuses all", () => {
    const command = receive("m2", part(1, "approve"), part(4, "approve"));
    expect(decide(three, command, early)).toMatchObject({ ok: false, refusal: { code: "request-unknown" } });
  });

  test("a part that lost its race does not take the others along", () => {
    const raced = andThen(three, early, choose(1, "deny", {}, ben));
    expect(factsOf(raced, receive("m2", part(1, "approve"), part(2, "approve")))).toMatchObject([
      { type: "message-received", decided: [idOf(2)] },
      { type: "request-decided", requestId: idOf(2) },
    ]);
    expect(decide(raced, receive("m2", part(1, "approve"), part(2, "approve")), early)).toMatchObject({
      ok: true,
      lost: [{ requestId: idOf(1), refusal: { code: "already-decided", decision: { principal: ben } } }],
    });
  });

  test("a message of which every part lost is refused with the first winner, and tells all of them", () => {
    const raced = andThen(three, early, choose(1, "deny", {}, ben), choose(2, "deny", {}, ben));
    expect(decide(raced, receive("m2", part(1, "approve"), part(2, "approve")), early)).toMatchObject({
      ok: false,
      refusal: { code: "already-decided", decision: { requestId: idOf(1), principal: ben } },
      lost: [{ requestId: idOf(1) }, { requestId: idOf(2) }],
    });
  });

  test("a message that only repeats changes nothing, even after the end", () => {
    expect(factsOf(approved, receive("m2", part(1, "approve")))).toEqual([]);
    const over = andThen(approved, early, cancel);
    expect(factsOf(over, receive("m2", part(1, "approve")))).toEqual([]);
  });
});

describe("a paused task", () => {
  test("asks everything at once and can be answered in parts, in any order", () => {
    const task = taskAfter(reply(3), open(approval(1), approval(2), approval(3)));
    expect(openRequests(task).map(({ id }) => id)).toEqual([idOf(1), idOf(2), idOf(3)]);
    const first = andThen(task, early, choose(2, "deny"));
    expect(stateOf(first)).toBe("input-required");
    const second = andThen(first, early, choose(3, "approve"));
    expect(openRequests(second).map(({ id }) => id)).toEqual([idOf(1)]);
    const third = andThen(second, early, choose(1, "approve"));
    expect(stateOf(third)).toBe("working");
    expect(["call-1-1", "call-1-2", "call-1-3"].map((id) => statusOf(third, id).type)).toEqual([
      "allowed",
      "settled",
      "allowed",
    ]);
  });

  test("gives every request an id, counted over the whole task, and a digest of its own", () => {
    const task = andThen(andThen(asked, early, choose(1, "deny")), early, open(question, signIn));
    expect(task.requests.map(({ request }) => request.id)).toEqual([idOf(1), idOf(2), idOf(3)]);
    expect(new Set(task.requests.map(({ request }) => request.digest)).size).toBe(3);
  });

  test("needs a sign-in before anything else", () => {
    const task = taskAfter(open(question, signIn));
    expect(stateOf(task)).toBe("auth-required");
    expect(stateOf(andThen(task, early, choose(2, "answer", { values: {} })))).toBe("input-required");
  });

  test("goes on after one request was canceled, and that call does not run", () => {
    const task = andThen(asked, early, choose(1, "cancel"));
    expect(decisionOf(task, 1)).toMatchObject({ outcome: "canceled", principal: ana });
    expect(stateOf(task)).toBe("working");
    expect(statusOf(task)).toMatchObject({ type: "settled", how: { type: "not-run" } });
  });

  test("hands an answer to the call that asked", () => {
    const task = taskAfter(
      reply(),
      open({ ...question, callId: "call-1-1" }),
      choose(1, "answer", { values: { db: "pg" } }),
    );
    expect(statusOf(task)).toMatchObject({
      type: "settled",
      how: { type: "answered", decision: { values: { db: "pg" } } },
    });
  });

  test("tells who denied and why", () => {
    const task = andThen(asked, early, choose(1, "deny", { reason: "too much" }, ben));
    expect(decisionOf(task, 1)).toMatchObject({ outcome: "denied", reason: "too much", principal: ben });
    expect(statusOf(task)).toMatchObject({ type: "settled", how: { type: "not-run" } });
  });
});

describe("approve with edits", () => {
  const edited = { args: order8, facts: factsFor(order8) };
  const task = andThen(asked, early, choose(1, "approve", { edited }));

  test("records what was shown, what runs instead, and both digests", () => {
    const shown = requestOf(asked, 1).digest;
    const runs = callDigest({ key, epoch: "epoch-1" }, idOf(1), "refund", order8, edited.facts);
    expect(runs).not.toBe(shown);
    expect(decisionOf(task, 1)).toMatchObject({ digest: shown, editedArgs: order8, effectDigest: runs });
  });

  test("lets exactly the edited call run", () => {
    expect(factsOf(task, claim("call-1-1", { facts: factsFor(order8) }))).toMatchObject([
      { type: "effect-claimed", requestId: idOf(1), digest: decisionOf(task, 1)?.effectDigest },
    ]);
    expect(decide(task, claim("call-1-1", { facts: factsFor(order7) }), early)).toMatchObject({
      ok: false,
      refusal: { code: "not-allowed", detail: "what would run is not what was approved" },
    });
  });

  test("is the same decision again only with the same edits", () => {
    expect(factsOf(task, choose(1, "approve", { edited }))).toEqual([]);
    for (const other of [{}, { edited: { args: order7, facts: factsFor(order7) } }]) {
      expect(decide(task, choose(1, "approve", other), early)).toMatchObject({ refusal: { code: "already-decided" } });
    }
  });

  test("is retried with the edited arguments after a crash", () => {
    const cutOff = andThen(task, early, claim("call-1-1", { facts: factsFor(order8) }), doubt("retry"));
    const retry = claim("call-1-1", { facts: factsFor(order8), mayRetry: true, token: "token-2" });
    expect(factsOf(cutOff, retry)).toMatchObject([{ effectId: "call-1-1-2", attempt: 2, requestId: idOf(1) }]);
  });
});

test("after asking again without the edit, a retry runs what the newer request showed", () => {
  const edited = { args: order8, facts: factsFor(order8) };
  const again = andThen(asked, early, choose(1, "approve", { edited }), askAgain("call-1-1", factsFor(order7)));
  const cutOff = andThen(again, early, choose(2, "approve"), claim(), doubt("retry"));
  expect(factsOf(cutOff, claim("call-1-1", { mayRetry: true }))).toMatchObject([{ requestId: idOf(2) }]);
});

describe("a deadline", () => {
  const due = (...drafts: RequestDraft[]) => taskAfter(reply(3), open(...drafts));
  const soon = { expiresAtMs: DEADLINE };

  test("changes nothing before it has come", () => {
    expect(factsOf(timed, expire, at(DEADLINE - 1))).toEqual([]);
    expect(factsOf(asked, expire, at(Number.MAX_SAFE_INTEGER))).toEqual([]);
  });

  test("denies and lets the agent go on", () => {
    const task = andThen(due(approval(1, soon), approval(2)), late, expire);
    expect(decisionOf(task, 1)).toMatchObject({ outcome: "expired", by: "deadline" });
    expect(openRequests(task).map(({ id }) => id)).toEqual([idOf(2)]);
    expect(task.end).toBeUndefined();
    expect(statusOf(task)).toMatchObject({
      type: "settled",
      how: { type: "not-run", decision: { outcome: "expired" } },
    });
  });

  test("with on_timeout fail ends the task and closes what else is open", () => {
    const task = andThen(
      due(approval(1), approval(2, { ...soon, onTimeout: "fail" }), approval(3, soon)),
      late,
      expire,
    );
    expect(task.requests.map(({ decision }) => [decision?.outcome, decision?.by])).toEqual([
      ["canceled", "task"],
      ["expired", "deadline"],
      ["expired", "deadline"],
    ]);
    expect(task.end).toEqual({ state: "failed", message: "timeout waiting for user input", code: "input-timeout" });
  });

  test("of an in-doubt question fails the task as unknown, whatever on_timeout says", () => {
    const task = andThen(running, early, doubt("ask", { draft: inDoubt(1, { ...soon, onTimeout: "deny" }) }));
    expect(andThen(task, late, expire).end).toEqual({
      state: "failed",
      message: "timeout waiting for user input; the outcome of refund is unknown",
      code: "outcome-unknown",
    });
  });

  test("never approves and never answers", () => {
    const task = andThen(due(approval(1, soon), { ...question, ...soon }, { ...signIn, ...soon }), late, expire);
    expect(task.requests.map(({ decision }) => decision?.outcome)).toEqual(["expired", "expired", "expired"]);
  });
});

describe("cancel", () => {
  test("ends a paused task at once and closes its requests", () => {
    const task = andThen(taskAfter(reply(2), open(approval(1), approval(2))), early, choose(1, "approve"), cancel);
    expect(task.requests.map(({ decision }) => decision?.outcome)).toEqual(["approved", "canceled"]);
    expect(decisionOf(task, 2)).toMatchObject({ by: "task", principal: ben });
    expect(task.end).toEqual({ state: "canceled", message: "Canceled by ben." });
  });

  test("waits for a running effect, and is recorded once", () => {
    expect(factsOf(running, cancel)).toEqual([{ type: "cancel-requested", principal: ben }]);
    const waiting = andThen(running, early, cancel);
    expect(factsOf(waiting, cancel)).toEqual([]);
    expect(stateOf(waiting)).toBe("working");
  });

  test("tells the real outcome: the effect is finished, then the task ends for who wished it", () => {
    const task = andThen(running, early, cancel, finish(), { type: "cancel", principal: ana });
    expect(task.effects["call-1-1-1"]?.status.type).toBe("done");
    expect(task.end).toEqual({ state: "canceled", message: "Canceled by ben." });
  });

  test("does not ask about a cut-off effect; the end says that its outcome is unknown", () => {
    const task = andThen(running, early, cancel, doubt("ask"), cancel);
    expect(openRequests(task)).toEqual([]);
    expect(task.requests).toHaveLength(1);
    expect(task.end).toEqual({ state: "canceled", message: "Canceled by ben. Outcome unknown of: refund." });
  });

  test.each(["done", "failed"])("does not call an outcome unknown that a person has named: %s", (outcome) => {
    expect(andThen(doubted, early, answer(2, outcome), cancel).end?.message).toBe("Canceled by ben.");
  });

  test("before a retry has run says that the outcome is unknown: who asks for a retry did not name it", () => {
    const task = andThen(doubted, early, answer(2, "retry"), cancel);
    expect(task.end?.message).toBe("Canceled by ben. Outcome unknown of: refund.");
  });

  test("closes an in-doubt question and says that the outcome is unknown", () => {
    const task = andThen(doubted, early, cancel);
    expect(decisionOf(task, 2)).toMatchObject({ outcome: "canceled", by: "task" });
    expect(task.end?.message).toBe("Canceled by ben. Outcome unknown of: refund.");
  });
});

describe("asking again", () => {
  test("supersedes an open request in the same append, under a new id and digest", () => {
    const task = andThen(asked, early, askAgain());
    expect(decisionOf(task, 1)).toMatchObject({ outcome: "superseded", by: "policy" });
    expect(requestOf(task, 2)).toMatchObject({ kind: "approval", supersedes: idOf(1) });
    expect(requestOf(task, 2).digest).not.toBe(requestOf(task, 1).digest);
    expect(openRequests(task).map(({ id }) => id)).toEqual([idOf(2)]);
  });

  test("after an approval leaves that as it was, and the new request governs", () => {
    const task = andThen(approved, early, askAgain());
    expect(decisionOf(task, 1)).toMatchObject({ outcome: "approved" });
    expect(decide(task, claim(), early)).toMatchObject({ refusal: { code: "not-allowed" } });
    const again = andThen(task, early, choose(2, "approve"));
    expect(decide(again, claim(), early)).toMatchObject({ refusal: { code: "not-allowed" } });
    const changed = claim("call-1-1", { facts: factsFor(order7, "refund@2") });
    expect(factsOf(again, changed)).toMatchObject([{ requestId: idOf(2) }]);
  });

  test(`happens ${ASK_AGAIN_MAX} times at most; then the call is refused and nothing stays open`, () => {
    let task = asked;
    for (let i = 1; i <= ASK_AGAIN_MAX; i++) {
      task = andThen(task, early, askAgain("call-1-1", factsFor(order7, `refund@${i + 1}`)));
      expect(openRequests(task)).toHaveLength(1);
    }
    const refused = andThen(task, early, askAgain());
    expect(refused.requests).toHaveLength(ASK_AGAIN_MAX + 1);
    expect(openRequests(refused)).toEqual([]);
    expect(statusOf(refused)).toMatchObject({ type: "settled", how: { type: "refused", code: "changed-too-often" } });
  });
});

describe("an effect", () => {
  test("of an ungated call needs nobody, and its digest names no request", () => {
    const digest = callDigest({ key, epoch: "epoch-1" }, "", "refund", order7, factsFor(order7));
    expect(factsOf(taskAfter(reply()), claim("call-1-1", { gated: false }))).toEqual([
      { type: "effect-claimed", effectId: "call-1-1-1", callId: "call-1-1", attempt: 1, token: "token-1", digest },
    ]);
  });

  test("is claimed once: the same claim again changes nothing, for its answer was lost on the way", () => {
    expect(factsOf(running, claim())).toEqual([]);
    expect(decide(andThen(running, early, finish()), claim(), early).ok).toBe(false);
    expect(decide(unknown, claim(), early).ok).toBe(false);
  });

  test("of an approved call carries the request and the digest that was shown", () => {
    expect(factsOf(approved, claim())).toMatchObject([{ requestId: idOf(1), digest: requestOf(asked, 1).digest }]);
  });

  test("approved in one database is worth nothing in another, or after a restore", () => {
    const restored = { ...early, epoch: "epoch-2" };
    expect(decide(approved, claim(), restored)).toMatchObject({ refusal: { code: "not-allowed" } });
    const elsewhere = { ...early, key: { tenant: "default", id: "U" } };
    expect(decide(approved, claim(), elsewhere)).toMatchObject({ refusal: { code: "not-allowed" } });
  });

  test("of a request from before a restore is never approved; it can only be closed", () => {
    const restored = { ...early, epoch: "epoch-2" };
    for (const extra of [{}, { edited: { args: order8, facts: factsFor(order8) } }]) {
      expect(decide(asked, choose(1, "approve", extra), restored)).toMatchObject({
        refusal: { code: "digest-differs" },
      });
    }
    expect(decide(doubted, answer(2, "retry"), restored)).toMatchObject({ refusal: { code: "digest-differs" } });
    expect(decide(asked, choose(1, "deny"), restored).ok).toBe(true);
    expect(decide(asked, choose(1, "cancel"), restored).ok).toBe(true);
  });

  test("is finished once; reporting the same outcome again changes nothing", () => {
    const done = andThen(running, early, finish());
    expect(done.effects["call-1-1-1"]?.status).toEqual({ type: "done", result: { value: "ok" } });
    expect(factsOf(done, finish({ result: "something else" }))).toEqual([]);
    expect(statusOf(done)).toMatchObject({ type: "settled", how: { type: "ran" } });
  });

  test("that failed is a result for the model, not the end of the task", () => {
    const task = andThen(running, early, finish({ outcome: "failed", result: "no such order" }));
    expect(statusOf(task)).toMatchObject({
      type: "settled",
      how: { type: "ran", effect: { status: { type: "failed" } } },
    });
    expect(task.end).toBeUndefined();
  });

  test(`keeps a result of ${RESULT_BYTES_MAX} bytes in the log, and a longer one beside it`, () => {
    const fits = "x".repeat(RESULT_BYTES_MAX - 2);
    expect(decide(running, finish({ result: fits }), early)).toMatchObject({
      facts: [{ result: { value: fits } }],
      blobs: [],
    });
    const text = JSON.stringify(`${fits}x`);
    expect(decide(running, finish({ result: `${fits}x` }), early)).toMatchObject({
      facts: [{ result: { blob: sha256(text), bytes: RESULT_BYTES_MAX + 1, head: text.slice(0, 512) } }],
      blobs: [{ sha256: sha256(text), text }],
    });
  });

  test("counts bytes, not characters, and cuts no character in half", () => {
    const verdict = decide(running, finish({ result: "é".repeat(RESULT_BYTES_MAX / 2) }), early);
    expect(verdict).toMatchObject({ blobs: [{ text: expect.any(String) }] });
    const emoji = decide(running, finish({ result: `${"😀".repeat(RESULT_BYTES_MAX)}` }), early);
    if (!emoji.ok || emoji.facts[0]?.type !== "effect-finished" || !("head" in emoji.facts[0].result))
      throw new Error();
    expect(emoji.facts[0].result.head.isWellFormed()).toBe(true);
  });
});

describe("an effect that was cut off", () => {
  test("is unknown, and a person is asked", () => {
    expect(factsOf(running, doubt("ask"))).toMatchObject([
      { type: "effect-unknown", effectId: "call-1-1-1", why: "the worker died" },
      { type: "request-opened", request: { id: idOf(2), kind: "in-doubt" } },
    ]);
    expect(stateOf(doubted)).toBe("input-required");
  });

  test.each(["done", "failed"])("is settled by the answer %s, without running", (outcome) => {
    const task = andThen(doubted, early, answer(2, outcome));
    expect(statusOf(task)).toMatchObject({
      type: "settled",
      how: { type: "answered", decision: { values: { outcome } } },
    });
  });

  test("runs again after the answer retry, as a new effect under that answer", () => {
    const task = andThen(doubted, early, answer(2, "retry"));
    expect(factsOf(task, claim("call-1-1", { token: "token-2" }))).toMatchObject([
      { effectId: "call-1-1-2", attempt: 2, requestId: idOf(2), digest: requestOf(doubted, 2).digest },
    ]);
    expect(decide(task, claim("call-1-1", { facts: factsFor(order8) }), early)).toMatchObject({
      refusal: { code: "not-allowed" },
    });
  });

  test("asks again when the retry was cut off too", () => {
    const again = andThen(doubted, early, answer(2, "retry"), claim("call-1-1", { token: "token-2" }));
    const task = andThen(again, early, doubt("ask", { effectId: "call-1-1-2", draft: inDoubt(2) }));
    expect(openRequests(task).map(({ id }) => id)).toEqual([idOf(3)]);
  });

  test("fails the task when its tool says so, and when nothing can be asked", () => {
    for (const command of [doubt("fail"), doubt("ask", { draft: undefined })]) {
      const task = andThen(running, early, command);
      expect(task.effects["call-1-1-1"]?.status).toEqual({ type: "unknown", why: "the worker died" });
      expect(task.end).toEqual({
        state: "failed",
        message: "outcome of refund is unknown: the worker died",
        code: "outcome-unknown",
      });
    }
  });

  test("is left for its idempotent tool to repeat, under the same approval", () => {
    expect(factsOf(running, doubt("retry"))).toMatchObject([{ type: "effect-unknown" }]);
    expect(factsOf(unknown, doubt("retry"))).toEqual([]);
    expect(factsOf(unknown, claim("call-1-1", { mayRetry: true, token: "token-2" }))).toMatchObject([
      { effectId: "call-1-1-2", requestId: idOf(1), digest: requestOf(asked, 1).digest },
    ]);
  });

  test("whose question was canceled stays unknown: nobody has said that it did not run", () => {
    const task = andThen(doubted, early, choose(2, "cancel"));
    expect(statusOf(task)).toMatchObject({ type: "settled", how: { type: "unknown" } });
    expect(andThen(task, early, cancel).end?.message).toBe("Canceled by ben. Outcome unknown of: refund.");
  });

  test("leaves no other effect without an outcome when it fails the task", () => {
    const two = taskAfter(reply(2), ungated("call-1-1"), ungated("call-1-2"), doubt("fail"));
    expect(Object.values(two.effects).map(({ status }) => status.type)).toEqual(["unknown", "unknown"]);
  });

  test("is never reported as done or failed when the task fails", () => {
    const task = andThen(running, early, fail);
    expect(task.effects["call-1-1-1"]?.status).toEqual({ type: "unknown", why: "the task ended while it ran" });
    expect(task.end).toEqual({ state: "failed", message: "broken Outcome unknown of: refund.", code: "test" });
  });
});

describe("what a model says", () => {
  test("gets call ids of our own, and its own beside them", () => {
    const command: Command = {
      type: "reply",
      turn: 1,
      text: "",
      calls: [{ tool: "refund", args: order7, modelCallId: "toolu_1" }],
      usage: { inputTokens: 3, outputTokens: 4 },
    };
    expect(factsOf(taskAfter(), command)).toEqual([
      {
        type: "model-replied",
        turn: 1,
        text: "",
        calls: [{ callId: "call-1-1", tool: "refund", args: order7, modelCallId: "toolu_1" }],
        usage: { inputTokens: 3, outputTokens: 4 },
      },
    ]);
  });

  test("cannot break the log: bad arguments are refused call by call", () => {
    const calls = [
      { tool: "refund", args: { to: "\ud800" } },
      { tool: "refund", args: order7 },
      { tool: "refund", args: { text: "x".repeat(64 * 1024) } },
    ];
    const task = taskAfter({ type: "reply", turn: 1, text: "lone \ud800", calls });
    expect(task.turns[0]?.text).toBe("lone \ufffd");
    expect(task.calls["call-1-1"]).toMatchObject({
      refused: { code: "arguments-invalid", text: "Arguments refused at /to: a lone surrogate is not valid text." },
    });
    expect([task.calls["call-1-1"]?.args, task.calls["call-1-3"]?.args]).toEqual([{}, {}]);
    expect(statusOf(task, "call-1-2")).toEqual({ type: "new" });
    expect(task.calls["call-1-3"]?.refused?.text).toMatch(/at most 65536 are taken/);
  });

  test.each([[null], [[1]], ["text"]])("cannot pass off %j as arguments", (odd) => {
    const task = taskAfter({ type: "reply", turn: 1, text: "", calls: [{ tool: "refund", args: odd as never }] });
    expect(task.calls["call-1-1"]).toMatchObject({ refused: { text: "Arguments refused: not an object." } });
    expect(task.calls["call-1-1"]?.args).toEqual({});
  });

  test("cannot name a tool that could not be hashed", () => {
    const task = taskAfter({ type: "reply", turn: 1, text: "", calls: [{ tool: "refund\ud800", args: {} }] });
    expect(task.calls["call-1-1"]?.tool).toBe("refund\ufffd");
    expect(decide(task, ungated(), early).ok).toBe(true);
    const long = taskAfter({ type: "reply", turn: 1, text: "", calls: [{ tool: `${"x".repeat(255)}😀`, args: {} }] });
    expect(long.calls["call-1-1"]?.tool).toBe(`${"x".repeat(255)}\ufffd`);
  });

  test("is cut between characters where it is too long", () => {
    const text = `${"x".repeat(1024 * 1024 - 1)}😀`;
    const task = taskAfter({ type: "reply", turn: 1, text, calls: [] });
    expect(task.turns[0]?.text.isWellFormed()).toBe(true);
    expect(task.turns[0]?.text.length).toBe(1024 * 1024);
  });

  test(`has at most ${CALLS_PER_TURN_MAX} calls in one turn`, () => {
    expect(Object.keys(taskAfter(reply(CALLS_PER_TURN_MAX + 1)).calls)).toHaveLength(CALLS_PER_TURN_MAX);
  });
});

test("a task that goes well: asked, approved, run once, completed", () => {
  const result = advanceLog(
    undefined,
    [submit, reply(), open(approval()), choose(1, "approve"), claim(), finish(), reply(0, 2), complete],
    early,
  );
  expect(result.ok && result.events.map(({ type }) => type)).toEqual([
    "task-submitted",
    "model-replied",
    "request-opened",
    "request-decided",
    "effect-claimed",
    "effect-finished",
    "model-replied",
    "task-completed",
  ]);
});
