/** How `/v1/agents` writes what A2A shows: its spelling of "cancelled", bare parts, and one question at a time. */
import type { WireArtifact, WireMessage, WirePart, WireState, WireStatus, WireTask, WireUpdate } from "../a2a/wire.ts";
import { isObject, type JsonObject } from "../task/json.ts";

interface V1Status extends Omit<WireStatus, "state"> {
  readonly state: Exclude<WireState, "TASK_STATE_CANCELED"> | "TASK_STATE_CANCELLED";
}

export interface V1Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: V1Status;
  readonly history: readonly WireMessage[];
  readonly artifacts: readonly WireArtifact[];
  readonly metadata?: JsonObject;
}

export function encodeTask({ id, contextId, status, history = [], artifacts = [], metadata }: WireTask): V1Task {
  return {
    id,
    contextId,
    status: encodeStatus(status),
    history: history.map(encodeMessage),
    artifacts: artifacts.map((artifact) => ({ ...artifact, parts: artifact.parts.map(encodePart) })),
    ...(metadata ? { metadata } : {}),
  };
}

/** The name and the data of a server-sent event. */
export function encodeUpdate(update: WireUpdate): readonly [event: string, data: object] {
  if ("task" in update) return ["task", encodeTask(update.task)];
  if ("statusUpdate" in update) {
    const { statusUpdate } = update;
    return ["status_update", { ...statusUpdate, status: encodeStatus(statusUpdate.status) }];
  }
  const { artifact, ...rest } = update.artifactUpdate;
  return ["artifact_update", { ...rest, artifact: { ...artifact, parts: artifact.parts.map(encodePart) } }];
}

function encodeStatus({ state, message, timestamp }: WireStatus): V1Status {
  return {
    state: state === "TASK_STATE_CANCELED" ? "TASK_STATE_CANCELLED" : state,
    ...(message ? { message: encodeMessage(keepFirstQuestion(message)) } : {}),
    timestamp,
  };
}

/** Its clients answer the one question that they find; the others follow. History keeps what was asked together. */
function keepFirstQuestion(message: WireMessage): WireMessage {
  const first = message.parts.findIndex(isQuestion);
  return { ...message, parts: message.parts.filter((part, i) => i === first || !isQuestion(part)) };
}

function isQuestion({ data }: WirePart): boolean {
  return isObject(data) && "interaction_type" in data;
}

function encodeMessage(message: WireMessage): WireMessage {
  return { ...message, parts: message.parts.map(encodePart) };
}

/** Data needs no media type here. */
function encodePart(part: WirePart): WirePart {
  const { mediaType: _type, ...rest } = part;
  return "data" in part ? rest : part;
}
