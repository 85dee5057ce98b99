/** The wire of Chat Completions, as OpenAI documents it. */
import type { SpokenReply } from "./server.ts";
import { split, spoken } from "./spoken.ts";

const BASE = { id: "chatcmpl-1", created: 1_700_000_000, model: "loopback" };

export function chatStream(reply: SpokenReply): string[] {
  const { pieces, calls, usage, finish } = spoken(reply);
  const delta = (delta: object) => chunk({ choices: [{ index: 0, delta, finish_reason: null }] });
  return [
    delta({ role: "assistant", content: null }),
    ...pieces.map((content) => delta({ content })),
    ...calls.flatMap(({ id, name, args }, index) => [
      delta({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] }),
      ...split(args).map((piece) => delta({ tool_calls: [{ index, function: { arguments: piece } }] })),
    ]),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: finish }] }),
    chunk({ choices: [], usage: encodeUsage(usage) }),
    "data: [DONE]\n\n",
  ];
}

export function chatWhole(reply: SpokenReply): object {
  const { pieces, calls, usage, finish } = spoken(reply);
  const tool_calls = calls.map(({ id, name, args }) => ({ id, type: "function", function: { name, arguments: args } }));
  const message = {
    role: "assistant",
    content: pieces.length === 0 ? null : pieces.join(""),
    ...(calls.length === 0 ? {} : { tool_calls }),
  };
  const choices = [{ index: 0, message, finish_reason: finish }];
  return { ...BASE, object: "chat.completion", choices, usage: encodeUsage(usage) };
}

function chunk(fields: object): string {
  return `data: ${JSON.stringify({ ...BASE, object: "chat.completion.chunk", ...fields })}\n\n`;
}

function encodeUsage({ input, output }: { input: number; output: number }) {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}
