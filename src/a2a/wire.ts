/** A2A 1.0 objects as they stand on the wire (ProtoJSON of `lf.a2a.v1`): only what we write. Read with the SDK's codecs. */
import type { Json, JsonObject } from "../task/json.ts";
import type { TaskState } from "../task/task.ts";

/** Exactly one of text, data, raw (base64) and url, which the log keeps as it came. */
export type WirePart = JsonObject;

export interface WireMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: "ROLE_USER" | "ROLE_AGENT";
  readonly parts: readonly WirePart[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  readonly referenceTaskIds?: readonly string[];
}

export const WIRE_STATES = {
  working: "TASK_STATE_WORKING",
  "input-required": "TASK_STATE_INPUT_REQUIRED",
  "auth-required": "TASK_STATE_AUTH_REQUIRED",
  completed: "TASK_STATE_COMPLETED",
  failed: "TASK_STATE_FAILED",
  canceled: "TASK_STATE_CANCELED",
  rejected: "TASK_STATE_REJECTED",
} as const satisfies Record<TaskState, string>;

export type WireState = (typeof WIRE_STATES)[TaskState];

export interface WireStatus {
  readonly state: WireState;
  readonly message?: WireMessage;
  readonly timestamp: string;
}

export interface WireArtifact {
  readonly artifactId: string;
  readonly parts: readonly WirePart[];
  readonly [field: string]: Json;
}

export interface WireTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: WireStatus;
  readonly artifacts?: readonly WireArtifact[];
  readonly history?: readonly WireMessage[];
  readonly metadata?: JsonObject;
}

/** One item of a stream. */
export type WireUpdate =
  | { readonly task: WireTask }
  | { readonly statusUpdate: { readonly taskId: string; readonly contextId: string; readonly status: WireStatus } }
  | {
      readonly artifactUpdate: {
        readonly taskId: string;
        readonly contextId: string;
        readonly artifact: WireArtifact;
        readonly append: boolean;
        readonly lastChunk: boolean;
      };
    };

/** An item with its place in the log: the event that it tells, and which of that event's items it is. */
export interface Frame {
  readonly id: `${number}-${number}`;
  readonly update: WireUpdate;
  /** The task waits for a person from here on, or is over. */
  readonly rests: boolean;
}
