/**
 * Is this history right? Joins the logs, the rows, the effect ledger and what clients were told, and names every
 * invariant that is broken (numbers as in docs/invariants.md). Works on simulated and on real histories.
 */

import { sha256 } from "../task/digest.ts";
import type { TaskEvent, TaskKey } from "../task/event.ts";
import { canonicalJson, isObject } from "../task/json.ts";
import { replay } from "../task/log.ts";
import { type Outcome, parseRequestId, type Request } from "../task/request.ts";
import {
  argsOf,
  callStatus,
  findRequest,
  isOver,
  openRequests,
  stateOf,
  type Task,
  type TaskState,
} from "../task/task.ts";
import type { LedgerEntry } from "./ledger.ts";

export interface TaskHistory {
  readonly key: TaskKey;
  readonly events: readonly TaskEvent[];
  /** What the store's own rows say, beside the log. */
  readonly rowState?: TaskState;
  readonly requestRows: readonly ("open" | Outcome | undefined)[];
}

/** What a client was told in so many words; whatever it was not told is open. */
export type Ack =
  | { readonly type: "submitted"; readonly taskId: string; readonly messageId: string }
  | { readonly type: "decided"; readonly requestId: string; readonly outcome: Outcome; readonly by: string };

export interface ToolRule {
  readonly gated: boolean;
  readonly mayRetry: boolean;
  /** It looks at the world instead of its own memory: it may find done what it never did, or leave undone what is done. */
  readonly settles?: boolean;
}

export interface History {
  readonly tasks: readonly TaskHistory[];
  readonly ledger: readonly LedgerEntry[];
  readonly acks: readonly Ack[];
  readonly toolRules: ReadonlyMap<string, ToolRule>;
  /** Everything was given the time to end. */
  readonly settled: boolean;
}

export function checkHistory(history: History): string[] {
  const violations: string[] = [];
  const ids = new Set<string>();
  const firstMessages = new Map<string, string>();
  for (const task of history.tasks) {
    const say = (invariant: string, text: string) => violations.push(`${invariant} task ${task.key.id}: ${text}`);
    checkLog(task, say);
    checkRequests(task, say, ids);
    checkEffects(task, history, say);
    checkRows(task, history.settled, say);
    const [first] = task.events;
    if (first?.type === "task-submitted") {
      const name = canonicalJson([first.principal.issuer, first.principal.name, first.message.messageId]);
      if (firstMessages.has(name))
        say("I9", `message ${first.message.messageId} also started ${firstMessages.get(name)}`);
      firstMessages.set(name, task.key.id);
    }
  }
  violations.push(...checkAcks(history), ...checkStrays(history));
  return violations;
}

type Say = (invariant: string, text: string) => void;

const ENDS: ReadonlySet<string> = new Set(["task-completed", "task-failed", "task-canceled", "task-rejected"]);

function checkLog({ events }: TaskHistory, say: Say): void {
  let ended = false;
  let at = 0;
  for (const [i, event] of events.entries()) {
    if (event.seq !== i + 1) say("I29", `event ${i + 1} has seq ${event.seq}`);
    if ((event.type === "task-submitted") !== (i === 0)) say("I1", `event ${event.seq} is ${event.type}`);
    if (ended) say("I2", `event ${event.seq} (${event.type}) after the end`);
    if (event.at < at) say("I19", `event ${event.seq} is older than the one before it`);
    ended ||= ENDS.has(event.type);
    at = event.at;
  }
}

function checkRequests({ key, events }: TaskHistory, say: Say, ids: Set<string>): void {
  const open = new Map<string, Request>();
  let counter = 0;
  for (const event of events) {
    if (event.type === "request-opened") {
      const { id } = event.request;
      counter++;
      if (ids.has(id)) say("I6", `request ${id} opened twice`);
      ids.add(id);
      const parsed = parseRequestId(id);
      if (parsed?.taskId !== key.id || parsed.n !== counter) say("I6", `request ${id} is not number ${counter}`);
      open.set(id, event.request);
    }
    if (event.type === "request-decided") {
      const request = open.get(event.requestId);
      if (!request) {
        say("I7", `${event.requestId} was decided when it was not open`);
        continue;
      }
      open.delete(event.requestId);
      if (event.digest !== request.digest) say("I10", `${request.id} was decided with another digest`);
      const { expiresAtMs } = request;
      if (event.by === undefined && expiresAtMs !== null && event.at >= expiresAtMs) {
        say("I14", `${request.id} was ${event.outcome} after its deadline`);
      }
      if (event.outcome === "expired" && (expiresAtMs === null || event.at < expiresAtMs)) {
        say("I19", `${request.id} expired before its deadline`);
      }
      if (event.by === "deadline" && event.outcome !== "expired")
        say("I20", `${request.id} was ${event.outcome} by its deadline`);
    }
    if (ENDS.has(event.type) && open.size > 0) say("I11", `ended with ${[...open.keys()].join(", ")} open`);
  }
}

