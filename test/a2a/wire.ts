/** Raw A2A requests on an app: what a client without any library sends. */
import type { World } from "../api/world.ts";

export interface RpcReply {
  readonly jsonrpc: string;
  readonly id: unknown;
  // biome-ignore lint/suspicious/noExplicitAny: whatever a server answers
  readonly result?: any;
  // biome-ignore lint/suspicious/noExplicitAny: whatever a server answers
  readonly error?: { code: number; message: string; data?: any };
}

export interface RpcOptions {
  readonly agent?: string;
  readonly token?: string | null;
  /** Null: none is sent, which is 0.3. */
  readonly version?: string | null;
  readonly headers?: object;
}

export async function rpc(
  world: World,
  method: string,
  params: unknown,
  { agent = "janitor", version = "1.0", token, headers = {} }: RpcOptions = {},
): Promise<RpcReply> {
  const response = await world.call("POST", `/a2a/${agent}`, {
    ...(token === undefined ? {} : { token }),
    headers: { ...(version === null ? {} : { "a2a-version": version }), ...headers },
    body: { jsonrpc: "2.0", id: 1, method, params },
  });
  return (await response.json()) as RpcReply;
}

export interface Frame {
  readonly id: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: whatever a server answers
  readonly data: any;
}

/** The frames of a stream until it ends, or until `isEnough`. */
export async function readFrames(
  response: Response,
  isEnough?: (frames: readonly Frame[]) => boolean,
): Promise<Frame[]> {
  const frames: Frame[] = [];
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = (await reader?.read()) ?? { done: true, value: undefined };
    text += value ?? "";
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field("data");
      if (data !== undefined) frames.push({ id: field("id"), data: JSON.parse(data) });
    }
    if (done || isEnough?.(frames)) {
      await reader?.cancel();
      return frames;
    }
  }
}

let count = 0;

export function userMessage(parts: readonly object[], more: object = {}): object {
  return { messageId: `raw-${++count}`, role: "ROLE_USER", parts, ...more };
}

export const text = (words: string) => ({ text: words });
export const data = (value: unknown) => ({ data: value });
