/** Views of random stories: whoever reads however, sees the same. */
import { Task as SdkTask, StreamResponse } from "@a2a-js/sdk";
import fc from "fast-check";
import { expect, test } from "vitest";
import { a2aInput } from "../dialects/a2a-input.ts";
import type { Command } from "../task/command.ts";
import type { TaskEvent } from "../task/event.ts";
import { advanceLog, replay } from "../task/log.ts";
import type { RequestDraft } from "../task/request.ts";
import { openRequests, type Task } from "../task/task.ts";
import { encodeLegacyTask } from "./legacy.ts";
import { encodeProtoTask } from "./legacy-proto.ts";
import { projectEvents } from "./project-events.ts";
import { projectTask } from "./project-task.ts";
import type { Frame } from "./wire.ts";

const key = { tenant: "default", id: "T" };
const people = ["ana", "ben"].map((name) => ({ name, issuer: "tokens", tenant: "default", via: "api" }));
const speech = { dialect: a2aInput, extensions: [] };
const facts = (version: number) => ({
  identity: `tool@${version}`,
  schemaHash: "s",
  policyVersion: "p",
  plan: { version },
});

interface Step {
  readonly a: number;
  readonly b: number;
}

const approval = (callId: string, expiresAtMs: number | null, version = 1): RequestDraft & { kind: "approval" } => ({
  kind: "approval",
  callId,
  tool: "tool",
  args: {},
  facts: facts(version),
  editable: true,
  title: "tool",
  prompt: `Run ${callId}?`,
  risk: "low",
  expiresAtMs,
  onTimeout: expiresAtMs !== null && expiresAtMs % 2 ? "fail" : "deny",
});

/** Everything that may happen to a task now; what is refused does not happen. */
function commandsFor(task: Task, { a, b }: Step, nowMs: number): Command[] {
  const principal = people[a % 2] ?? people[0];
  if (!principal) throw new Error("nobody");
  const calls = Object.values(task.calls);
  const call = calls[b % Math.max(1, calls.length)];
  const open = openRequests(task);
  const request = open[b % Math.max(1, open.length)];
  const turn = task.turns.length + 1;
  const message = { messageId: `m${task.version}`, role: "user" as const, parts: [{ text: "hello" }] };
  const wanted = Array.from({ length: (b % 3) + 1 }, () => ({ tool: "tool", args: {} }));
  const choices = open.slice(0, (b % 3) + 1).map(({ id }) => ({ requestId: id, choice: "approve" as const }));
  const all: Command[][] = [
    [{ type: "reply", turn, text: "I want it.", calls: wanted }],
    [
      {
        type: "open",
        drafts: calls
          .filter(({ requestIds, refused }) => requestIds.length === 0 && !refused)
          .map(({ callId }, i) => approval(callId, b % 2 ? nowMs + 5 + ((a + i) % 4) : null)),
      },
    ],
    request
      ? [{ type: "choose", choice: { requestId: request.id, choice: a % 3 ? "approve" : "deny" }, principal }]
      : [],
    [{ type: "receive", message, principal, choices: a % 2 ? choices : [] }],
    call ? [{ type: "claim", callId: call.callId, token: "t", gated: true, facts: facts(1), mayRetry: false }] : [],
    call
      ? [
          {
            type: "finish",
            effectId: call.effectIds.at(-1) ?? "",
            token: "t",
            outcome: b % 2 ? "done" : "failed",
            result: b,
          },
        ]
      : [],
    call ? [{ type: "ask-again", callId: call.callId, draft: approval(call.callId, null, 2 + (b % 3)) }] : [],
    call ? [{ type: "refuse-call", callId: call.callId, code: "x", text: "no" }] : [],
    [{ type: "expire" }],
    [
      {
        type: "update-artifact",
        artifact: { artifactId: `f${b % 2}`, parts: [{ text: "p" }] },
        append: a % 2 === 0,
        lastChunk: false,
      },
    ],
    a % 5 ? [] : [{ type: "cancel", principal }],
    a % 5 ? [] : [{ type: "complete", message: "Done." }],
    a % 7 ? [] : [{ type: "fail", message: "broken", code: "x" }],
  ];
  return all[a % all.length] ?? [];
}

/** The appends of a story, in order. */
const anyStory = fc
  .array(fc.record({ a: fc.nat(1000), b: fc.nat(1000) }), { minLength: 5, maxLength: 60 })
  .map((steps) => {
    const [ana] = people;
    if (!ana) throw new Error("nobody");
    const message = { messageId: "m", role: "user" as const, parts: [{ text: "go" }] };
    const submit: Command = { type: "submit", agent: "agent", contextId: "C", principal: ana, message };
    const first = advanceLog(undefined, [submit], { key, nowMs: 1, epoch: "e" });
    if (!first.ok || !first.task) throw new Error("not submitted");
    const appends: (readonly TaskEvent[])[] = [first.events];
    let task = first.task;
    for (const [i, step] of steps.entries()) {
      const nowMs = 2 + 3 * i;
      // What is refused makes room for what comes after it in the list, unless that would end the story.
      for (let k = 0; k < 8; k++) {
        const commands = commandsFor(task, { ...step, a: step.a + k }, nowMs);
        if (k > 0 && commands.some(({ type }) => type === "cancel" || type === "complete" || type === "fail")) continue;
        const result = advanceLog(task, commands, { key, nowMs, epoch: "e" });
        if (!result.ok || !result.task || result.events.length === 0) continue;
        appends.push(result.events);
        task = result.task;
        break;
      }
    }
    return appends;
  });

