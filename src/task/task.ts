/** A task as its log tells it. `evolve` never refuses: what happened, happened. */
import { unreachable } from "../errors.ts";
import type { EffectResult, Message, TaskEvent, TaskKey, ToolCall, Usage } from "./event.ts";
import type { JsonObject } from "./json.ts";
import type { Decision, Digest, InDoubtAnswer, Principal, Request, RequestId } from "./request.ts";

export type EndState = "completed" | "failed" | "canceled" | "rejected";
export type TaskState = "working" | "input-required" | "auth-required" | EndState;

export interface RequestRecord {
  readonly request: Request;
  readonly openedAtMs: number;
  readonly decision?: Decision & { readonly atMs: number };
}

export interface Effect {
  readonly effectId: string;
  readonly callId: string;
  readonly attempt: number;
  readonly digest: Digest;
  readonly token: string;
  readonly requestId?: RequestId;
  readonly status:
    | { readonly type: "claimed" }
    | { readonly type: "done" | "failed"; readonly result: EffectResult }
    | { readonly type: "unknown"; readonly why: string };
}

export interface Call extends ToolCall {
  readonly turn: number;
  readonly refused?: { readonly code: string; readonly text: string };
  /** Approvals and questions of this call, oldest first; the last one governs. */
  readonly requestIds: readonly RequestId[];
  readonly effectIds: readonly string[];
}

export interface Turn {
  readonly turn: number;
  readonly text: string;
  readonly callIds: readonly string[];
  /** How many messages there were by then. */
  readonly messages: number;
  readonly usage?: Usage;
}

export interface TaskMessage {
  readonly message: Message;
  readonly principal: Principal;
  /** It was an answer, and counted as one. */
  readonly decided?: true;
}

export interface Task {
  readonly key: TaskKey;
  /** The number of events. */
  readonly version: number;
  readonly agent: string;
  readonly contextId: string;
  /** How it waits for a person, from its beginning to its end. */
  readonly mode: "async" | "blocking";
  /** Names of headers that its client wants forwarded. */
  readonly forwards?: readonly string[];
  readonly principal: Principal;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly messages: readonly TaskMessage[];
  readonly turns: readonly Turn[];
  readonly calls: Readonly<Record<string, Call>>;
  /** In the order of their counter: request n stands at n - 1. */
  readonly requests: readonly RequestRecord[];
  readonly effects: Readonly<Record<string, Effect>>;
  readonly artifacts: readonly JsonObject[];
  readonly cancelRequestedBy?: Principal;
  readonly end?: { readonly state: EndState; readonly message: string; readonly code?: string };
}

export function evolve(task: Task | undefined, event: TaskEvent, key: TaskKey): Task {
  if (event.type === "task-submitted") return submitted(event, key);
  if (!task) throw new Error(`task ${key.id}: event ${event.seq} "${event.type}" before task-submitted`);
  return { ...change(task, event), version: event.seq, updatedAtMs: event.at };
}

function submitted(event: TaskEvent & { type: "task-submitted" }, key: TaskKey): Task {
  return {
    key,
    version: event.seq,
    agent: event.agent,
    contextId: event.contextId,
    mode: event.mode ?? "async",
    ...(event.forwards ? { forwards: event.forwards } : {}),
    principal: event.principal,
    createdAtMs: event.at,
    updatedAtMs: event.at,
    messages: [{ message: event.message, principal: event.principal }],
    turns: [],
    calls: {},
    requests: [],
    effects: {},
    artifacts: [],
  };
}

