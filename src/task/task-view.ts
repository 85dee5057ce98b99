/** What is shown of a task: where it stands, what was said, and its log in words. Derived from the log, never kept. */
import { unreachable } from "../errors.ts";
import type { FactType, Message, TaskEvent } from "./event.ts";
import type { JsonObject } from "./json.ts";
import type { Request } from "./request.ts";
import { describeDecision, projectDecision, projectRequest, type RequestView, toIso } from "./request-view.ts";
import { type EndState, findCall, findEffect, findRequest, stateOf, type Task, type TaskState } from "./task.ts";

export interface TaskView {
  readonly id: string;
  readonly agent: string;
  readonly contextId: string;
  readonly state: TaskState;
  /** The number of its events. */
  readonly version: number;
  /** Who started it. */
  readonly by: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly messages: readonly MessageView[];
  readonly timeline: readonly TimelineEntry[];
  readonly requests: readonly RequestView[];
  readonly artifacts: readonly JsonObject[];
  readonly result?: TaskResult;
}

export interface TaskResult {
  readonly state: EndState;
  readonly message: string;
  readonly code?: string;
}

export interface MessageView {
  readonly role: "user" | "agent";
  readonly by: string;
  readonly at: string;
  readonly text: string;
  readonly parts?: readonly JsonObject[];
}

/** One event in words. `text` is ours; `says` is what a person or the agent said, in their words. */
export interface TimelineEntry {
  readonly seq: number;
  readonly at: string;
  readonly type: FactType;
  readonly text: string;
  readonly says?: string;
  readonly turn?: number;
  readonly tool?: string;
  readonly requestId?: string;
}

/** What was appended after a version that the reader knows. */
export interface TaskChange {
  readonly version: number;
  readonly state: TaskState;
  readonly timeline: readonly TimelineEntry[];
  /** All that are open now. */
  readonly open: readonly RequestView[];
  readonly result?: TaskResult;
}

/** `events` is the whole log of `task`. */
export function projectTask(task: Task, events: readonly TaskEvent[]): TaskView {
  return {
    id: task.key.id,
    agent: task.agent,
    contextId: task.contextId,
    state: stateOf(task),
    version: task.version,
    by: task.principal.name,
    createdAt: toIso(task.createdAtMs),
    updatedAt: toIso(task.updatedAtMs),
    messages: events.flatMap((event) => projectMessage(task, event)),
    timeline: projectTimeline(task, events),
    requests: task.requests.map((record) => projectRequest(task, record)),
    artifacts: task.artifacts,
    ...(task.end ? { result: task.end } : {}),
  };
}

/** `events` are those that the reader does not know yet. */
export function projectChange(task: Task, events: readonly TaskEvent[]): TaskChange {
  return {
    version: task.version,
    state: stateOf(task),
    timeline: projectTimeline(task, events),
    open: task.requests.filter(({ decision }) => !decision).map((record) => projectRequest(task, record)),
    ...(task.end ? { result: task.end } : {}),
  };
}

function projectTimeline(task: Task, events: readonly TaskEvent[]): TimelineEntry[] {
  return events.map((event) => ({
    seq: event.seq,
    at: toIso(event.at),
    type: event.type,
    ...describeEvent(task, event),
  }));
}

type Words = Pick<TimelineEntry, "text" | "says" | "turn" | "tool" | "requestId">;

function describeEvent(task: Task, event: TaskEvent): Words {
  switch (event.type) {
    case "task-submitted":
      return { text: `${event.principal.name} asks ${event.agent}`, says: textOf(event.message) };
    case "message-received":
      return { text: `${event.principal.name} writes`, says: textOf(event.message) };
    case "model-replied": {
      const wants = event.calls.map(({ tool }) => tool).join(", ");
      return { text: wants ? `the agent wants: ${wants}` : "the agent says", says: event.text, turn: event.turn };
    }
    case "call-refused":
      return { ...aboutCall(task, event.callId, `was refused (${event.code})`), says: event.text };
    case "request-opened": {
      const { id, kind } = event.request;
      return { text: `waits for a person: ${nameOf(event.request)} (${kind})`, requestId: id };
    }
    case "request-decided": {
      const { requestId } = event;
      const { request } = findRequest(task, requestId) ?? {};
      const name = request ? nameOf(request) : requestId;
      return { text: `${name} ${describeDecision(projectDecision({ ...event, atMs: event.at }))}`, requestId };
    }
    case "effect-claimed":
      return aboutCall(task, event.callId, event.attempt > 1 ? `starts, attempt ${event.attempt}` : "starts");
    case "effect-finished":
      return aboutEffect(task, event.effectId, event.outcome);
    case "effect-unknown":
      return aboutEffect(task, event.effectId, `may have run or not: ${event.why}`);
    case "artifact-updated":
      return { text: event.append ? "an artifact grows" : "an artifact is written" };
    case "cancel-requested":
      return { text: `${event.principal.name} wants to cancel` };
    case "task-completed":
      return { text: "completed", says: event.message };
    case "task-failed":
      return { text: `failed (${event.code})`, says: event.message };
    case "task-canceled":
      return { text: "canceled", says: event.message };
    case "task-rejected":
      return { text: "rejected", says: event.message };
    default:
      return unreachable(event);
  }
}

/** The title of a question is the agent's own words, and no text of ours. */
function nameOf({ kind, title }: Request): string {
  return kind === "input" || kind === "auth" ? "a question" : title;
}

function aboutCall(task: Task, callId: string, what: string): Words {
  const tool = findCall(task, callId)?.tool ?? callId;
  return { text: `${tool} ${what}`, tool };
}

function aboutEffect(task: Task, effectId: string, what: string): Words {
  return aboutCall(task, findEffect(task, effectId)?.callId ?? effectId, what);
}

function projectMessage(task: Task, event: TaskEvent): MessageView[] {
  const at = toIso(event.at);
  if (event.type === "task-submitted" || event.type === "message-received") {
    const { message, principal } = event;
    return [{ role: message.role, by: principal.name, at, text: textOf(message), parts: message.parts }];
  }
  if (event.type !== "model-replied" || event.text === "") return [];
  return [{ role: "agent", by: task.agent, at, text: event.text }];
}

function textOf({ parts }: Message): string {
  return parts.flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join("\n");
}
