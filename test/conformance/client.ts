/** A2A 1.0 by hand over both HTTP transports, with one face: what is required holds for each. */
import { readFrames } from "../a2a/wire.ts";

// biome-ignore lint/suspicious/noExplicitAny: whatever a server answers
export type Received = any;

export interface Answer {
  readonly httpStatus: number;
  readonly headers: Headers;
  /** As it came. */
  readonly body: Received;
  /** Without the envelope; undefined for an error. */
  readonly result: Received;
}

export interface Streamed extends Answer {
  /** Items without their envelope, until the stream ends or `isEnough`. */
  readonly items: (isEnough?: (items: readonly Received[]) => boolean) => Promise<Received[]>;
  /** The same with the envelope. */
  readonly rawItems: () => Promise<Received[]>;
}

export interface Client {
  readonly transport: "JSONRPC" | "HTTP+JSON";
  send(message: object, configuration?: object, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  stream(message: object, configuration?: object): Promise<Streamed>;
  get(id: string, historyLength?: number): Promise<Answer>;
  list(query: Readonly<Record<string, string | number | boolean>>): Promise<Answer>;
  cancel(id: string): Promise<Answer>;
  subscribe(id: string): Promise<Streamed>;
  extendedCard(): Promise<Answer>;
  createPush(taskId: string, config: object): Promise<Answer>;
  getPush(taskId: string, id: string): Promise<Answer>;
  listPush(taskId: string): Promise<Answer>;
  deletePush(taskId: string, id: string): Promise<Answer>;
}

const VERSION = { "a2a-version": "1.0" };
const JSON_BODY = { "content-type": "application/json" };

export function createRpcClient(url: string): Client {
  let count = 0;
  const call = async (
    method: string,
    params: object,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Streamed> => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: ++count, method, params });
    const init = { method: "POST", body, headers: { ...VERSION, ...JSON_BODY, ...headers } };
    return read(await fetch(url, init), ({ result }) => result);
  };
  return {
    transport: "JSONRPC",
    send: (message, configuration, headers) => call("SendMessage", { message, configuration }, headers),
    stream: (message, configuration) => call("SendStreamingMessage", { message, configuration }),
    get: (id, historyLength) => call("GetTask", { id, historyLength }),
    list: (query) => call("ListTasks", query),
    cancel: (id) => call("CancelTask", { id }),
    subscribe: (id) => call("SubscribeToTask", { id }),
    extendedCard: () => call("GetExtendedAgentCard", {}),
    createPush: (taskId, config) => call("CreateTaskPushNotificationConfig", { taskId, ...config }),
    getPush: (taskId, id) => call("GetTaskPushNotificationConfig", { taskId, id }),
    listPush: (taskId) => call("ListTaskPushNotificationConfigs", { taskId }),
    deletePush: (taskId, id) => call("DeleteTaskPushNotificationConfig", { taskId, id }),
  };
}

export function createRestClient(url: string): Client {
  const call = async (
    method: string,
    path: string,
    body?: object,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Streamed> => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const type = method === "POST" ? JSON_BODY : {};
    const init = { method, ...sent, headers: { ...VERSION, ...type, ...headers } };
    const response = await fetch(`${url}${path}`, init);
    return read(response, (whole) => (response.ok ? whole : undefined));
  };
  const query = (values: Readonly<Record<string, string | number | boolean | undefined>>) => {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(values)) if (value !== undefined) given.set(name, String(value));
    return given.size === 0 ? "" : `?${given}`;
  };
  const push = (taskId: string) => `/tasks/${taskId}/pushNotificationConfigs`;
  return {
    transport: "HTTP+JSON",
    send: (message, configuration, headers) => call("POST", "/message:send", { message, configuration }, headers),
    stream: (message, configuration) => call("POST", "/message:stream", { message, configuration }),
    get: (id, historyLength) => call("GET", `/tasks/${id}${query({ historyLength })}`),
    list: (values) => call("GET", `/tasks${query(values)}`),
    cancel: (id) => call("POST", `/tasks/${id}:cancel`),
    subscribe: (id) => call("POST", `/tasks/${id}:subscribe`),
    extendedCard: () => call("GET", "/extendedAgentCard"),
    createPush: (taskId, config) => call("POST", push(taskId), config),
    getPush: (taskId, id) => call("GET", `${push(taskId)}/${id}`),
    listPush: (taskId) => call("GET", push(taskId)),
    deletePush: (taskId, id) => call("DELETE", `${push(taskId)}/${id}`),
  };
}

/** For `describe.each`. */
export const CLIENTS = [
  ["JSON-RPC", createRpcClient],
  ["HTTP+JSON", createRestClient],
] as const;

async function read(response: Response, unwrap: (body: Received) => Received): Promise<Streamed> {
  const { status: httpStatus, headers } = response;
  const isStream = headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  const text = isStream ? "" : await response.text();
  const body = text === "" ? undefined : JSON.parse(text);
  const raw = async (isEnough?: (items: readonly Received[]) => boolean) => {
    if (!isStream) throw new Error(`this is no stream: ${httpStatus} ${text}`);
    const frames = await readFrames(response, (seen) => isEnough?.(seen.map(({ data }) => unwrap(data))) ?? false);
    return frames.map(({ data }) => data);
  };
  return {
    httpStatus,
    headers,
    body,
    result: body === undefined ? undefined : unwrap(body),
    items: async (isEnough) => (await raw(isEnough)).map(unwrap),
    rawItems: () => raw(),
  };
}

const SESSION = "c0nf0rm1";

/** The TCK's message of this name. Its ids are used again, as the TCK does. */
export function tckMessage(name: string, more: object = {}): object {
  return { messageId: `tck-${name}-${SESSION}`, role: "ROLE_USER", parts: [{ text: `TCK ${name}` }], ...more };
}

/** A task that waits for input, as the TCK makes one. */
export async function startPaused(client: Client): Promise<{ id: string; contextId: string }> {
  const { result } = await client.send(tckMessage("input-required"));
  return result.task;
}

export async function startCompleted(client: Client): Promise<{ id: string; contextId: string }> {
  const { result } = await client.send(tckMessage("complete-task"));
  return result.task;
}

/** What an item of a stream tells, in short. */
export function describeItem(item: Received): string {
  if (item.task) return `task ${item.task.status.state}`;
  if (item.statusUpdate) return `status ${item.statusUpdate.status.state}`;
  if (item.artifactUpdate) return `artifact ${item.artifactUpdate.artifact.parts[0].text ?? "of a file"}`;
  return Object.keys(item).join();
}
