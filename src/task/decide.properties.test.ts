/**
 * Properties of every task that commands can reach. A run is a list of intents; each is resolved against the task as it
 * is then, so that tasks live long: the worker follows `next`, people answer what is open, and in between anybody may
 * send anything.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { ASK_AGAIN_MAX, OPEN_REQUESTS_MAX } from "./ask.ts";
import type { Choice, Circumstances, Command } from "./command.ts";
import { decide } from "./decide.ts";
import { callDigest } from "./digest.ts";
import { decodeEvent, encodeEvent, type TaskEvent } from "./event.ts";
import type { JsonObject } from "./json.ts";
import { advanceLog, replay } from "./log.ts";
import { next, type Step } from "./next.ts";
import type { Principal, Request, RequestDraft, RequestId, ToolFacts } from "./request.ts";
import { type Rows, rowsOf, wakeAtMs } from "./rows.ts";
import {
  argsOf,
  type Call,
  callStatus,
  claimedEffects,
  findRequest,
  inDoubtAnswer,
  isOver,
  openRequests,
  stateOf,
  type Task,
} from "./task.ts";

const key = { tenant: "default", id: "T" };
const people: readonly Principal[] = ["ana", "ben"].map((name) => ({
  name,
  issuer: "tokens",
  tenant: "default",
  via: "api",
}));

interface Tool {
  readonly gated: boolean;
  readonly onAmbiguous: "ask" | "fail" | "retry";
}
const TOOLS: Readonly<Record<string, Tool>> = {
  refund: { gated: true, onAmbiguous: "ask" },
  deploy: { gated: true, onAmbiguous: "retry" },
  launch: { gated: true, onAmbiguous: "fail" },
  search: { gated: false, onAmbiguous: "retry" },
  notify: { gated: false, onAmbiguous: "ask" },
};
const isGated = (tool: string) => TOOLS[tool]?.gated;

/** What a run does next; `a`, `b` and `c` choose among what is there. */
interface Intent {
  readonly type: keyof typeof INTENTS;
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** A task and what its worker knows beside the log. */
interface World {
  task: Task | undefined;
  readonly events: TaskEvent[];
  readonly appends: { readonly rows: Rows; readonly task: Task; readonly before: Task | undefined }[];
  /** Ungated claims by effect, for the property about them. */
  readonly letThrough: Set<string>;
  nowMs: number;
  /** Tools change under the question: identity is part of what was approved. */
  version: number;
  tokens: number;
}

const WAIT_MS = 1_000;
const circumstances = ({ nowMs }: World): Circumstances => ({ key, nowMs, epoch: "epoch" });
const pick = <T>(items: readonly T[], i: number): T | undefined => items[i % items.length];

function factsFor(world: World, tool: string, args: JsonObject): ToolFacts {
  return { identity: `${tool}@${world.version}`, schemaHash: "s", policyVersion: "p", plan: { would: args } };
}

/** All count or none, as in the runtime. */
function execute(world: World, ...commands: Command[]): boolean {
  const before = world.task;
  const result = advanceLog(before, commands, circumstances(world));
  if (!result.ok) return false;
  if (result.events.length > 0 && result.task) {
    world.events.push(...result.events);
    world.appends.push({ rows: rowsOf(result.task, result.events, result.blobs), task: result.task, before });
    for (const command of commands) {
      if (command.type !== "claim" || command.gated) continue;
      for (const event of result.events) if (event.type === "effect-claimed") world.letThrough.add(event.effectId);
    }
  }
  world.task = result.task;
  return true;
}

// The worker

function draftFor(world: World, call: Call, { b, c }: Intent): RequestDraft & { kind: "approval" } {
  const args = world.task ? argsOf(world.task, call) : call.args;
  return {
    kind: "approval",
    callId: call.callId,
    tool: call.tool,
    args,
    facts: factsFor(world, call.tool, args),
    editable: b % 4 !== 0,
    title: call.tool,
    prompt: "May it?",
    risk: "low",
    expiresAtMs: c % 3 === 0 ? world.nowMs + WAIT_MS : null,
    onTimeout: c % 12 === 0 ? "fail" : "deny",
  };
}

function claimFor(world: World, call: Call): Command & { type: "claim" } {
  const args = world.task ? argsOf(world.task, call) : call.args;
  return {
    type: "claim",
    callId: call.callId,
    token: `token-${++world.tokens}`,
    gated: isGated(call.tool) ?? true,
    facts: factsFor(world, call.tool, args),
    mayRetry: TOOLS[call.tool]?.onAmbiguous === "retry",
  };
}

function doubtFor(world: World, task: Task, effectId: string, intent: Intent): Command {
  const call = task.calls[task.effects[effectId]?.callId ?? ""];
  if (!call) throw new Error(`no call for ${effectId}`);
  const { editable: _editable, ...draft } = draftFor(world, call, intent);
  const wanted = TOOLS[call.tool]?.onAmbiguous ?? "ask";
  return {
    type: "doubt",
    effectId,
    why: "crash",
    onAmbiguous: wanted === "retry" && !mayRetry(world, task, call) ? "ask" : wanted,
    draft: { ...draft, kind: "in-doubt", effectId },
  };
}

/** Its tool may be repeated, its rule asks nobody who was not asked, and it is still what was allowed then. */
function mayRetry(world: World, task: Task, call: Call): boolean {
  const effect = task.effects[call.effectIds.at(-1) ?? ""];
  if (!effect || TOOLS[call.tool]?.onAmbiguous !== "retry" || (isGated(call.tool) && !effect.requestId)) return false;
  return !isChanged(world, task, call);
}

/** What a faithful worker sends for a step. */
function commandsFor(world: World, task: Task, step: Exclude<Step, { type: "rest" }>, intent: Intent): Command[] {
  switch (step.type) {
    case "think": {
      const calls = Array.from({ length: intent.b % 20 === 0 ? 0 : (intent.b % 3) + 1 }, (_, i) => ({
        tool:
          pick(["refund", "deploy", "search", "refund", "notify", "launch", "gone", "deploy"], intent.c + i * 3) ?? "",
        args: { n: (intent.a + i) % 5 },
      }));
      return [{ type: "reply", turn: step.turn, text: "", calls }];
    }
    case "ask":
      return [{ type: "open", drafts: step.calls.map((call) => draftFor(world, call, intent)) }];
    case "run":
      return [claimFor(world, step.call)];
    case "settle": {
      const call = task.calls[step.effect.callId];
      return step.effect.status.type === "unknown" && call && mayRetry(world, task, call)
        ? [claimFor(world, call)]
        : [doubtFor(world, task, step.effect.effectId, intent)];
    }
    case "refuse":
      return [{ type: "refuse-call", callId: step.call.callId, code: step.code, text: step.text }];
    case "cancel":
      return [{ type: "cancel", principal: task.cancelRequestedBy ?? task.principal }];
    case "complete":
      return [{ type: "complete", message: step.message }];
    case "expire":
      return [{ type: "expire" }];
  }
}

/** The tool, its rule or its plan changed: what was approved is not what would run. */
function isChanged(world: World, task: Task, call: Call): boolean {
  const status = callStatus(task, call);
  const bound = status.type === "allowed" ? status : "effect" in status ? status.effect : undefined;
  if (!bound) return false;
  const args = argsOf(task, call);
  const facts = factsFor(world, call.tool, args);
  return callDigest(circumstances(world), bound.requestId ?? "", call.tool, args, facts) !== bound.digest;
}

function work(world: World, intent: Intent): void {
  const { task } = world;
  if (!task) return void execute(world, submit);
  const step = next(task, isGated, world.nowMs);
  if (step.type === "rest") return;
  const call = step.type === "run" ? step.call : undefined;
  if (call && isChanged(world, task, call)) {
    execute(world, { type: "ask-again", callId: call.callId, draft: draftFor(world, call, intent) });
    return;
  }
  execute(world, ...commandsFor(world, task, step, intent));
  // Two of three effects are finished before anything else happens; the others are still running, or cut off.
  if (intent.a % 3 > 0) finishOne(world, intent);
}

function finishOne(world: World, { a, b }: Intent): void {
  const effects = Object.values(world.task?.effects ?? {}).filter(({ status }) => status.type === "claimed");
  const effect = pick(effects, a);
  if (!effect) return;
  const result = b % 10 === 0 ? "x".repeat(9_000) : { done: b };
  execute(world, {
    type: "finish",
    effectId: effect.effectId,
    token: effect.token,
    outcome: b % 5 === 0 ? "failed" : "done",
    result,
  });
}

// People

const submit: Command = {
  type: "submit",
  agent: "assistant",
  contextId: "context",
  principal: people[0] as Principal,
  message: { messageId: "m1", role: "user", parts: [] },
};

/** A choice that fits the request's kind. */
function fittingChoice(world: World, request: Request, a: number, b: number): Choice {
  const requestId = request.id;
  const named = b % 2 ? { requestId, digest: request.digest } : { requestId };
  switch (request.kind) {
    case "approval": {
      if (a % 10 === 0) return { ...named, choice: "deny", reason: "no" };
      if (a % 10 === 1) return { ...named, choice: "cancel" };
      if (!request.editable || a % 10 > 3) return { ...named, choice: "approve" };
      const args = { n: 100 + (b % 3) };
      return { ...named, choice: "approve", edited: { args, facts: factsFor(world, request.tool, args) } };
    }
    case "in-doubt":
      return { ...named, choice: "answer", values: { outcome: pick(["retry", "done", "failed"], a) ?? "" } };
    case "input":
    case "auth":
      return a % 5 === 0 ? { ...named, choice: "cancel" } : { ...named, choice: "answer", values: { text: "yes" } };
  }
}

function decideOne(world: World, { a, b, c }: Intent): void {
  const request = world.task && pick(openRequests(world.task), b);
  if (!request) return;
  const call = request.kind === "approval" && world.task?.calls[request.callId];
  // As in the runtime: what the tool would do is worked out again first.
  if (call && request.kind === "approval" && a % 4 > 0 && request.facts.identity !== `${call.tool}@${world.version}`) {
    execute(world, {
      type: "ask-again",
      callId: call.callId,
      draft: draftFor(world, call, { type: "person", a, b, c }),
    });
  }
  execute(world, {
    type: "choose",
    choice: fittingChoice(world, request, a, c),
    principal: pick(people, c) as Principal,
  });
}

/** One message with several answers, some of them late or repeated. */
function sendMessage(world: World, { a, b, c }: Intent): void {
  const requests = world.task?.requests ?? [];
  const choices = Array.from({ length: b % 4 }, (_, i) => pick(requests, a + i)).flatMap((record) =>
    record ? [fittingChoice(world, record.request, c, c)] : [],
  );
  const message = { messageId: `m${world.events.length}`, role: "user", parts: [] } as const;
  execute(world, { type: "receive", message, principal: pick(people, c) as Principal, choices });
}

/** A question that no tool call stands behind. */
function askFreely(world: World, { b, c }: Intent): void {
  const common = {
    title: "question",
    prompt: "Which?",
    risk: "low",
    expiresAtMs: c % 2 ? world.nowMs + WAIT_MS : null,
    onTimeout: c % 8 === 1 ? "fail" : "deny",
  } as const;
  const draft: RequestDraft =
    b % 3 === 0 ? { ...common, kind: "auth", url: "https://login" } : { ...common, kind: "input", schema: {} };
  execute(world, { type: "open", drafts: [draft] });
}

// Anybody

/** Any command about anything: other calls, other tokens, other tools than were shown. */
function wildCommand(world: World, { a, b, c }: Intent): Command {
  const task = world.task;
  const calls = Object.values(task?.calls ?? {});
  const call = pick(calls, b) ?? {
    callId: "call-9-9",
    tool: "refund",
    args: {},
    turn: 9,
    requestIds: [],
    effectIds: [],
  };
  const effectId = pick(Object.keys(task?.effects ?? {}), b) ?? "call-9-9-1";
  const requestId: RequestId = pick(task?.requests ?? [], b)?.request.id ?? "input-T-99";
  const principal = pick(people, c) as Principal;
  const intent = { type: "wild", a, b, c } as const;
  const commands: Command[] = [
    { ...claimFor(world, call), gated: c % 2 === 0, mayRetry: c % 3 === 0 },
    { ...claimFor(world, call), gated: false, facts: factsFor(world, call.tool, { n: c % 5 }) },
    { type: "ask-again", callId: call.callId, draft: draftFor(world, call, intent) },
    { type: "open", drafts: [draftFor(world, call, intent)] },
    {
      type: "choose",
      choice: { requestId, choice: pick(["approve", "deny", "answer", "cancel"], c) ?? "deny" },
      principal,
    },
    { type: "choose", choice: { requestId, choice: "approve", digest: "sha256:0" }, principal },
    { type: "choose", choice: { requestId, choice: "answer", values: { outcome: "retry" } }, principal },
    { type: "finish", effectId, token: `token-${c % 5}`, outcome: "done", result: null },
    ...(task?.effects[effectId] ? [doubtFor(world, task, effectId, intent)] : []),
    { type: "refuse-call", callId: call.callId, code: "x", text: "y" },
    { type: "expire" },
    { type: "reply", turn: c % 4, text: "", calls: [{ tool: "refund", args: {} }] },
    ...(c % 8 === 0 ? [{ type: "complete", message: "early" } as const] : []),
  ];
  return pick(commands, a) as Command;
}

const INTENTS = {
  work: (world, intent) => work(world, intent),
  person: (world, intent) => decideOne(world, intent),
  finish: (world, intent) => finishOne(world, intent),
  message: (world, intent) => sendMessage(world, intent),
  ask: (world, intent) => askFreely(world, intent),
  artifact: (world, { a }) =>
    execute(world, { type: "update-artifact", artifact: { artifactId: `${a}` }, append: false, lastChunk: true }),
  change: (world) => world.version++,
  wait: (world, { a }) => {
    world.nowMs += a % (2 * WAIT_MS);
  },
  cancel: (world, { a }) => execute(world, { type: "cancel", principal: pick(people, a) as Principal }),
  fail: (world) => execute(world, { type: "fail", message: "broken", code: "test" }),
  wild: (world, intent) => execute(world, wildCommand(world, intent)),
} as const satisfies Record<string, (world: World, intent: Intent) => unknown>;

const WEIGHTS: Readonly<Record<keyof typeof INTENTS, number>> = {
  work: 40,
  person: 25,
  finish: 6,
  message: 5,
  ask: 2,
  artifact: 1,
  change: 7,
  wait: 6,
  cancel: 0.3,
  fail: 0.1,
  wild: 12,
};

const n = fc.nat(100_000);
const type = fc.oneof(
  ...(Object.keys(INTENTS) as (keyof typeof INTENTS)[]).map((name) => ({
    weight: WEIGHTS[name] * 10,
    arbitrary: fc.constant(name),
  })),
);
const runs: fc.Arbitrary<Intent[]> = fc.array(fc.record({ type, a: n, b: n, c: n }), {
  minLength: 40,
  maxLength: 120,
  size: "max",
});

/** Plays a run, looking at the world after every intent, until a little after the task is over. */
function play(intents: readonly Intent[], look: (world: World) => void = () => {}): World {
  const world: World = {
    task: undefined,
    events: [],
    appends: [],
    letThrough: new Set(),
    nowMs: 1_000,
    version: 1,
    tokens: 0,
  };
  execute(world, submit);
  for (const intent of intents) {
    INTENTS[intent.type](world, intent);
    look(world);
    if (world.task && isOver(world.task)) break;
  }
  return world;
}

/** Says what a look found, with the log that led there. */
function describeWorld({ events }: World): string {
  return events.map(({ type, ...rest }) => `${type} ${JSON.stringify(rest).slice(0, 120)}`).join("\n");
}

function forEveryTask(check: (world: World) => void, { numRuns = 300, look = false } = {}): void {
  fc.assert(
    fc.property(runs, (intents) => {
      const world = play(intents, look ? check : undefined);
      if (!look) check(world);
    }),
    { numRuns },
  );
}

function theTask({ task }: World): Task {
  if (!task) throw new Error("no task");
  return task;
}

test("the generator reaches what matters", () => {
  const RUNS = 300;
  const reached = new Map<string, number>();
  fc.assert(
    fc.property(runs, (intents) => {
      const world = play(intents);
      for (const mark of marksOf(world)) reached.set(mark, (reached.get(mark) ?? 0) + 1);
    }),
    { numRuns: RUNS },
  );
  const percent = Object.fromEntries([...reached].map(([mark, n]) => [mark, (100 * n) / RUNS]));
  const rare = Object.entries(LEAST_PERCENT).filter(([mark, least]) => (percent[mark] ?? 0) < least);
  expect(rare.map(([mark, least]) => `${mark}: ${percent[mark] ?? 0}% of runs, at least ${least}% wanted`)).toEqual([]);
});

/** About half of what is usual, so that chance does not fail the build and a generator that dies early does. */
const LEAST_PERCENT: Readonly<Record<string, number>> = {
  "asked: approval": 60,
  "asked: input": 20,
  "asked: auth": 10,
  "asked: in-doubt": 15,
  "asked again": 30,
  "three open at once": 8,
  "decided: approved": 50,
  "decided: denied": 12,
  "decided: answered": 30,
  "decided: canceled": 15,
  "decided: expired by deadline": 8,
  "decided: superseded by policy": 18,
  "decided: canceled by task": 2,
  edited: 18,
  "retry answered": 4,
  "claimed: gated": 40,
  "claimed: ungated": 35,
  "claimed: again": 12,
  "effect-finished": 40,
  "effect-unknown": 30,
  blob: 7,
  "refused: tool-unknown": 20,
  "refused: changed-too-often": 0.3,
  "message-received": 35,
  "task-completed": 5,
  "task-failed": 8,
  "task-canceled": 4,
  "25 events": 25,
  "still alive": 20,
};

/** What a run has seen. */
function marksOf({ events, appends, task }: World): ReadonlySet<string> {
  const marks = new Set<string>();
  for (const event of events) {
    marks.add(event.type);
    switch (event.type) {
      case "request-opened":
        marks.add(`asked: ${event.request.kind}`);
        if (event.request.kind === "approval" && event.request.supersedes) marks.add("asked again");
        break;
      case "request-decided":
        marks.add(`decided: ${event.outcome}${event.by ? ` by ${event.by}` : ""}`);
        if (event.editedArgs) marks.add("edited");
        if (inDoubtAnswer(event) === "retry") marks.add("retry answered");
        break;
      case "effect-claimed":
        marks.add(event.requestId ? "claimed: gated" : "claimed: ungated");
        if (event.attempt > 1) marks.add("claimed: again");
        break;
      case "effect-finished":
        if ("blob" in event.result) marks.add("blob");
        break;
      case "call-refused":
        marks.add(`refused: ${event.code}`);
        break;
    }
  }
  if (events.length >= 25) marks.add("25 events");
  if (!task?.end) marks.add("still alive");
  if (appends.some((append) => openRequests(append.task).length > 2)) marks.add("three open at once");
  return marks;
}

test("seq is contiguous from 1, time never goes back, and the version is the number of events", () => {
  forEveryTask((world) => {
    expect(world.events.map(({ seq }) => seq)).toEqual(world.events.map((_, i) => i + 1));
    expect(world.events.map(({ at }) => at)).toEqual(world.events.map(({ at }) => at).toSorted((x, y) => x - y));
    expect(theTask(world).version).toBe(world.events.length);
  });
});

test("replaying the log, as it is stored, gives the task that grew with it", () => {
  forEveryTask((world) => {
    const stored = world.events.map((event) => decodeEvent(key, event.seq, event.at, encodeEvent(event)));
    expect(replay(key, stored)).toEqual(world.task);
    const half = Math.floor(stored.length / 2);
    expect(replay(key, stored.slice(half), replay(key, stored.slice(0, half)))).toEqual(world.task);
  });
});

test("request counters are 1, 2, 3 … and never change", () => {
  forEveryTask((world) => {
    const opened = world.events.flatMap((event) => (event.type === "request-opened" ? [event.request] : []));
    expect(opened.map(({ id }) => id)).toEqual(opened.map((_, i) => `input-T-${i + 1}`));
    expect(theTask(world).requests.map(({ request }) => request)).toEqual(opened);
    expect(new Set(opened.map(({ digest }) => digest)).size).toBe(opened.length);
  });
});

test("a request is decided at most once, after it was opened, with the digest that was shown", () => {
  forEveryTask((world) => {
    const open = new Map<string, string>();
    for (const event of world.events) {
      if (event.type === "request-opened") open.set(event.request.id, event.request.digest);
      if (event.type !== "request-decided") continue;
      expect(open.get(event.requestId)).toBe(event.digest);
      open.delete(event.requestId);
    }
    expect([...open.keys()]).toEqual(openRequests(theTask(world)).map(({ id }) => id));
  });
});

test("a claim follows an approval, or the answer retry, of the governing request with an equal digest", () => {
  forEveryTask((world) => {
    let task: Task | undefined;
    for (const event of world.events) {
      if (event.type === "effect-claimed" && task) {
        const call = task.calls[event.callId];
        const governing = call?.requestIds.at(-1);
        expect(event.requestId).toBe(governing);
        if (governing === undefined) expect(world.letThrough).toContain(event.effectId);
        else {
          const record = findRequest(task, governing);
          const decision = record?.decision;
          expect(decision?.outcome === "approved" || (decision && inDoubtAnswer(decision) === "retry")).toBe(true);
          expect(event.digest).toBe(decision?.effectDigest ?? record?.request.digest);
        }
        expect(openRequests(task)).toEqual([]);
      }
      task = replay(key, [event], task);
    }
  });
});

test("one approval allows one effect, unless its outcome is unknown and its tool may be repeated", () => {
  forEveryTask((world) => {
    const last = new Map<string, string>();
    let task: Task | undefined;
    for (const event of world.events) {
      if (event.type === "effect-claimed") {
        const name = `${event.callId} ${event.requestId}`;
        const earlier = last.get(name);
        if (earlier) expect(task?.effects[earlier]?.status.type).toBe("unknown");
        last.set(name, event.effectId);
      }
      task = replay(key, [event], task);
    }
  });
});

test("what was denied, expired or canceled never runs under that request", () => {
  forEveryTask((world) => {
    const allowing = new Set(["approved", "answered"]);
    for (const { requestId } of Object.values(theTask(world).effects)) {
      if (requestId === undefined) continue;
      expect(allowing).toContain(findRequest(theTask(world), requestId)?.decision?.outcome);
    }
  });
});

test("a call that has its result never runs again, and no call runs twice at once", () => {
  forEveryTask((world) => {
    let task: Task | undefined;
    for (const event of world.events) {
      const call = event.type === "effect-claimed" ? task?.calls[event.callId] : undefined;
      for (const id of call?.effectIds ?? []) expect(task?.effects[id]?.status.type).toBe("unknown");
      task = replay(key, [event], task);
    }
  });
});

test("when a task ends, every effect has an outcome, if only an unknown one", () => {
  forEveryTask((world) => {
    if (isOver(theTask(world))) expect(claimedEffects(theTask(world))).toEqual([]);
  });
});

test("a task completes only when every call has its result", () => {
  let completed = 0;
  forEveryTask((world) => {
    const task = theTask(world);
    if (task.end?.state !== "completed") return;
    completed++;
    for (const call of Object.values(task.calls)) expect(callStatus(task, call).type).toBe("settled");
  });
  expect(completed).toBeGreaterThan(5);
});

test("requests are open if and only if the task requires input or auth", () => {
  forEveryTask(
    (world) => {
      const task = theTask(world);
      const waits = stateOf(task) === "input-required" || stateOf(task) === "auth-required";
      expect(openRequests(task).length > 0).toBe(waits);
    },
    { look: true },
  );
});

test("every open request that has not expired can be decided, and closes", () => {
  forEveryTask(
    (world) => {
      const task = theTask(world);
      for (const request of openRequests(task)) {
        if (request.expiresAtMs !== null && request.expiresAtMs <= world.nowMs) continue;
        for (let a = 0; a < 5; a++) {
          const choice = fittingChoice(world, request, a, 1);
          const verdict = decide(
            task,
            { type: "choose", choice, principal: theTask(world).principal },
            circumstances(world),
          );
          expect(verdict).toMatchObject({ ok: true, facts: [{ type: "request-decided", requestId: request.id }] });
        }
      }
    },
    { look: true, numRuns: 150 },
  );
});

test("every open request can be closed in time: what has expired is expired by `expire`", () => {
  forEveryTask(
    (world) => {
      const task = theTask(world);
      const later = { ...circumstances(world), nowMs: world.nowMs + 2 * WAIT_MS };
      const after = advanceLog(task, isOver(task) ? [] : [{ type: "expire" }], later);
      const left = after.ok && after.task ? openRequests(after.task) : [];
      expect(after.ok && left.every(({ expiresAtMs }) => expiresAtMs === null)).toBe(true);
    },
    { look: true, numRuns: 100 },
  );
});

test("a task that is over never changes, whatever is sent", () => {
  let over = 0;
  forEveryTask((world) => {
    const task = theTask(world);
    if (!isOver(task)) return;
    over++;
    expect(openRequests(task)).toEqual([]);
    for (let i = 0; i < 60; i++) {
      const verdict = decide(
        task,
        wildCommand(world, { type: "wild", a: i, b: i * 7, c: i * 3 }),
        circumstances(world),
      );
      expect(verdict.ok ? verdict.facts : []).toEqual([]);
    }
    const rest: Command[] = [
      submit,
      { type: "cancel", principal: task.principal },
      { type: "fail", message: "", code: "" },
      { type: "reject", message: "" },
      { type: "update-artifact", artifact: {}, append: false, lastChunk: true },
    ];
    for (const command of rest) expect(decide(task, command, circumstances(world)).ok).toBe(false);
    expect(next(task, isGated, world.nowMs)).toEqual({ type: "rest" });
  });
  expect(over).toBeGreaterThan(30);
});

test("`next` runs nothing while a request is open", () => {
  forEveryTask(
    (world) => {
      const task = theTask(world);
      if (openRequests(task).length > 0) {
        expect(["rest", "expire", "settle", "cancel"]).toContain(next(task, isGated, world.nowMs).type);
      }
    },
    { look: true },
  );
});

test("`next` proposes nothing that `decide` refuses", () => {
  forEveryTask(
    (world) => {
      const task = theTask(world);
      const intent = { type: "work", a: 1, b: 1, c: 1 } as const;
      const step = next(task, isGated, world.nowMs);
      if (step.type === "rest") return;
      const commands: Command[] =
        step.type === "run" && isChanged(world, task, step.call)
          ? [{ type: "ask-again", callId: step.call.callId, draft: draftFor(world, step.call, intent) }]
          : commandsFor(world, task, step, intent);
      const result = advanceLog(task, commands, circumstances(world));
      expect(result, `${JSON.stringify(step)}\n${describeWorld(world)}`).toMatchObject({ ok: true });
      expect(result.ok && result.events.length, `${step.type} changes something`).toBeGreaterThan(0);
    },
    { look: true },
  );
});

test("no call is asked about more often than allowed, and never more requests are open than the bound", () => {
  forEveryTask(
    (world) => {
      for (const { requestIds } of Object.values(theTask(world).calls)) {
        const again = requestIds.filter((id) => {
          const request = findRequest(theTask(world), id)?.request;
          return request?.kind === "approval" && request.supersedes !== undefined;
        });
        expect(again.length).toBeLessThanOrEqual(ASK_AGAIN_MAX);
      }
      expect(openRequests(theTask(world)).length).toBeLessThanOrEqual(OPEN_REQUESTS_MAX);
    },
    { look: true, numRuns: 150 },
  );
});

test("the rows of all appends open and close each request once, and claim and end each effect once", () => {
  forEveryTask((world) => {
    const rows = world.appends.map((append) => append.rows);
    const task = theTask(world);
    expect(rows.flatMap(({ opened }) => opened.map(({ n }) => n))).toEqual(task.requests.map((_, i) => i + 1));
    const closed = rows.flatMap((row) => row.closed);
    expect(new Set(closed.map(({ n }) => n)).size).toBe(closed.length);
    expect(Object.fromEntries(closed.map(({ n, digest, outcome }) => [n, [digest, outcome]]))).toEqual(
      Object.fromEntries(
        task.requests.flatMap(({ request, decision }, i) =>
          decision ? [[i + 1, [request.digest, decision.outcome]]] : [],
        ),
      ),
    );
    for (const { n, deadline, outcome } of closed) {
      const by = task.requests[n - 1]?.decision?.by;
      expect(deadline).toBe(by === undefined ? "ahead" : by === "deadline" ? "passed" : "any");
      expect(deadline === "passed").toBe(outcome === "expired");
    }
    const effects = rows.flatMap((row) => row.effects);
    const claimed = effects.flatMap((effect) => (effect.type === "claimed" ? [effect.effectId] : []));
    expect(claimed.toSorted()).toEqual(Object.keys(task.effects).toSorted());
    const ended = effects.flatMap((effect) => (effect.type === "ended" ? [effect] : []));
    expect(new Set(ended.map(({ effectId }) => effectId)).size).toBe(ended.length);
    for (const { effectId, token, outcome } of ended) {
      expect([task.effects[effectId]?.token, task.effects[effectId]?.status.type]).toEqual([token, outcome]);
    }
    for (const { result } of Object.values(task.effects).flatMap(({ status }) =>
      "result" in status ? [status] : [],
    )) {
      if ("blob" in result)
        expect(rows.flatMap(({ blobs }) => blobs.map(({ sha256 }) => sha256))).toContain(result.blob);
    }
  });
});

test("a task wakes at once while it works, at its earliest deadline while it waits, and never when it is over", () => {
  forEveryTask((world) => {
    for (const { rows, task } of world.appends) {
      const deadlines = openRequests(task).flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]));
      const waits = openRequests(task).length > 0 && claimedEffects(task).length === 0 && !task.cancelRequestedBy;
      const paused = deadlines.length ? Math.min(...deadlines) : null;
      const expected = isOver(task) ? null : waits ? paused : task.updatedAtMs;
      expect(rows.task).toMatchObject({ wakeAtMs: expected, state: stateOf(task), updatedAtMs: task.updatedAtMs });
      expect(rows.task.createdAtMs).toBe(world.events[0]?.at);
    }
  });
});

test("no task is stranded: it is due exactly when `next` has something to do", () => {
  forEveryTask(
    (world) => {
      const wakeAt = wakeAtMs(theTask(world));
      const isDue = wakeAt !== null && wakeAt <= world.nowMs;
      expect(isDue, describeWorld(world)).toBe(next(theTask(world), isGated, world.nowMs).type !== "rest");
    },
    { look: true },
  );
});
