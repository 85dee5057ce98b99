/** Our prompt as the messages and tools of the `ai` library. Every call gets exactly one result, right behind it. */
import type { ModelMessage } from "ai";
import type { JsonObject } from "../task/json.ts";
import type { Prompt, PromptCall, PromptMessage } from "./model.ts";
import { createToolNames, type ToolNames } from "./tool-names.ts";

type Result = Extract<PromptMessage, { role: "tool" }>;

export function namesOf(prompt: Prompt): ToolNames {
  const called = prompt.messages.flatMap((message) => {
    return message.role === "assistant" ? message.calls.map(({ tool }) => tool) : [];
  });
  return createToolNames([...prompt.tools.map(({ name }) => name), ...called]);
}

export function encodeMessages(prompt: Prompt, names: ToolNames): ModelMessage[] {
  const encoded: ModelMessage[] = [];
  let calls = 0;
  for (const [i, message] of prompt.messages.entries()) {
    // Results stand behind the call that they belong to; one without a call would be refused by the provider.
    if (message.role === "tool") continue;
    if (message.role === "user") {
      // No provider takes an empty message.
      encoded.push({ role: "user", content: message.text.trim() === "" ? "(no text)" : message.text });
      continue;
    }
    const text = message.text.trim() === "" ? [] : [{ type: "text" as const, text: message.text }];
    const made = message.calls.map((call) => ({ call, id: wireId(++calls), name: names.toWire(call.tool) }));
    if (text.length + made.length === 0) continue;
    const parts = made.map(({ call, id, name }) => {
      return { type: "tool-call" as const, toolCallId: id, toolName: name, input: call.args };
    });
    encoded.push({ role: "assistant", content: [...text, ...parts] });
    if (made.length === 0) continue;
    const results = resultsBehind(prompt.messages, i);
    const content = made.map(({ call, id, name }) => {
      // Words for the model, whatever became of the call: as an error they would arrive in quotes.
      const output = { type: "text" as const, value: resultOf(call, results) };
      return { type: "tool-result" as const, toolCallId: id, toolName: name, output };
    });
    encoded.push({ role: "tool", content });
  }
  return encoded;
}

/** JSON Schema of the arguments; a provider takes nothing but an object, also where a tool has no arguments. */
export function encodeParameters(parameters: JsonObject): JsonObject {
  return { properties: {}, ...parameters, type: "object" };
}

/**
 * Ours are unique in their task, and a conversation has several: they are numbered anew. Nine letters and digits is
 * the only form that every OpenAI-compatible host takes.
 */
function wireId(n: number): string {
  return `call${String(n).padStart(5, "0")}`;
}

/** Up to the next reply; a person's message may stand between a call and its result. */
function resultsBehind(messages: readonly PromptMessage[], at: number): readonly Result[] {
  const behind = messages.slice(at + 1);
  const next = behind.findIndex(({ role }) => role === "assistant");
  return behind.slice(0, next < 0 ? undefined : next).filter((message) => message.role === "tool");
}

function resultOf(call: PromptCall, results: readonly Result[]): string {
  return results.findLast(({ callId }) => callId === call.callId)?.text ?? "There is no result of this call.";
}
