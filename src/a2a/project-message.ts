/** Single messages of a task: what a person sent, what the agent said, called and asked, and what was decided. */
import type { Dialect } from "../dialects/dialect.ts";
import { encodeMetadata, encodeParts } from "../dialects/registry.ts";
import type { EffectResult, Message, TaskEvent } from "../task/event.ts";
import type { JsonObject } from "../task/json.ts";
import type { Decision, Request } from "../task/request.ts";
import { findCall, findEffect, type Task } from "../task/task.ts";
import type { WireMessage, WirePart } from "./wire.ts";

/** How requests are written for this reader: the DataParts, and what negotiated extensions want in metadata. */
export interface Speech {
  readonly dialect: Dialect;
  /** Their URIs. */
  readonly extensions: readonly string[];
}

type Place = Pick<WireMessage, "messageId" | "contextId" | "taskId">;

/** Ids are made from positions, so that every reading gives the same ones. */
function placeOf(task: Task, seq: number): Place {
  return { messageId: `${task.key.id}-${seq}`, contextId: task.contextId, taskId: task.key.id };
}

export function projectClientMessage(task: Task, { role, ...message }: Message): WireMessage {
  return {
    ...message,
    contextId: task.contextId,
    taskId: task.key.id,
    role: role === "user" ? "ROLE_USER" : "ROLE_AGENT",
  };
}

export function projectText(task: Task, seq: number, text: string): WireMessage {
  return { ...placeOf(task, seq), role: "ROLE_AGENT", parts: [{ text }] };
}

/** The text of the pause for people, then the DataParts for the requests, in their order. */
export function projectQuestion(
  task: Task,
  seq: number,
  requests: readonly Request[],
  { dialect, extensions }: Speech,
): WireMessage {
  const path = [task.agent];
  const text = requests.map(({ prompt }) => prompt).join("\n\n");
  const parts = encodeParts(dialect, requests, path).map(({ data, metadata }) => dataPart(data, metadata));
  const metadata = encodeMetadata(extensions, requests, path);
  const uris = Object.keys(metadata);
  return {
    ...placeOf(task, seq),
    role: "ROLE_AGENT",
    parts: [{ text }, ...parts],
    ...(uris.length > 0 ? { metadata, extensions: uris } : {}),
  };
}

function dataPart(data: JsonObject, metadata?: JsonObject): WirePart {
  return { data, mediaType: "application/json", ...(metadata ? { metadata } : {}) };
}

/** A decision that came by no message of this task, as the message that would have brought it. */
export function projectDecided(task: Task, event: TaskEvent & { type: "request-decided" }): WireMessage {
  const { requestId, outcome, principal, digest, by } = event;
  const metadata = { outcome, by: by ?? principal.name, via: principal.via, digest };
  const data = { type: "a2a.input.response", requestId, values: valuesOf(event), metadata };
  // Nobody said it where a deadline, the task's end or a changed rule has closed it.
  const role = by === undefined ? "ROLE_USER" : "ROLE_AGENT";
  return { ...placeOf(task, event.seq), role, parts: [dataPart(data)] };
}

const WORDS = { approved: "approve", denied: "deny", canceled: "cancel" } as const;

function valuesOf({ outcome, values, reason, editedArgs }: Decision): JsonObject {
  if (outcome === "answered") return values ?? {};
  const decision = outcome === "expired" || outcome === "superseded" ? outcome : WORDS[outcome];
  return { decision, ...(reason === undefined ? {} : { reason }), ...(editedArgs ? { editedArgs } : {}) };
}

/** Calls of a turn, or the result of one; undefined for what is no message of the agent. */
export function projectToolMessage(task: Task, event: TaskEvent): WireMessage | undefined {
  const parts = partsOf(task, event);
  return parts.length > 0 ? { ...placeOf(task, event.seq), role: "ROLE_AGENT", parts } : undefined;
}

function partsOf(task: Task, event: TaskEvent): WirePart[] {
  switch (event.type) {
    case "model-replied": {
      // Without calls it is the last word, which the end of the task repeats.
      if (event.calls.length === 0) return [];
      const calls = event.calls.map(({ callId, tool, args }) => toolPart("function_call", callId, tool, { args }));
      return event.text === "" ? calls : [{ text: event.text }, ...calls];
    }
    case "call-refused":
      return [responsePart(task, event.callId, { error: event.text })];
    case "effect-finished": {
      const result = resultOf(event.result);
      return [responseOf(task, event.effectId, event.outcome === "done" ? { result } : { error: result })];
    }
    case "effect-unknown":
      return [responseOf(task, event.effectId, { unknown: event.why })];
    default:
      return [];
  }
}

function responseOf(task: Task, effectId: string, response: JsonObject): WirePart {
  return responsePart(task, findEffect(task, effectId)?.callId ?? effectId, response);
}

function responsePart(task: Task, callId: string, response: JsonObject): WirePart {
  return toolPart("function_response", callId, findCall(task, callId)?.tool ?? callId, { response });
}

function toolPart(type: string, id: string, name: string, rest: JsonObject): WirePart {
  return dataPart({ id, name, ...rest }, { kagent_type: type });
}

function resultOf(result: EffectResult) {
  return "value" in result ? result.value : { head: result.head, bytes: result.bytes };
}
