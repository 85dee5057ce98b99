/** What `holdpoint/client` exports: the clients, with the platform's `fetch` unless another is given. */
import { systemFetch } from "../ports/network.ts";
import { type A2AClientOptions, A2AClient as BareA2AClient } from "./a2a-client.ts";
import { createClient as bareCreateClient, type Client, type ClientOptions } from "./client.ts";

export type { A2AMessage, A2APart, A2ATask, A2ATaskMessage } from "./a2a-client.ts";
export {
  type AgentInfo,
  type Client,
  ClientError,
  type ClientErrorBody,
  type DecisionOrder,
  type DecisionView,
  type EffectView,
  type RequestEvent,
  type RequestPage,
  type RequestView,
  type TaskChange,
  type TaskEvent,
  type TaskPage,
  type TaskRow,
  type TaskView,
  type TimelineEntry,
} from "./client.ts";

type FetchOptional<T extends { readonly fetch: unknown }> = Omit<T, "fetch"> & Partial<Pick<T, "fetch">>;

export class A2AClient extends BareA2AClient {
  constructor(url: string, options: FetchOptional<A2AClientOptions>) {
    super(url, { fetch: systemFetch, ...options });
  }
}

export function createClient(options: FetchOptional<ClientOptions>): Client {
  return bareCreateClient({ fetch: systemFetch, ...options });
}