/** The claims of a log, each under the decision that allowed it; then the ledger against the claims. */
function checkEffects({ key, events }: TaskHistory, history: History, say: Say): void {
  let task: Task | undefined;
  const allowedArgs = new Map<string, string>();
  const claims = new Map<string, number>();
  for (const event of events) {
    if (event.type === "effect-claimed" && task) {
      const call = task.calls[event.callId];
      const rule = call && history.toolRules.get(call.tool);
      if (!call) {
        say("I12", `effect ${event.effectId} of an unknown call`);
        continue;
      }
      const status = callStatus(task, call);
      const name = event.requestId ?? `${key.id}-${call.callId}`;
      if (status.type === "allowed") {
        if (status.requestId !== event.requestId || status.digest !== event.digest) {
          say("I12", `effect ${event.effectId} was claimed under another decision than the one that allows it`);
        }
      } else if (status.type === "new") {
        if (call.requestIds.length > 0 || rule?.gated !== false) say("I12", `effect ${event.effectId} ran unasked`);
      } else if (status.type !== "doubtful" || !rule?.mayRetry) {
        say("I13", `effect ${event.effectId} was claimed while its call was ${status.type}`);
      }
      if (openRequests(task).length > 0) say("I5", `effect ${event.effectId} was claimed at a pause`);
      claims.set(name, (claims.get(name) ?? 0) + 1);
      allowedArgs.set(name, sha256(canonicalJson(argsOf(task, call))));
    }
    task = replay(key, [event], task);
  }
  if (!task) return;
  const runs = new Map<string, number>();
  for (const entry of history.ledger) {
    if (!belongsTo(entry, key)) continue;
    const name = entry.idempotencyKey;
    runs.set(name, (runs.get(name) ?? 0) + 1);
    if (!claims.has(name)) say("I12", `${entry.tool} ran for ${name} without a claim`);
    else if (entry.argsHash !== allowedArgs.get(name)) say("I14", `${entry.tool} ran for ${name} with other arguments`);
    const decision = findRequest(task, name)?.decision;
    if (parseRequestId(name) && decision?.outcome !== "approved" && decision?.values?.outcome !== "retry") {
      say("I16", `${entry.tool} ran for ${name}, which is ${decision?.outcome ?? "open"}`);
    }
  }
  for (const [name, count] of runs) {
    if (count > (claims.get(name) ?? 0)) say("I13", `${count} runs for ${name}, but ${claims.get(name) ?? 0} claims`);
  }
  for (const effect of Object.values(task.effects)) {
    const name = effect.requestId ?? `${key.id}-${effect.callId}`;
    const ended = effect.status.type === "done" || effect.status.type === "failed";
    const tool = task.calls[effect.callId]?.tool ?? "";
    if (ended && !runs.has(name) && !history.toolRules.get(tool)?.settles)
      say("I17", `effect ${effect.effectId} is reported as ${effect.status.type} and never ran`);
  }
}

function belongsTo({ idempotencyKey }: LedgerEntry, key: TaskKey): boolean {
  const parsed = parseRequestId(idempotencyKey);
  return parsed ? parsed.taskId === key.id : idempotencyKey.startsWith(`${key.id}-call-`);
}

function checkRows({ key, events, rowState, requestRows }: TaskHistory, settled: boolean, say: Say): void {
  const task = replay(key, events);
  if (!task) return;
  if (rowState !== undefined && rowState !== stateOf(task))
    say("I4", `its row says ${rowState}, its log ${stateOf(task)}`);
  for (const [i, { request, decision }] of task.requests.entries()) {
    const row = requestRows[i];
    if (row !== (decision?.outcome ?? "open")) {
      say("I4", `the row of ${request.id} says ${row}, the log ${decision?.outcome ?? "open"}`);
    }
  }
  if (settled && !isOver(task)) say("I5", `is stuck: ${stateOf(task)} after ${events.at(-1)?.type}`);
}

function checkAcks({ acks, tasks }: History): string[] {
  const violations: string[] = [];
  for (const ack of acks) {
    if (ack.type === "submitted") {
      const task = tasks.find(({ key }) => key.id === ack.taskId);
      const known = task?.events.some((event) => "message" in event && isMessage(event.message, ack.messageId));
      if (!known) violations.push(`I8 task ${ack.taskId}: was acknowledged and is lost`);
      continue;
    }
    const id = parseRequestId(ack.requestId)?.taskId;
    const decided = tasks
      .find(({ key }) => key.id === id)
      ?.events.find((event) => event.type === "request-decided" && event.requestId === ack.requestId);
    if (decided?.type !== "request-decided")
      violations.push(`I8 ${ack.requestId}: its decision was acknowledged and is lost`);
    else if (decided.outcome !== ack.outcome || decided.principal.name !== ack.by) {
      violations.push(
        `I7 ${ack.requestId}: ${ack.by} was told "${ack.outcome}", the log says ${decided.outcome} by ${decided.principal.name}`,
      );
    }
  }
  return violations;
}

function isMessage(message: unknown, id: string): boolean {
  return isObject(message) && message.messageId === id;
}

/** Nothing may run for a task that nobody knows. */
function checkStrays({ ledger, tasks }: History): string[] {
  return ledger
    .filter((entry) => !tasks.some(({ key }) => belongsTo(entry, key)))
    .map(({ tool, idempotencyKey }) => `I12 ${tool} ran for ${idempotencyKey}, which belongs to no task`);
}
