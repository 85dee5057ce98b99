/**
 * A2A 0.3 objects from and to those of 1.0. The SDK has such a layer too, but it tells `final` wrongly at a pause and
 * loses the places of frames, so this is our own.
 */
import { isObject, type Json, type JsonObject } from "../task/json.ts";
import type { WireMessage, WirePart, WireStatus, WireTask, WireUpdate } from "./wire.ts";

export function encodeLegacyTask(task: WireTask): JsonObject {
  const { id, contextId, status, artifacts, history, metadata } = task;
  return {
    kind: "task",
    id,
    contextId,
    status: encodeStatus(status),
    ...(artifacts ? { artifacts: artifacts.map(encodeArtifact) } : {}),
    ...(history ? { history: history.map(encodeLegacyMessage) } : {}),
    ...(metadata ? { metadata } : {}),
  };
}

/** `isLast`: the stream closes after it. */
export function encodeLegacyUpdate(update: WireUpdate, isLast: boolean): JsonObject {
  if ("task" in update) return encodeLegacyTask(update.task);
  if ("statusUpdate" in update) {
    const { taskId, contextId, status } = update.statusUpdate;
    return { kind: "status-update", taskId, contextId, status: encodeStatus(status), final: isLast };
  }
  const { taskId, contextId, artifact, append, lastChunk } = update.artifactUpdate;
  return { kind: "artifact-update", taskId, contextId, artifact: encodeArtifact(artifact), append, lastChunk };
}

function encodeLegacyMessage({ role, parts, extensions, referenceTaskIds, ...rest }: WireMessage): JsonObject {
  return {
    kind: "message",
    ...rest,
    role: role === "ROLE_USER" ? "user" : "agent",
    parts: parts.map(encodePart),
    ...(extensions ? { extensions } : {}),
    ...(referenceTaskIds ? { referenceTaskIds } : {}),
  };
}

function encodeStatus({ state, message, timestamp }: WireStatus): JsonObject {
  return {
    state: state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-"),
    ...(message ? { message: encodeLegacyMessage(message) } : {}),
    timestamp,
  };
}

function encodeArtifact({ parts, ...rest }: { readonly parts: readonly WirePart[] }): JsonObject {
  return { ...rest, parts: parts.map(encodePart) };
}

function encodePart({ text, data, raw, url, mediaType, filename, metadata }: WirePart): JsonObject {
  const about = metadata === undefined ? {} : { metadata };
  if (text !== undefined) return { kind: "text", text, ...about };
  if (raw !== undefined || url !== undefined) {
    const file = {
      ...(filename === undefined ? {} : { name: filename }),
      ...(mediaType === undefined ? {} : { mimeType: mediaType }),
      ...(raw === undefined ? { uri: url ?? "" } : { bytes: raw }),
    };
    return { kind: "file", file, ...about };
  }
  // In 0.3 data is an object; the SDKs mark what they had to wrap.
  if (isObject(data)) return { kind: "data", data: data as JsonObject, ...about };
  const wrapped = { ...(isObject(metadata) ? (metadata as JsonObject) : {}), data_part_compat: true };
  return { kind: "data", data: { value: data ?? null }, metadata: wrapped };
}

/** A message of a 0.3 client as 1.0 writes it. What is wrong with it stays wrong, and is told by whoever reads that. */
export function decodeLegacyMessage(message: Json): Json {
  if (!isObject(message)) return message;
  const { kind: _kind, role, parts, ...rest } = message as JsonObject;
  return {
    ...rest,
    role: role === "user" ? "ROLE_USER" : role === "agent" ? "ROLE_AGENT" : (role ?? null),
    parts: Array.isArray(parts) ? parts.map(decodePart) : (parts ?? null),
  };
}

function decodePart(part: Json): Json {
  if (!isObject(part)) return part;
  const { kind, text, data, file, metadata } = part as JsonObject;
  const about = metadata === undefined ? {} : { metadata };
  if (kind === "text") return { text: text ?? null, ...about };
  if (kind === "data") return { ...unwrap(data ?? null, metadata), mediaType: "application/json" };
  if (kind === "file" && isObject(file)) {
    const { name, mimeType, bytes, uri } = file as JsonObject;
    return {
      ...(bytes === undefined ? { url: uri ?? null } : { raw: bytes }),
      ...(name === undefined ? {} : { filename: name }),
      ...(mimeType === undefined ? {} : { mediaType: mimeType }),
      ...about,
    };
  }
  return { ...about };
}

function unwrap(data: Json, metadata: Json | undefined): JsonObject {
  if (!isObject(metadata) || metadata.data_part_compat !== true || !isObject(data)) {
    return { data, ...(metadata === undefined ? {} : { metadata }) };
  }
  const { data_part_compat: _mark, ...rest } = metadata as JsonObject;
  return {
    data: (data as JsonObject).value ?? null,
    ...(Object.keys(rest).length > 0 ? { metadata: rest } : {}),
  };
}
