/** The gate: an effect is claimed before the tool is called, finished under the claim's token, or in doubt. */

import { openFact, wrapUp } from "./ask.ts";
import type { Circumstances, Command } from "./command.ts";
import { callDigest, sha256 } from "./digest.ts";
import type { EffectResult, Fact } from "./event.ts";
import type { Json } from "./json.ts";
import { argsOf, callStatus, findCall, findEffect, openRequests, type Task } from "./task.ts";
import { accept, refuse, type Verdict } from "./verdict.ts";

/** A longer result stands beside the log. */
export const RESULT_BYTES_MAX = 8 * 1024;
const RESULT_HEAD_CHARS = 512;

/**
 * Allowed only for a call that was approved with exactly this digest, or that nobody needs to approve; once for each
 * approval, unless the tool may run again under the same key.
 */
export function decideClaim(task: Task, command: Command & { type: "claim" }, { key, epoch }: Circumstances): Verdict {
  const call = findCall(task, command.callId);
  if (!call) return refuse({ code: "call-unknown", callId: command.callId });
  const no = (detail: string) => refuse({ code: "not-allowed", callId: call.callId, detail });
  if (task.cancelRequestedBy) return no("the task is being canceled");
  const [open] = openRequests(task);
  if (open) return no(`at a pause nothing runs, and request ${open.id} is open`);
  const status = callStatus(task, call);
  const attempt = call.effectIds.length + 1;
  const effectId = `${call.callId}-${attempt}`;
  const claimed = { type: "effect-claimed", effectId, callId: call.callId, attempt, token: command.token } as const;

  switch (status.type) {
    case "new": {
      if (call.requestIds.length > 0 || command.gated) return no("nobody has approved it");
      return accept({ ...claimed, digest: callDigest({ key, epoch }, "", call.tool, call.args, command.facts) });
    }
    case "allowed": {
      const digest = callDigest({ key, epoch }, status.requestId, call.tool, status.args, command.facts);
      if (digest !== status.digest) return no("what would run is not what was approved");
      return accept({ ...claimed, digest, requestId: status.requestId });
    }
    case "doubtful": {
      if (!command.mayRetry) return no("its outcome is unknown and nobody has said what to do");
      const { requestId } = status.effect;
      if (command.gated && !requestId) return no("its rule asks a person by now");
      const digest = callDigest({ key, epoch }, requestId ?? "", call.tool, argsOf(task, call), command.facts);
      if (digest !== status.effect.digest) return no("what would run is not what was approved");
      return accept({ ...claimed, digest, ...(requestId ? { requestId } : {}) });
    }
    case "claimed":
      // The same claim again: its answer was lost on the way.
      if (status.effect.token === command.token) return accept();
      return no(`effect ${status.effect.effectId} has been claimed already`);
    case "asked":
    case "settled":
      return no(`it is ${status.type}`);
  }
}

/** The outcome is fenced by the claim's token: a worker that lost its claim cannot report for another's. */
export function decideFinish(task: Task, command: Command & { type: "finish" }): Verdict {
  const effect = findEffect(task, command.effectId);
  const lost = (detail: string) => refuse({ code: "claim-lost", effectId: command.effectId, detail });
  if (!effect) return lost("no such effect");
  if (effect.token !== command.token) return lost("claimed under another token");
  if (effect.status.type === command.outcome) return accept();
  if (effect.status.type !== "claimed") return lost(`already ${effect.status.type}`);
  const { result, blob } = encodeResult(command.result);
  return {
    ok: true,
    facts: [{ type: "effect-finished", effectId: effect.effectId, outcome: command.outcome, result }],
    blobs: blob ? [blob] : [],
  };
}

function encodeResult(value: Json): { result: EffectResult; blob?: { sha256: string; text: string } } {
  const text = JSON.stringify(value);
  const bytes = Buffer.byteLength(text);
  if (bytes <= RESULT_BYTES_MAX) return { result: { value } };
  const blob = { sha256: sha256(text), text };
  // Cut at whole characters, so that the log stays well-formed.
  const head = text.slice(0, RESULT_HEAD_CHARS).toWellFormed();
  return { result: { blob: blob.sha256, bytes, head }, blob };
}

/** A claim without an outcome after a crash is unknown; nothing decides by itself what became of it. */
export function decideDoubt(task: Task, command: Command & { type: "doubt" }, now: Circumstances): Verdict {
  const effect = findEffect(task, command.effectId);
  const call = effect && findCall(task, effect.callId);
  const lost = (detail: string) => refuse({ code: "claim-lost", effectId: command.effectId, detail });
  if (!effect || !call) return lost("no such effect");
  const status = callStatus(task, call);
  if ((status.type !== "claimed" && status.type !== "doubtful") || status.effect.effectId !== effect.effectId) {
    return lost(`its call is ${status.type} by now`);
  }
  const { effectId } = effect;
  const { draft } = command;
  if (draft && (draft.effectId !== effectId || draft.callId !== call.callId)) return lost("the draft is about another");
  const unknown: Fact[] = status.type === "claimed" ? [{ type: "effect-unknown", effectId, why: command.why }] : [];
  // Somebody wants the task to end: the doubt is told with its end (decideCancel), not asked about.
  if (command.onAmbiguous === "retry" || task.cancelRequestedBy) return accept(...unknown);
  if (command.onAmbiguous === "ask" && draft) return accept(...unknown, openFact(task, 0, draft, now));
  const others = wrapUp(task, task.principal).filter((fact) => !("effectId" in fact) || fact.effectId !== effectId);
  const message = `outcome of ${call.tool} is unknown: ${command.why}`;
  return accept(...unknown, ...others, { type: "task-failed", message, code: "outcome-unknown" });
}
