/** What both APIs say, before it is put into their forms. */
import type { SpokenReply } from "./server.ts";

export interface Spoken {
  readonly pieces: readonly string[];
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: string }[];
  readonly usage: { readonly input: number; readonly output: number };
  readonly finish: "stop" | "tool_calls" | "length" | "content_filter";
}

export function spoken(reply: SpokenReply): Spoken {
  const calls = (reply.calls ?? []).map(({ name, args, id }, i) => ({
    id: id ?? `theirs_${i + 1}`,
    name,
    args: typeof args === "string" ? args : JSON.stringify(args),
  }));
  const { text = [] } = reply;
  return {
    pieces: typeof text === "string" ? [text] : text,
    calls,
    usage: reply.usage ?? { input: 11, output: 7 },
    finish: reply.finish ?? (calls.length > 0 ? "tool_calls" : "stop"),
  };
}

/** In pieces that respect neither tokens nor characters of JSON. */
export function split(text: string, size = 7): string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size));
}