function change(task: Task, event: Exclude<TaskEvent, { type: "task-submitted" }>): Task {
  switch (event.type) {
    case "message-received":
      return { ...task, messages: [...task.messages, toTaskMessage(event)] };
    case "model-replied": {
      const calls = { ...task.calls };
      for (const call of event.calls) calls[call.callId] = { ...call, turn: event.turn, requestIds: [], effectIds: [] };
      const turn: Turn = {
        turn: event.turn,
        text: event.text,
        callIds: event.calls.map(({ callId }) => callId),
        messages: task.messages.length,
        ...(event.usage ? { usage: event.usage } : {}),
      };
      return { ...task, calls, turns: [...task.turns, turn] };
    }
    case "call-refused":
      return withCall(task, event.callId, (call) => ({ ...call, refused: { code: event.code, text: event.text } }));
    case "request-opened": {
      const { request } = event;
      const opened = { ...task, requests: [...task.requests, { request, openedAtMs: event.at }] };
      if (!("callId" in request) || request.callId === undefined) return opened;
      return withCall(opened, request.callId, (call) => ({ ...call, requestIds: [...call.requestIds, request.id] }));
    }
    case "request-decided": {
      const { seq: _s, at, v: _v, path: _p, type: _t, ...decision } = event;
      return {
        ...task,
        requests: task.requests.map((record) =>
          record.request.id === decision.requestId ? { ...record, decision: { ...decision, atMs: at } } : record,
        ),
      };
    }
    case "effect-claimed": {
      const { effectId, callId, attempt, digest, token } = event;
      const effect: Effect = {
        effectId,
        callId,
        attempt,
        digest,
        token,
        ...(event.requestId ? { requestId: event.requestId } : {}),
        status: { type: "claimed" },
      };
      const claimed = { ...task, effects: { ...task.effects, [effectId]: effect } };
      return withCall(claimed, callId, (call) => ({ ...call, effectIds: [...call.effectIds, effectId] }));
    }
    case "effect-finished":
      return withEffect(task, event.effectId, { type: event.outcome, result: event.result });
    case "effect-unknown":
      return withEffect(task, event.effectId, { type: "unknown", why: event.why });
    case "artifact-updated":
      return { ...task, artifacts: [...task.artifacts, event.artifact] };
    case "cancel-requested":
      return { ...task, cancelRequestedBy: event.principal };
    case "task-completed":
      return { ...task, end: { state: "completed", message: event.message } };
    case "task-failed":
      return { ...task, end: { state: "failed", message: event.message, code: event.code } };
    case "task-canceled":
      return { ...task, end: { state: "canceled", message: event.message } };
    case "task-rejected":
      return { ...task, end: { state: "rejected", message: event.message } };
    default:
      return unreachable(event);
  }
}

function toTaskMessage({ message, principal, decided }: TaskEvent & { type: "message-received" }): TaskMessage {
  return { message, principal, ...(decided.length > 0 ? { decided: true } : {}) };
}

function withCall(task: Task, callId: string, update: (call: Call) => Call): Task {
  const call = task.calls[callId];
  return call ? { ...task, calls: { ...task.calls, [callId]: update(call) } } : task;
}

function withEffect(task: Task, effectId: string, status: Effect["status"]): Task {
  const effect = task.effects[effectId];
  return effect ? { ...task, effects: { ...task.effects, [effectId]: { ...effect, status } } } : task;
}

export function isOver(task: Task): boolean {
  return task.end !== undefined;
}

export function openRequests(task: Task): readonly Request[] {
  return task.requests.filter(({ decision }) => decision === undefined).map(({ request }) => request);
}

export function findRequest(task: Task, id: string): RequestRecord | undefined {
  return task.requests.find(({ request }) => request.id === id);
}

/** Only what is really there: an id may come from outside, and every object inherits names. */
export function findCall(task: Task, callId: string): Call | undefined {
  return Object.hasOwn(task.calls, callId) ? task.calls[callId] : undefined;
}

export function findEffect(task: Task, effectId: string): Effect | undefined {
  return Object.hasOwn(task.effects, effectId) ? task.effects[effectId] : undefined;
}

/** An effect that was claimed and has no outcome: running, or cut off by a crash. */
export function claimedEffects(task: Task): readonly Effect[] {
  return Object.values(task.effects).filter(({ status }) => status.type === "claimed");
}

/** A message that came after the model's last word belongs to its next turn. */
export function hasUnheard(task: Task): boolean {
  const last = task.turns.at(-1);
  return last !== undefined && task.messages.length > last.messages;
}

