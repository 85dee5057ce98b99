/** What a client of `/v1/agents` sends (seed 002), made into a message of A2A. What is wrong is told with its place. */
import { isObject, type Json, type JsonObject } from "../task/json.ts";
import { InvalidRequest, invalid } from "./a2a-errors.ts";
import { type ListRequest, ListShape, readShape, type SendRequest, SendShape } from "./a2a-shapes.ts";

export interface V1Send {
  readonly request: SendRequest;
  /** Whether the client waits until the task rests. */
  readonly blocking: boolean;
}

/** `newId` names a message that the client has not named. */
export function decodeSend(body: Json, newId: () => string): V1Send {
  if (!isObject(body)) throw invalid("", "must be an object");
  // What parseJson has taken is JSON all the way down.
  const { request: message = null, configuration = null } = body as JsonObject;
  const { blocking, ...rest } = isObject(configuration) ? (configuration as JsonObject) : {};
  if (typeof (blocking ?? true) !== "boolean") throw invalid("/configuration/blocking", "must be true or false");
  const historyLength = rest.historyLength ?? rest.history_length ?? null;
  const wanted = { message: decodeMessage(message, newId), configuration: { historyLength } };
  const request = readShape(SendShape, wanted);
  const parts = request.message.parts.map(({ text, data, metadata, raw, url }, i) => {
    if (raw !== undefined || url !== undefined) throw invalid(`/request/parts/${i}`, "must be a text or data");
    return { text, data, metadata, raw, url, mediaType: undefined, filename: undefined };
  });
  return { request: { ...request, message: { ...request.message, parts } }, blocking: blocking !== false };
}

function decodeMessage(message: Json, newId: () => string): Json {
  if (!isObject(message)) return message;
  const { role = null, parts = null, message_id, messageId = message_id, ...rest } = message as JsonObject;
  return {
    ...rest,
    messageId: messageId ?? newId(),
    role: role === "user" ? "ROLE_USER" : role,
    parts: Array.isArray(parts) ? parts.map(decodePart) : parts,
  };
}

/** Protojson nests data in data; both forms mean the same. */
function decodePart(part: Json): Json {
  if (!isObject(part) || !isObject(part.data)) return part;
  const { data, ...others } = part.data as JsonObject;
  return isObject(data) && Object.keys(others).length === 0 ? { ...(part as JsonObject), data: data as Json } : part;
}

export function decodeList(query: Readonly<Record<string, string>>): ListRequest {
  const status = query.status?.replace(/^TASK_STATE_CANCELLED$/, "TASK_STATE_CANCELED");
  return readShape(ListShape, { includeArtifacts: true, ...query, status });
}

/** Here the message is called `request`. */
export function renameMessage(error: unknown): unknown {
  if (!(error instanceof InvalidRequest)) return error;
  const rename = (pointer: string) => pointer.replace(/^\/message(?=\/|$)/, "/request");
  const problems = error.problems.map(({ pointer, text }) => ({ pointer: rename(pointer), text }));
  return new InvalidRequest(problems, error.code);
}
