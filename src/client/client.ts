/**
 * A typed client of the decision API. Runs in browsers and in Node; what reaches the network is handed in, so the same
 * client also talks to an app in its own process.
 */
import type { JsonObject, JsonProblem } from "../task/json.ts";
import type { DecisionView, RequestView } from "../task/request-view.ts";
import type { TaskState } from "../task/task.ts";
import type { TaskChange, TaskView } from "../task/task-view.ts";
import { type Frame, readFrames } from "./events.ts";

export type { DecisionView, EffectView, RequestView } from "../task/request-view.ts";
export type { TaskChange, TaskView, TimelineEntry } from "../task/task-view.ts";

export interface ClientOptions {
  readonly url: string;
  readonly token: string;
  /** The platform's `fetch`, or anything that answers like it. */
  readonly fetch: (url: string, init: ClientInit) => Promise<Response>;
}

export interface ClientInit {
  readonly method: "GET" | "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export type DecisionOrder =
  | {
      readonly decision: "approve";
      readonly digest: string;
      readonly reason?: string;
      readonly editedArgs?: JsonObject;
    }
  | { readonly decision: "deny" | "cancel"; readonly digest?: string; readonly reason?: string }
  | { readonly decision: "answer"; readonly values: JsonObject; readonly digest?: string; readonly reason?: string };

export interface TaskRow {
  readonly id: string;
  readonly agent: string;
  readonly contextId: string;
  readonly state: TaskState;
  readonly version: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface AgentInfo {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly { readonly name: string; readonly gated: boolean; readonly risk: string }[];
}

export interface RequestPage {
  readonly requests: readonly RequestView[];
  readonly nextCursor?: string;
}

export interface TaskPage {
  readonly tasks: readonly TaskRow[];
  readonly nextCursor?: string;
}

export type TaskEvent =
  | { readonly type: "task"; readonly task: TaskView }
  | { readonly type: "change"; readonly change: TaskChange }
  | { readonly type: "text"; readonly turn: number; readonly attempt: number; readonly delta: string };

export type RequestEvent =
  | ({ readonly type: "snapshot" } & RequestPage)
  | { readonly type: "request"; readonly request: RequestView };

type Paging = { readonly limit?: number; readonly cursor?: string };

export interface Client {
  listRequests(query?: Paging & { readonly agent?: string }): Promise<RequestPage>;
  getRequest(id: string): Promise<RequestView>;
  decide(id: string, order: DecisionOrder): Promise<RequestView>;
  /** What waits, then what is opened and closed, until `signal` aborts or the server stops. */
  watchRequests(query?: { readonly agent?: string }, signal?: AbortSignal): AsyncIterable<RequestEvent>;
  submit(order: {
    readonly agent: string;
    readonly message: string;
    readonly contextId?: string;
    readonly messageId?: string;
  }): Promise<TaskView>;
  listTasks(query?: Paging & { readonly contextId?: string; readonly state?: TaskState }): Promise<TaskPage>;
  getTask(id: string): Promise<TaskView>;
  /** The task, then what happens to it, until it is over, `signal` aborts or the server stops. */
  watchTask(id: string, signal?: AbortSignal): AsyncIterable<TaskEvent>;
  cancel(taskId: string): Promise<TaskView>;
  agents(): Promise<readonly AgentInfo[]>;
}

/** The server said no, or could not be reached (`code: "unreachable"`, status 0). */
export class ClientError extends Error {
  readonly code: string;
  readonly status: number;
  readonly body: ClientErrorBody;

  constructor(status: number, body: ClientErrorBody, options?: { cause?: unknown }) {
    super(body.error.message, options);
    this.name = "ClientError";
    this.code = body.error.code;
    this.status = status;
    this.body = body;
  }
}

export interface ClientErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly pointers?: readonly JsonProblem[] };
  /** What closed the request before. */
  readonly decision?: DecisionView;
  /** The request as it is now, or the one that has taken its place. */
  readonly request?: RequestView;
}

export function createClient(options: ClientOptions): Client {
  const base = options.url.replace(/\/+$/, "");
  const headers = { authorization: `Bearer ${options.token}` };

  const send = async (path: string, init: Omit<ClientInit, "headers">): Promise<Response> => {
    const type = init.body === undefined ? {} : { "content-type": "application/json" };
    const response = await options
      .fetch(`${base}${path}`, { ...init, headers: { ...headers, ...type } })
      .catch((cause: unknown) => {
        throw unreachable(base, cause);
      });
    if (!response.ok) throw new ClientError(response.status, await readError(response));
    return response;
  };
  // The server is ours: what it answers with 2xx has the shape that its routes give it.
  const get = async <T>(path: string): Promise<T> => (await send(path, { method: "GET" })).json() as Promise<T>;
  const post = async <T>(path: string, body: object): Promise<T> =>
    (await send(path, { method: "POST", body: JSON.stringify(body) })).json() as Promise<T>;

  async function* watch<T>(path: string, signal: AbortSignal | undefined, decode: (frame: Frame) => T) {
    const { body } = await send(path, { method: "GET", ...(signal ? { signal } : {}) });
    if (!body) return;
    try {
      for await (const frame of readFrames(body, signal)) yield decode(frame);
    } catch (cause) {
      if (!signal?.aborted) throw unreachable(base, cause);
    }
  }

  return {
    listRequests: (query = {}) => get(`/api/requests${encodeQuery(query)}`),
    getRequest: (id) => get(`/api/requests/${encodeURIComponent(id)}`),
    decide: (id, order) => post(`/api/requests/${encodeURIComponent(id)}/decision`, order),
    watchRequests: (query = {}, signal) =>
      watch(`/api/requests:watch${encodeQuery(query)}`, signal, ({ event, data }): RequestEvent => {
        if (event === "snapshot") return { type: "snapshot", ...(JSON.parse(data) as RequestPage) };
        return { type: "request", request: JSON.parse(data) as RequestView };
      }),
    submit: (order) => post("/api/tasks", order),
    listTasks: (query = {}) => get(`/api/tasks${encodeQuery(query)}`),
    getTask: (id) => get(`/api/tasks/${encodeURIComponent(id)}`),
    watchTask: (id, signal) =>
      watch(`/api/tasks/${encodeURIComponent(id)}:watch`, signal, ({ event, data }): TaskEvent => {
        if (event === "task") return { type: "task", task: JSON.parse(data) as TaskView };
        if (event === "change") return { type: "change", change: JSON.parse(data) as TaskChange };
        return { type: "text", ...(JSON.parse(data) as { turn: number; attempt: number; delta: string }) };
      }),
    cancel: (taskId) => post(`/api/tasks/${encodeURIComponent(taskId)}:cancel`, {}),
    agents: async () => (await get<{ agents: readonly AgentInfo[] }>("/api/agents")).agents,
  };
}

export function unreachable(base: string, cause: unknown): ClientError {
  const message = `${base} does not answer; nothing is known to have changed`;
  return new ClientError(0, { error: { code: "unreachable", message } }, { cause });
}

async function readError(response: Response): Promise<ClientErrorBody> {
  const body: unknown = await response.json().catch(() => undefined);
  // Something between us and the server may answer in its own way.
  if (typeof body === "object" && body !== null && "error" in body) return body as ClientErrorBody;
  return { error: { code: "answer-unreadable", message: `the server answered ${response.status} without a reason` } };
}

function encodeQuery(query: object): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  return pairs.length === 0
    ? ""
    : `?${new URLSearchParams(pairs.map(([key, value]): [string, string] => [key, String(value)]))}`;
}
