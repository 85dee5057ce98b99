/**
 * The network as an MCP connection may use it: answers of bounded size, the client's headers on the calls that carry
 * them, and a sign when a stream of events ends. Redirects stay within the origin (the SDK's own rule).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Fetch } from "../ports/network.ts";

/** One message of a server. Larger ones end the connection. */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;

/** These belong to the protocol or the connection, whoever asks for them to be forwarded. */
const NEVER_FORWARDED =
  /^(host|content-.*|accept|connection|transfer-encoding|upgrade|te|trailer|keep-alive|proxy-.*|mcp-.*|last-event-id)$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

const forwarded = new AsyncLocalStorage<Readonly<Record<string, string>>>();

/** What `work` sends, now or later, bears these headers. */
export function withHeaders<T>(headers: Readonly<Record<string, string>>, work: () => T): T {
  return forwarded.run(headers, work);
}

/** Those of the client's headers that the operator named. A value that cannot be sent is reported without itself. */
export function pickHeaders(
  allowed: readonly string[],
  headers: Readonly<Record<string, string>> = {},
): { ok: true; headers: Record<string, string> } | { ok: false; name: string } {
  const names = new Set(allowed.map((name) => name.toLowerCase()));
  const picked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase();
    if (!names.has(key) || NEVER_FORWARDED.test(key)) continue;
    if (!HEADER_VALUE.test(value)) return { ok: false, name: key };
    picked[key] = value;
  }
  return { ok: true, headers: picked };
}

/** `onStreamEnd`: a stream that was opened with GET is over. */
export function createBoundedFetch(network: Fetch, onStreamEnd: () => void = () => {}) {
  return async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    for (const [name, value] of Object.entries(forwarded.getStore() ?? {})) headers.set(name, value);
    const response = await network(url, { ...init, headers });
    if (!response.body) return response;
    const isStream = (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
    const over = isStream && (init.method ?? "GET") === "GET" ? onStreamEnd : () => {};
    return replaceBody(response, bounded(response.body, isStream ? createEventCounter() : createCounter(), over));
  };
}

/** Bytes of the message that is being read, after each chunk. */
type Counter = (chunk: Uint8Array) => number;

function createCounter(): Counter {
  let bytes = 0;
  return (chunk) => {
    bytes += chunk.length;
    return bytes;
  };
}

const [LF, CR] = [10, 13];

/** An empty line ends an event: a stream may be as long as it likes, its events may not. */
function createEventCounter(): Counter {
  let bytes = 0;
  let lineBytes = 0;
  let last = 0;
  return (chunk) => {
    let most = 0;
    for (const byte of chunk) {
      bytes++;
      const isLineEnd = byte === CR || (byte === LF && last !== CR);
      if (isLineEnd && lineBytes === 0) {
        most = Math.max(most, bytes);
        bytes = 0;
      }
      if (isLineEnd) lineBytes = 0;
      if (byte !== LF && byte !== CR) lineBytes++;
      last = byte;
    }
    return Math.max(most, bytes);
  };
}

function bounded(body: ReadableStream<Uint8Array>, count: Counter, over: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { value, done } = await reader.read();
        if (done) {
          controller.close();
          return over();
        }
        if (count(value) > MESSAGE_BYTES_MAX) throw new Error(`the answer is larger than ${MESSAGE_BYTES_MAX} bytes`);
        controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        reader.cancel(error).catch(() => {});
        over();
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function replaceBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response;
  const copy = new Response(body, { status, statusText, headers });
  // The constructor has no place for it, and the SDK's rule for redirects looks at it.
  Object.defineProperty(copy, "url", { value: response.url });
  return copy;
}
