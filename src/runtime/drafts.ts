/** How a call becomes a question. */

import type { JsonObject } from "../task/json.ts";
import type { RequestDraft, ToolFacts } from "../task/request.ts";
import type { Call, Effect } from "../task/task.ts";
import type { Question, Tool } from "../tools/tool.ts";
import type { Agent } from "./agent.ts";

type ApprovalDraft = RequestDraft & { kind: "approval" };
type InputDraft = RequestDraft & { kind: "input" };
type InDoubtDraft = RequestDraft & { kind: "in-doubt" };

export function draftApproval(
  tool: Tool,
  about: { callId: string; args: JsonObject; expiresAtMs: number | null; onTimeout: "fail" | "deny" },
  facts: ToolFacts,
): ApprovalDraft {
  return {
    kind: "approval",
    callId: about.callId,
    tool: tool.name,
    args: about.args,
    facts,
    editable: tool.editable,
    title: tool.name,
    prompt: tool.promptFor(about.args),
    risk: tool.risk,
    expiresAtMs: about.expiresAtMs,
    onTimeout: about.onTimeout,
    ...(tool.rule ? { rule: tool.rule } : {}),
  };
}

export function draftQuestion(
  tool: Tool,
  about: { callId: string; expiresAtMs: number | null; onTimeout: "fail" | "deny" },
  { title, prompt, schema }: Question,
): InputDraft {
  const { callId, expiresAtMs, onTimeout } = about;
  return { kind: "input", callId, schema, title, prompt, risk: tool.risk, expiresAtMs, onTimeout };
}

export function draftInDoubt(
  agent: Agent,
  tool: Tool,
  call: Call,
  effect: Effect,
  args: JsonObject,
  facts: ToolFacts,
  nowMs: number,
): InDoubtDraft {
  return {
    kind: "in-doubt",
    callId: call.callId,
    effectId: effect.effectId,
    tool: tool.name,
    args,
    facts,
    title: tool.name,
    prompt: `${tool.name} was started and cut off: it may have run or not. Say done or failed if you know, or retry to run it again.`,
    risk: tool.risk,
    expiresAtMs: deadlineOf(agent, nowMs),
    onTimeout: "fail",
  };
}

export function deadlineOf(agent: Agent, nowMs: number): number | null {
  return agent.inputTimeoutMs === null ? null : nowMs + agent.inputTimeoutMs;
}
