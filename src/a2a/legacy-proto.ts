/**
 * A2A 0.3 over HTTP+JSON: the ProtoJSON of 0.3's own protobuf, which is neither the JSON of its JSON-RPC nor that of 1.0
 * (`content` for parts, data within data, CANCELLED with two L).
 */
import { isObject, type Json, type JsonObject } from "../task/json.ts";
import type { WireMessage, WirePart, WireStatus, WireTask, WireUpdate } from "./wire.ts";

export function encodeProtoTask(task: WireTask): JsonObject {
  const { id, contextId, status, artifacts, history, metadata } = task;
  return {
    id,
    contextId,
    status: encodeStatus(status),
    ...(artifacts ? { artifacts: artifacts.map(encodeArtifact) } : {}),
    ...(history ? { history: history.map(encodeMessage) } : {}),
    ...(metadata ? { metadata } : {}),
  };
}

/** `isLast`: the stream closes after it. */
export function encodeProtoUpdate(update: WireUpdate, isLast: boolean): JsonObject {
  if ("task" in update) return { task: encodeProtoTask(update.task) };
  if ("statusUpdate" in update) {
    const { taskId, contextId, status } = update.statusUpdate;
    return { statusUpdate: { taskId, contextId, status: encodeStatus(status), final: isLast } };
  }
  const { artifact, ...rest } = update.artifactUpdate;
  return { artifactUpdate: { ...rest, artifact: encodeArtifact(artifact) } };
}

function encodeStatus({ state, message, timestamp }: WireStatus): JsonObject {
  const spelled = state === "TASK_STATE_CANCELED" ? "TASK_STATE_CANCELLED" : state;
  return { state: spelled, ...(message ? { message: encodeMessage(message) } : {}), timestamp };
}

function encodeMessage({ messageId, contextId, taskId, role, parts, metadata, extensions }: WireMessage): JsonObject {
  return {
    messageId,
    contextId,
    taskId,
    role,
    content: parts.map(encodePart),
    ...(metadata ? { metadata } : {}),
    ...(extensions ? { extensions } : {}),
  };
}

function encodeArtifact({ parts, ...rest }: { readonly parts: readonly WirePart[] }): JsonObject {
  return { ...rest, parts: parts.map(encodePart) };
}

function encodePart({ text, data, raw, url, mediaType, metadata }: WirePart): JsonObject {
  const about = metadata === undefined ? {} : { metadata };
  if (text !== undefined) return { text, ...about };
  if (raw === undefined && url === undefined) {
    return { data: { data: isObject(data) ? (data as JsonObject) : { value: data ?? null } }, ...about };
  }
  const content = raw === undefined ? { fileWithUri: url ?? "" } : { fileWithBytes: raw };
  return { file: { ...content, ...(mediaType === undefined ? {} : { mimeType: mediaType }) }, ...about };
}

/** A message of such a client as 1.0 writes it. What is wrong with it stays wrong. */
export function decodeProtoMessage(message: Json): Json {
  if (!isObject(message)) return message;
  const { content, ...rest } = message as JsonObject;
  return { ...rest, parts: Array.isArray(content) ? content.map(decodePart) : (content ?? null) };
}

function decodePart(part: Json): Json {
  if (!isObject(part)) return part;
  const { text, file, data, metadata } = part as JsonObject;
  const about = metadata === undefined ? {} : { metadata };
  if (isObject(file)) {
    const { mimeType, mime_type, fileWithUri, file_with_uri, fileWithBytes, file_with_bytes } = file as JsonObject;
    const bytes = fileWithBytes ?? file_with_bytes;
    const type = mimeType ?? mime_type;
    return {
      ...(bytes === undefined ? { url: fileWithUri ?? file_with_uri ?? null } : { raw: bytes }),
      ...(type === undefined ? {} : { mediaType: type }),
      ...about,
    };
  }
  if (isObject(data)) return { data: (data as JsonObject).data ?? null, mediaType: "application/json", ...about };
  return { ...(text === undefined ? {} : { text }), ...about };
}
