/** Real A2A clients on an app or a server. */
import type { Message, Part, SendMessageRequest, StreamResponse, Task } from "@a2a-js/sdk";
import { Role, taskStateToJSON } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";

export type Transport = "JSONRPC" | "HTTP+JSON";
export type Fetch = typeof fetch;

/** The newest client, as its makers write it; `fetchImpl` brings the token. */
export async function connect(
  url: string,
  agent: string,
  fetchImpl: Fetch,
  transport: Transport,
  legacy = false,
): Promise<Client> {
  const options = { fetchImpl, ...(legacy ? { legacyCompat: { enabled: true } } : {}) };
  const resolver = new DefaultAgentCardResolver({ fetchImpl });
  const factory = new ClientFactory({
    transports: [transport === "JSONRPC" ? new JsonRpcTransportFactory(options) : new RestTransportFactory(options)],
    cardResolver: resolver,
  });
  if (!legacy) return factory.createFromUrl(url, `/a2a/${agent}/.well-known/agent-card.json`);
  const card = await resolver.resolve(url, `/a2a/${agent}/.well-known/agent-card.json`);
  const supportedInterfaces = card.supportedInterfaces.filter(
    ({ protocolVersion, protocolBinding }) => protocolVersion.startsWith("0.3") && protocolBinding === transport,
  );
  return factory.createFromAgentCard({ ...card, supportedInterfaces });
}

let count = 0;

export function message(parts: readonly (string | object)[], more: Partial<Message> = {}): Message {
  return {
    messageId: `m-${process.pid}-${++count}`,
    contextId: "",
    taskId: "",
    role: Role.ROLE_USER,
    parts: parts.map(
      (part): Part => ({
        content: typeof part === "string" ? { $case: "text", value: part } : { $case: "data", value: part },
        metadata: undefined,
        filename: "",
        mediaType: "",
      }),
    ),
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more,
  };
}

export function request(
  content: Message,
  configuration: Partial<NonNullable<SendMessageRequest["configuration"]>> = {},
): SendMessageRequest {
  return {
    tenant: "",
    message: content,
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      historyLength: undefined,
      returnImmediately: false,
      ...configuration,
    },
    metadata: undefined,
  };
}

export function asTask(result: Message | Task): Task {
  if ("messageId" in result) throw new Error("a message came instead of a task");
  return result;
}

export const stateOf = (task: Pick<Task, "status">) => taskStateToJSON(task.status?.state ?? 0);

export function textsOf(content: Message | undefined): string[] {
  return (content?.parts ?? []).flatMap(({ content: part }) => (part?.$case === "text" ? [part.value] : []));
}

export function dataOf(content: Message | undefined): Record<string, unknown>[] {
  return (content?.parts ?? []).flatMap(({ content: part }) => (part?.$case === "data" ? [part.value] : []));
}

export const approve = (requestId: unknown, digest?: unknown) => ({
  type: "a2a.input.response",
  requestId,
  values: { decision: "approve" },
  ...(digest === undefined ? {} : { metadata: { digest } }),
});

/** What a stream tells, in short. */
export function describeItem({ payload }: StreamResponse): string {
  switch (payload?.$case) {
    case "task":
      return `task ${stateOf(payload.value)}`;
    case "statusUpdate":
      return `status ${stateOf(payload.value)}`;
    case "artifactUpdate":
      return `artifact ${payload.value.artifact?.artifactId}`;
    default:
      return payload?.$case ?? "nothing";
  }
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
