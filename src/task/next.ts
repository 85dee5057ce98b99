/**
 * What comes next, from the log alone. Only data is kept over a pause, so a newer release can go on with what an older
 * one paused. Within a turn: ungated calls run first; then all questions are asked at once; at a pause nothing runs;
 * approved calls run in order when the last question is closed; then the model is asked.
 */
import {
  type Call,
  callStatus,
  claimedEffects,
  type Effect,
  hasUnheard,
  isOver,
  openRequests,
  type Task,
} from "./task.ts";

export type Step =
  /** Over, or waiting for a person. */
  | { readonly type: "rest" }
  | { readonly type: "expire" }
  | { readonly type: "settle"; readonly effect: Effect }
  | { readonly type: "cancel" }
  | { readonly type: "run"; readonly call: Call }
  | { readonly type: "ask"; readonly calls: readonly Call[] }
  | { readonly type: "refuse"; readonly call: Call; readonly code: string; readonly text: string }
  | { readonly type: "think"; readonly turn: number }
  | { readonly type: "complete"; readonly message: string };

/** Whether a tool's rule asks a person; undefined when there is no such tool. */
export type IsGated = (tool: string) => boolean | undefined;

export function next(task: Task, isGated: IsGated, nowMs: number): Step {
  if (isOver(task)) return { type: "rest" };
  const [cutOff] = claimedEffects(task);
  if (cutOff) return { type: "settle", effect: cutOff };
  if (task.cancelRequestedBy) return { type: "cancel" };
  const open = openRequests(task);
  if (open.some(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs)) return { type: "expire" };
  if (open.length > 0) return { type: "rest" };

  const turn = task.turns.at(-1);
  if (!turn) return { type: "think", turn: 1 };
  const calls = turn.callIds.flatMap((id) => task.calls[id] ?? []);
  const ask: Call[] = [];
  const allowed: Call[] = [];
  for (const call of calls) {
    const status = callStatus(task, call);
    if (status.type === "settled") continue;
    if (status.type === "doubtful") return { type: "settle", effect: status.effect };
    const gated = isGated(call.tool);
    if (gated === undefined) {
      return { type: "refuse", call, code: "tool-unknown", text: `There is no tool "${call.tool}".` };
    }
    if (status.type === "allowed") allowed.push(call);
    else if (gated || call.requestIds.length > 0) ask.push(call);
    else return { type: "run", call };
  }
  if (ask.length > 0) return { type: "ask", calls: ask };
  const [first] = allowed;
  if (first) return { type: "run", call: first };
  if (calls.length > 0 || hasUnheard(task)) return { type: "think", turn: turn.turn + 1 };
  return { type: "complete", message: turn.text || "Done." };
}