/** Failed > auth-required > input-required > working. */
export function stateOf(task: Task): TaskState {
  if (task.end) return task.end.state;
  const open = openRequests(task);
  if (open.some(({ kind }) => kind === "auth")) return "auth-required";
  return open.length > 0 ? "input-required" : "working";
}

/**
 * Where one call stands. `asked` waits for a person, `allowed` may be claimed, `settled` has its result for the
 * model, and `doubtful` was cut off and nobody has said yet what became of it.
 */
export type CallStatus =
  | { readonly type: "new" }
  | { readonly type: "asked"; readonly request: Request }
  | { readonly type: "allowed"; readonly digest: Digest; readonly args: JsonObject; readonly requestId: RequestId }
  | { readonly type: "claimed"; readonly effect: Effect }
  | { readonly type: "doubtful"; readonly effect: Effect }
  | { readonly type: "settled"; readonly how: Settled };

export type Settled =
  | { readonly type: "refused"; readonly code: string; readonly text: string }
  | { readonly type: "ran"; readonly effect: Effect }
  | { readonly type: "answered"; readonly decision: Decision }
  /** It was cut off, and whoever was asked would not say. */
  | { readonly type: "unknown"; readonly decision: Decision }
  | { readonly type: "not-run"; readonly decision: Decision };

export function callStatus(task: Task, call: Call): CallStatus {
  const lastRequestId = call.requestIds.at(-1);
  const record = lastRequestId ? findRequest(task, lastRequestId) : undefined;
  const lastEffectId = call.effectIds.at(-1);
  const effect = lastEffectId ? task.effects[lastEffectId] : undefined;

  if (call.refused) return { type: "settled", how: { type: "refused", ...call.refused } };
  // What was opened after the last effect governs: the in-doubt question about it, or asking again.
  if (effect && effect.requestId === lastRequestId) {
    if (effect.status.type === "claimed") return { type: "claimed", effect };
    if (effect.status.type === "unknown") return { type: "doubtful", effect };
    return { type: "settled", how: { type: "ran", effect } };
  }
  if (!record) return { type: "new" };
  const { request, decision } = record;
  if (!decision) return { type: "asked", request };
  switch (decision.outcome) {
    case "approved":
      return allowed(request, decision);
    case "answered":
      if (request.kind === "in-doubt" && inDoubtAnswer(decision) === "retry") return allowed(request, decision);
      return { type: "settled", how: { type: "answered", decision } };
    case "denied":
    case "expired":
    case "canceled":
      return { type: "settled", how: { type: request.kind === "in-doubt" ? "unknown" : "not-run", decision } };
    case "superseded":
      // Asked again in the same append; without a successor nothing was decided.
      return { type: "new" };
    default:
      return unreachable(decision.outcome);
  }
}

/** What a call runs with: what its governing request showed, or what a person put in its place. */
export function argsOf(task: Task, call: Call): JsonObject {
  const lastRequestId = call.requestIds.at(-1);
  const record = lastRequestId && findRequest(task, lastRequestId);
  if (!record || !("args" in record.request)) return call.args;
  return record.decision?.editedArgs ?? record.request.args;
}

/** Whether nobody knows what became of its last effect. Who asked for a retry did not say either. */
export function isDoubtful(task: Task, call: Call): boolean {
  const lastEffectId = call.effectIds.at(-1);
  if (!lastEffectId || findEffect(task, lastEffectId)?.status.type !== "unknown") return false;
  const status = callStatus(task, call);
  return status.type !== "settled" || status.how.type !== "answered";
}

export function inDoubtAnswer(decision: Decision): InDoubtAnswer | undefined {
  const answer = decision.values?.outcome;
  return answer === "done" || answer === "failed" || answer === "retry" ? answer : undefined;
}

function allowed(request: Request, decision: Decision): CallStatus {
  if (request.kind !== "approval" && request.kind !== "in-doubt")
    return { type: "settled", how: { type: "answered", decision } };
  return {
    type: "allowed",
    requestId: request.id,
    digest: decision.effectDigest ?? request.digest,
    args: decision.editedArgs ?? request.args,
  };
}
