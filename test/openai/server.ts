/**
 * A provider on loopback that speaks Chat Completions and the Responses API, streamed or whole, as scripted: replies,
 * refusals, and everything that goes wrong with real ones. Records what it was asked.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chatStream, chatWhole } from "./chat.ts";
import { responsesStream, responsesWhole } from "./responses.ts";

export interface SpokenReply {
  /** Streamed in these pieces. */
  readonly text?: string | readonly string[];
  /** `args` as a text is sent as it is, JSON or not; streamed in small pieces. */
  readonly calls?: readonly { readonly name: string; readonly args: object | string; readonly id?: string }[];
  readonly usage?: { readonly input: number; readonly output: number };
  readonly finish?: "stop" | "tool_calls" | "length" | "content_filter";
  /** The connection dies after so many pieces. */
  readonly cutAfter?: number;
  /** It stays open, and silent, after so many pieces. */
  readonly hangAfter?: number;
}

export type OpenAiReply =
  | SpokenReply
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }
  /** Says 200 and then this, whatever it is. */
  | { readonly garbage: string }
  /** Takes the request and never answers. */
  | { readonly hang: true }
  /** Any other API. */
  | { readonly raw: (request: RecordedRequest, response: ServerResponse) => void };

/** One reply for each request in turn, then "Done."; or a function of the request and its number, from 1. */
export type OpenAiScript =
  | readonly OpenAiReply[]
  | ((request: RecordedRequest, n: number) => OpenAiReply | Promise<OpenAiReply>);

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of three APIs
  readonly body: any;
  /** Whether the client went away before the end of the answer. */
  aborted: boolean;
}

export interface OpenAiServer {
  /** For `host`, with `/v1`. */
  readonly url: string;
  readonly requests: readonly RecordedRequest[];
  stop(): Promise<void>;
}

export async function startOpenAi(script: OpenAiScript): Promise<OpenAiServer> {
  const requests: RecordedRequest[] = [];
  const choose = async (request: RecordedRequest, n: number): Promise<OpenAiReply> => {
    return typeof script === "function" ? await script(request, n) : (script[n - 1] ?? { text: "Done." });
  };
  const server = createServer((incoming, response) => {
    void (async () => {
      const request = await record(incoming);
      requests.push(request);
      response.once("close", () => {
        request.aborted = !response.writableFinished;
      });
      await answer(request, await choose(request, requests.length), response);
    })().catch((error) => response.destroy(error instanceof Error ? error : undefined));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function record(incoming: IncomingMessage): Promise<RecordedRequest> {
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += chunk;
  const headers = Object.fromEntries(
    Object.entries(incoming.headers).map(([name, value]) => [name, value?.toString()]),
  );
  const body = text === "" ? undefined : JSON.parse(text);
  return { method: incoming.method ?? "", path: incoming.url ?? "", headers, body, aborted: false };
}

async function answer(request: RecordedRequest, reply: OpenAiReply, response: ServerResponse): Promise<void> {
  if ("hang" in reply) return;
  if ("raw" in reply) return reply.raw(request, response);
  if ("garbage" in reply) {
    response.writeHead(200, { "content-type": request.body?.stream ? "text/event-stream" : "application/json" });
    response.end(reply.garbage);
    return;
  }
  if ("status" in reply) {
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    response.end(JSON.stringify(reply.body ?? { error: { message: `status ${reply.status}`, type: "scripted" } }));
    return;
  }
  const api = apiOf(request.path);
  if (!api) return answer(request, { status: 404 }, response);
  if (!request.body.stream) {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(api.whole(reply)));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const frames = api.stream(reply);
  for (const [i, frame] of frames.entries()) {
    if (i === reply.hangAfter) return;
    if (i === reply.cutAfter) {
      // What was said arrives; then the line is dead.
      response.socket?.destroySoon();
      return;
    }
    if (!response.write(frame)) await room(response);
    if (response.destroyed) return;
    // Each piece arrives by itself, as from a real model.
    if (frames.length < 1000) await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}

/** Until the client has read, or is gone. */
function room(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    if (response.destroyed) return resolve();
    response.on("drain", done).on("close", done);
  });
}

function apiOf(path: string) {
  if (path.endsWith("/chat/completions")) return { stream: chatStream, whole: chatWhole };
  if (path.endsWith("/responses")) return { stream: responsesStream, whole: responsesWhole };
  return undefined;
}
