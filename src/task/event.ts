/** The facts a task is made of. Written once, never changed; an unknown type or version is left to newer nodes. */
import { HoldpointError } from "../errors.ts";
import { isObject, type Json, type JsonObject } from "./json.ts";
import type { Decision, Digest, Principal, Request, RequestId } from "./request.ts";

export const EVENT_VERSION = 1;

export interface TaskKey {
  readonly tenant: string;
  readonly id: string;
}

/** A key as one string, for maps. */
export function nameOf({ tenant, id }: TaskKey): string {
  return `${tenant}\n${id}`;
}

export interface Message {
  readonly messageId: string;
  readonly role: "user" | "agent";
  /** As A2A 1.0 writes them: `{text}`, `{data}`, `{raw}`, `{url}`. */
  readonly parts: readonly JsonObject[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  readonly referenceTaskIds?: readonly string[];
}

/** What the model wants to do. The id is ours; the model's own is kept beside it. */
export interface ToolCall {
  readonly callId: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly modelCallId?: string;
}

export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** A result over the limit stands as a blob beside the log, with its beginning here. */
export type EffectResult =
  | { readonly value: Json }
  | { readonly blob: string; readonly bytes: number; readonly head: string };

export type Fact =
  | {
      readonly type: "task-submitted";
      readonly agent: string;
      readonly contextId: string;
      readonly tenant: string;
      readonly principal: Principal;
      readonly message: Message;
      /** Its worker waits in its slot for the answers; if that is lost, so is the task. Absent: it is put away. */
      readonly mode?: "blocking";
      /** Names of headers that the client wants forwarded; their values are in the memory of its server only. */
      readonly forwards?: readonly string[];
    }
  | {
      readonly type: "message-received";
      readonly message: Message;
      readonly principal: Principal;
      readonly decided: readonly RequestId[];
    }
  | {
      readonly type: "model-replied";
      readonly turn: number;
      readonly text: string;
      readonly calls: readonly ToolCall[];
      readonly usage?: Usage;
    }
  | { readonly type: "call-refused"; readonly callId: string; readonly code: string; readonly text: string }
  | { readonly type: "request-opened"; readonly request: Request }
  | ({ readonly type: "request-decided" } & Decision)
  | {
      readonly type: "effect-claimed";
      readonly effectId: string;
      readonly callId: string;
      readonly attempt: number;
      readonly digest: Digest;
      readonly token: string;
      /** The request whose decision allows it; absent when the tool's rule asks nobody. */
      readonly requestId?: RequestId;
    }
  | {
      readonly type: "effect-finished";
      readonly effectId: string;
      readonly outcome: "done" | "failed";
      readonly result: EffectResult;
    }
  | { readonly type: "effect-unknown"; readonly effectId: string; readonly why: string }
  | {
      readonly type: "artifact-updated";
      readonly artifact: JsonObject;
      readonly append: boolean;
      readonly lastChunk: boolean;
    }
  | { readonly type: "cancel-requested"; readonly principal: Principal }
  | { readonly type: "task-completed"; readonly message: string }
  | { readonly type: "task-failed"; readonly message: string; readonly code: string }
  | { readonly type: "task-canceled"; readonly message: string }
  | { readonly type: "task-rejected"; readonly message: string };

export type FactType = Fact["type"];

export interface Envelope {
  readonly seq: number;
  /** Milliseconds by the store's clock. */
  readonly at: number;
  readonly v: typeof EVENT_VERSION;
  /** The agents that did it, root first. */
  readonly path: readonly string[];
}

export type TaskEvent = Fact & Envelope;

const KNOWN: ReadonlySet<string> = new Set<FactType>([
  "task-submitted",
  "message-received",
  "model-replied",
  "call-refused",
  "request-opened",
  "request-decided",
  "effect-claimed",
  "effect-finished",
  "effect-unknown",
  "artifact-updated",
  "cancel-requested",
  "task-completed",
  "task-failed",
  "task-canceled",
  "task-rejected",
]);

/** The stored text of an event; `seq` and `at` are columns of their own. */
export function encodeEvent(event: TaskEvent): string {
  const { seq: _seq, at: _at, ...body } = event;
  return JSON.stringify(body);
}

export function decodeEvent(key: TaskKey, seq: number, at: number, body: string): TaskEvent {
  const parsed = parseBody(key, seq, body);
  if (parsed.v !== EVENT_VERSION || !KNOWN.has(parsed.type)) {
    throw new HoldpointError(
      "log-unreadable",
      `task ${key.id}, event ${seq}: type "${parsed.type}" version ${parsed.v} was written by a newer Holdpoint; upgrade this node`,
    );
  }
  return { ...parsed, seq, at };
}

function parseBody(key: TaskKey, seq: number, body: string): TaskEvent {
  try {
    const parsed: unknown = JSON.parse(body);
    if (isObject(parsed)) return parsed as unknown as TaskEvent;
    throw new Error("not an object");
  } catch (cause) {
    const text = `task ${key.id}, event ${seq}: its text is damaged; run "holdpoint audit verify"`;
    throw new HoldpointError("log-unreadable", text, { cause });
  }
}
