/** A task as a model reads it: what was said, what was called, and what became of each call. */
import type { PromptMessage } from "../models/model.ts";
import type { EffectResult, Message } from "../task/event.ts";
import { canonicalJson, type Json } from "../task/json.ts";
import type { Decision } from "../task/request.ts";
import { type Call, callStatus, findRequest, inDoubtAnswer, type Settled, type Task } from "../task/task.ts";

/** A longer result is cut for the model; the log keeps it whole. */
export const RESULT_CHARS_MAX = 64 * 1024;

/** The content of a blob of this task. */
export type ReadBlob = (sha256: string) => Promise<string | undefined>;

export async function projectConversation(task: Task, readBlob: ReadBlob): Promise<PromptMessage[]> {
  const messages: PromptMessage[] = [];
  let heard = 0;
  const hear = (until: number) => {
    for (const { message, decided } of task.messages.slice(heard, until)) {
      // An answer is never chat: its request says what became of it.
      if (!decided) messages.push({ role: "user", text: textOf(message) });
    }
    heard = Math.max(heard, until);
  };
  for (const turn of task.turns) {
    hear(turn.messages);
    const calls = turn.callIds.flatMap((id) => task.calls[id] ?? []);
    messages.push({
      role: "assistant",
      text: turn.text,
      calls: calls.map(({ callId, tool, args }) => ({ callId, tool, args })),
    });
    for (const call of calls) messages.push({ role: "tool", ...(await projectCall(task, call, readBlob)) });
  }
  hear(task.messages.length);
  return messages;
}

/** The words of a message; what is not text is shown as JSON. */
export function textOf({ parts }: Message): string {
  return parts.map((part) => (typeof part.text === "string" ? part.text : canonicalJson(part))).join("\n");
}

type ToolMessage = Omit<PromptMessage & { role: "tool" }, "role">;

async function projectCall(task: Task, call: Call, readBlob: ReadBlob): Promise<ToolMessage> {
  const { callId, tool } = call;
  const status = callStatus(task, call);
  if (status.type !== "settled") return { callId, tool, outcome: "unknown", text: "It has no result yet." };
  return { callId, tool, ...(await tellOutcome(task, call, status.how, readBlob)) };
}

async function tellOutcome(
  task: Task,
  call: Call,
  how: Settled,
  readBlob: ReadBlob,
): Promise<Pick<ToolMessage, "outcome" | "text">> {
  switch (how.type) {
    case "refused":
      return { outcome: "refused", text: how.text };
    case "ran": {
      const { status } = how.effect;
      if (status.type !== "done" && status.type !== "failed") return { outcome: "unknown", text: "Outcome unknown." };
      const text = await resultText(status.result, readBlob);
      const changed = tellEdit(task, call);
      return { outcome: status.type, text: changed + (status.type === "failed" ? `Failed: ${text}` : text) };
    }
    case "answered":
      return tellAnswer(how.decision, findRequest(task, how.decision.requestId)?.request.kind === "in-doubt");
    case "unknown":
      return { outcome: "unknown", text: `It was cut off: it may have run or not. ${tellClosed(how.decision)}` };
    case "not-run":
      return { outcome: "not-run", text: tellClosed(how.decision) };
  }
}

function tellEdit(task: Task, call: Call): string {
  const last = call.requestIds.at(-1);
  const decision = last && findRequest(task, last)?.decision;
  if (!decision?.editedArgs) return "";
  return `Arguments were changed by ${decision.principal.name}: ${canonicalJson(decision.editedArgs)}\n`;
}

function tellAnswer(decision: Decision, isInDoubt: boolean): Pick<ToolMessage, "outcome" | "text"> {
  const inDoubt = isInDoubt ? inDoubtAnswer(decision) : undefined;
  if (inDoubt === "done") return { outcome: "done", text: `${decision.principal.name} says that it was done.` };
  if (inDoubt === "failed") return { outcome: "failed", text: `${decision.principal.name} says that it failed.` };
  const values = Object.values(decision.values ?? {});
  return {
    outcome: "answered",
    text: values.map((value) => (Array.isArray(value) ? value.map(toText).join(", ") : toText(value))).join("\n"),
  };
}

function tellClosed({ outcome, principal, reason, by }: Decision): string {
  if (outcome === "expired") return "Nobody answered in time; it was not run.";
  if (outcome === "canceled")
    return by ? "It was not run: the task ended." : `Canceled by ${principal.name}; it was not run.`;
  return `Denied by ${principal.name}: ${reason ?? "no reason given"}. Do not try this call again; offer something else or ask.`;
}

async function resultText(result: EffectResult, readBlob: ReadBlob): Promise<string> {
  if ("value" in result) return cut(toText(result.value));
  const stored = await readBlob(result.blob);
  if (stored === undefined) return `${result.head} … (${result.bytes} bytes, no longer kept)`;
  return cut(toText(JSON.parse(stored) as Json));
}

function toText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function cut(text: string): string {
  if (text.length <= RESULT_CHARS_MAX) return text;
  return `${text.slice(0, RESULT_CHARS_MAX).toWellFormed()}\n(cut here: ${text.length - RESULT_CHARS_MAX} more characters)`;
}
