/** A client of `/v1/agents` as seed 002 writes it: send a message, get the task. Runs in browsers and in Node. */
import type { JsonObject } from "../task/json.ts";
import { ClientError, type ClientErrorBody, type ClientOptions, unreachable } from "./client.ts";

export type A2AClientOptions = Omit<ClientOptions, "url">;

/** A part has a text or data. */
export interface A2APart {
  readonly text?: string;
  readonly data?: JsonObject;
}

export interface A2AMessage {
  readonly role: "user" | "ROLE_USER";
  readonly parts: readonly A2APart[];
  /** The task that it goes on with; absent: a new one begins. */
  readonly taskId?: string;
  readonly contextId?: string;
  /** The same again with the same id changes nothing. */
  readonly messageId?: string;
}

export interface A2ATaskMessage {
  readonly messageId: string;
  readonly role: "ROLE_USER" | "ROLE_AGENT";
  readonly parts: readonly A2APart[];
}

export interface A2ATask {
  readonly id: string;
  readonly contextId: string;
  readonly status: {
    /** `TASK_STATE_INPUT_REQUIRED` where a person is asked, in `message`. */
    readonly state: `TASK_STATE_${string}`;
    readonly message?: A2ATaskMessage;
    readonly timestamp: string;
  };
  readonly history: readonly A2ATaskMessage[];
  readonly artifacts: readonly JsonObject[];
  readonly metadata?: JsonObject;
}

export class A2AClient {
  readonly #base: string;
  readonly #options: A2AClientOptions;

  constructor(url: string, options: A2AClientOptions) {
    this.#base = url.replace(/\/+$/, "");
    this.#options = options;
  }

  /** Answers when the task waits for a person or is over. */
  async sendMessage(agent: string, message: A2AMessage): Promise<A2ATask> {
    const address = `${this.#base}/v1/agents/${encodeURIComponent(agent)}/message:send`;
    const headers = { authorization: `Bearer ${this.#options.token}`, "content-type": "application/json" };
    const response = await this.#options
      .fetch(address, { method: "POST", headers, body: JSON.stringify({ request: message }) })
      .catch((cause: unknown) => {
        throw unreachable(this.#base, cause);
      });
    const body: unknown = await response.json().catch(() => undefined);
    if (!response.ok || !hasKey(body, "task")) throw new ClientError(response.status, toErrorBody(response, body));
    // The server is ours: what it answers with 2xx has the shape that its routes give it.
    return body.task as A2ATask;
  }
}

/** The routes say no in a sentence; what stands before them, with a code beside it. */
function toErrorBody({ status }: Response, body: unknown): ClientErrorBody {
  const error = hasKey(body, "error") ? body.error : undefined;
  if (hasKey(error, "code") && hasKey(error, "message")) return body as ClientErrorBody;
  const message = typeof error === "string" ? error : `the server answered ${status} without a reason`;
  return { error: { code: typeof error === "string" ? "refused" : "answer-unreadable", message } };
}

function hasKey<K extends string>(value: unknown, key: K): value is Record<K, unknown> {
  return typeof value === "object" && value !== null && key in value;
}