function framesOf(appends: readonly (readonly TaskEvent[])[], cuts: readonly boolean[]): readonly Frame[] {
  const [first = [], ...rest] = appends;
  let task = replay(key, first);
  if (!task) throw new Error("no task");
  const frames: Frame[] = [];
  let batch: TaskEvent[] = [];
  for (const [i, events] of rest.entries()) {
    batch.push(...events);
    if (!cuts[i] && i < rest.length - 1) continue;
    const projected = projectEvents(task, batch, speech);
    frames.push(...projected.frames);
    task = projected.task;
    batch = [];
  }
  return frames;
}

test("frames are the same however the log is read, in order, each once", () => {
  let paused = 0;
  fc.assert(
    fc.property(anyStory, fc.array(fc.boolean(), { minLength: 60, maxLength: 60 }), (appends, cuts) => {
      const whole = framesOf(appends, []);
      expect(framesOf(appends, cuts)).toEqual(whole);
      const places = whole.map(({ id }) => Number(id.split("-")[0]));
      expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
      paused += whole.filter(({ rests }) => rests).length;
    }),
    { numRuns: 300 },
  );
  // A generator that never pauses would prove nothing.
  expect(paused).toBeGreaterThan(300);
});

test("a status that tells of requests is one that the task really had: never the half of an append", () => {
  let told = 0;
  fc.assert(
    fc.property(anyStory, (appends) => {
      const frames = framesOf(appends, []);
      let task: Task | undefined;
      for (const events of appends) {
        task = replay(key, events, task);
        if (!task) throw new Error("no task");
        const open = openRequests(task).map(({ id }) => id);
        for (const { seq, type } of events) {
          if (type !== "request-opened" && type !== "request-decided") continue;
          const update = frames.find(({ id }) => id === `${seq}-1`)?.update;
          if (!update || !("statusUpdate" in update)) continue;
          const shown = (update.statusUpdate.status.message?.parts ?? []).flatMap(({ data }) =>
            data ? [(data as { requestId?: string }).requestId] : [],
          );
          expect([task.end, shown]).toEqual([undefined, open]);
          told++;
        }
      }
    }),
    { numRuns: 300 },
  );
  expect(told).toBeGreaterThan(300);
});

test("the last status that a stream told is the status of the task; nothing follows the end", () => {
  fc.assert(
    fc.property(anyStory, (appends) => {
      const events = appends.flat();
      const task = replay(key, events);
      if (!task) throw new Error("no task");
      const shown = projectTask(task, events, { speech });
      const statuses = framesOf(appends, []).flatMap(({ update }) =>
        "statusUpdate" in update ? [update.statusUpdate.status] : [],
      );
      const last = statuses.at(-1);
      if (last) expect(last.state).toBe(shown.status.state);
      if (last && openRequests(task).length > 0) expect(last.message).toEqual(shown.status.message);
      const terminal = statuses.findIndex(({ state }) => /COMPLETED|FAILED|CANCELED|REJECTED/.test(state));
      if (terminal >= 0) expect(terminal).toBe(statuses.length - 1);
    }),
    { numRuns: 300 },
  );
});

test("history has every message, every request and every decision once, under ids of their own", () => {
  fc.assert(
    fc.property(anyStory, (appends) => {
      const events = appends.flat();
      const task = replay(key, events);
      if (!task) throw new Error("no task");
      const { history = [] } = projectTask(task, events, { speech });
      const ids = history.map(({ messageId }) => messageId);
      expect(new Set(ids).size).toBe(ids.length);
      const data = history.flatMap(({ parts }) =>
        parts.flatMap(({ data: part }) => (part ? [part as { type?: string; requestId?: string }] : [])),
      );
      const asked = data.filter(({ type }) => type === "a2a.input.request").map(({ requestId }) => requestId);
      expect(asked).toEqual(task.requests.map(({ request }) => request.id));
      const brought = events.flatMap((event) => (event.type === "message-received" ? event.decided : []));
      const decided = data.filter(({ type }) => type === "a2a.input.response").map(({ requestId }) => requestId);
      const closed = task.requests.filter(({ decision }) => decision).map(({ request }) => request.id);
      expect([...decided, ...brought].sort()).toEqual([...closed].sort());
      expect(ids.filter((id) => task.messages.some(({ message }) => message.messageId === id))).toHaveLength(
        task.messages.length,
      );
      expect(projectTask(task, events, { speech, historyLength: 2 }).history ?? []).toEqual(history.slice(-2));
    }),
    { numRuns: 300 },
  );
});

test("what is shown is what the SDK reads, and nothing of it is lost", () => {
  fc.assert(
    fc.property(anyStory, (appends) => {
      const events = appends.flat();
      const task = replay(key, events);
      if (!task) throw new Error("no task");
      const shown = projectTask(task, events, { speech });
      expect(SdkTask.toJSON(SdkTask.fromJSON(shown))).toEqual(shown);
      for (const { update } of framesOf(appends, [])) {
        const read = StreamResponse.toJSON(StreamResponse.fromJSON(update)) as typeof update;
        if ("statusUpdate" in update) expect(read).toEqual(update);
      }
      expect(encodeLegacyTask(shown)).toMatchObject({ kind: "task", id: "T", contextId: "C" });
      expect(encodeProtoTask(shown)).toMatchObject({ id: "T", contextId: "C" });
    }),
    { numRuns: 100 },
  );
});
