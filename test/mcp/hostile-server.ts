/** An MCP server over HTTP that misbehaves as told, and remembers what it was asked to do. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface Exchange {
  readonly message: Message;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Answers as JSON. */
  readonly answer: (result: unknown) => void;
  /** Answers as JSON with an error. */
  readonly refuse: (code: number, message: string) => void;
}

export interface Behaviour {
  /** The tools on one page, and the cursor of the next. */
  list: (cursor: string | undefined) => { readonly tools: readonly unknown[]; readonly nextCursor?: string };
  call: (exchange: Exchange) => void;
  /** Before all else; true when it has dealt with the request. */
  first?: (exchange: Exchange) => boolean;
}

export interface HostileServer {
  readonly url: string;
  readonly behaviour: Behaviour;
  /** The calls that arrived. */
  readonly calls: Message[];
  /** Every message that arrived. */
  readonly messages: Message[];
  readonly headers: IncomingMessage["headers"][];
  /** Sends to those that listen on the server's own stream. */
  notify(message: object): void;
  listeners(): number;
  close(): Promise<void>;
}

export const TOOL = {
  name: "act",
  description: "Does something.",
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
} as const;

export async function startHostile(): Promise<HostileServer> {
  const calls: Message[] = [];
  const messages: Message[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const streams = new Set<ServerResponse>();
  const behaviour: Behaviour = {
    list: () => ({ tools: [TOOL] }),
    call: ({ answer }) => answer({ content: [{ type: "text", text: "acted" }] }),
  };

  const server = createServer(async (request, response) => {
    headers.push(request.headers);
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      streams.add(response);
      return;
    }
    if (request.method !== "POST") return void response.writeHead(405).end();
    const message = JSON.parse(await readAll(request)) as Message;
    messages.push(message);
    const send = (body: object) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...body }));
    };
    const answer = (result: unknown) => send({ result });
    const refuse = (code: number, text: string) => send({ error: { code, message: text } });
    const exchange = { message, request, response, answer, refuse };
    if (message.method === "tools/call") calls.push(message);
    if (behaviour.first?.(exchange)) return;
    switch (message.method) {
      case "initialize":
        return answer({
          protocolVersion: message.params?.protocolVersion,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: "hostile", version: "1" },
        });
      case "tools/list":
        return answer(behaviour.list(message.params?.cursor as string | undefined));
      case "tools/call":
        return behaviour.call(exchange);
      default:
        if (message.id === undefined || message.method === undefined) return void response.writeHead(202).end();
        return refuse(-32601, "unknown");
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    behaviour,
    calls,
    messages,
    headers,
    notify: (message) => {
      for (const stream of streams) stream.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
    },
    listeners: () => streams.size,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readAll(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += chunk;
  return text;
}
