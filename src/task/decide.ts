/**
 * All rules of a task. Pure: no clock, no ids, no I/O; the caller persists the events, or tells the refusal.
 *
 * D1  A request takes one decision, ever; the same decision again by the same principal changes nothing.
 * D2  A gated call is claimed only under an approval whose digest equals what would run now (`claim.ts`).
 * D3  A task that is over never changes.
 * D4  Everything that ends a task closes its open requests in the same append.
 * D5  Who acts on a task has a name and belongs to its tenant.
 */
import { unreachable } from "../errors.ts";
import { decideAskAgain, decideExpire, decideOpen, wrapUp } from "./ask.ts";
import { decideChoices } from "./choose.ts";
import { decideClaim, decideDoubt, decideFinish } from "./claim.ts";
import type { Circumstances, Command } from "./command.ts";
import type { Fact } from "./event.ts";
import { findJsonProblem, isObject, type JsonProblem } from "./json.ts";
import type { Principal } from "./request.ts";
import {
  callStatus,
  claimedEffects,
  findCall,
  hasUnheard,
  isDoubtful,
  openRequests,
  stateOf,
  type Task,
} from "./task.ts";
import { accept, refuse, type Verdict } from "./verdict.ts";

export const CALLS_PER_TURN_MAX = 64;
const MESSAGE_BYTES_MAX = 1024 * 1024;
const TEXT_CHARS_MAX = 1024 * 1024;
const TOOL_NAME_CHARS_MAX = 256;

export function decide(task: Task | undefined, command: Command, now: Circumstances): Verdict {
  const unfit = "principal" in command ? findUnfit(command.principal, now) : undefined;
  if (unfit) return refuse({ code: "principal-unfit", detail: unfit });
  if (command.type === "submit") return decideSubmit(task, command, now);
  if (!task) return refuse({ code: "task-unknown" });
  // Choices judge an ended task themselves: a repeated decision is a retry even then.
  if (command.type === "choose") return decideChoices(task, [command.choice], command.principal, now);
  if (command.type === "receive") return decideReceive(task, command, now);
  if (task.end) return refuse({ code: "task-over", state: stateOf(task), message: task.end.message });

  switch (command.type) {
    case "reply":
      return decideReply(task, command);
    case "refuse-call": {
      const call = findCall(task, command.callId);
      if (!call) return refuse({ code: "call-unknown", callId: command.callId });
      const { type } = callStatus(task, call);
      if (type !== "new" && type !== "allowed") {
        return refuse({ code: "not-allowed", callId: call.callId, detail: `it is ${type} and cannot be refused` });
      }
      return accept({ type: "call-refused", callId: call.callId, code: command.code, text: command.text });
    }
    case "open":
      return decideOpen(task, command.drafts, now);
    case "ask-again":
      return decideAskAgain(task, command, now);
    case "expire":
      return decideExpire(task, now);
    case "claim":
      return decideClaim(task, command, now);
    case "finish":
      return decideFinish(task, command);
    case "doubt":
      return decideDoubt(task, command, now);
    case "update-artifact":
      return accept({
        type: "artifact-updated",
        artifact: command.artifact,
        append: command.append,
        lastChunk: command.lastChunk,
      });
    case "cancel":
      return decideCancel(task, command.principal);
    case "complete": {
      const unsettled = whatIsUnsettled(task) ?? (hasUnheard(task) && "a message has not been heard");
      if (unsettled) return refuse({ code: "task-unsettled", detail: unsettled });
      return accept({ type: "task-completed", message: command.message });
    }
    case "reject": {
      const unsettled = whatIsUnsettled(task);
      if (unsettled) return refuse({ code: "task-unsettled", detail: unsettled });
      return accept({ type: "task-rejected", message: command.message });
    }
    case "fail":
      return accept(...wrapUp(task, task.principal), {
        type: "task-failed",
        message: `${command.message}${tellUnknown(task)}`,
        code: command.code,
      });
    default:
      return unreachable(command);
  }
}

/** Whoever acts has a name and belongs to the tenant; which of them may decide is the credential's matter. */
function findUnfit({ name, issuer, tenant }: Principal, { key }: Circumstances): string | undefined {
  if (name === "" || issuer === "") return "a principal needs a name and an issuer";
  return tenant === key.tenant ? undefined : `${name} does not belong to this tenant`;
}

function decideSubmit(task: Task | undefined, command: Command & { type: "submit" }, { key }: Circumstances): Verdict {
  if (task) return refuse({ code: "task-exists" });
  const problem = findJsonProblem(command.message, MESSAGE_BYTES_MAX);
  if (problem) return refuse({ code: "message-invalid", pointer: problem.pointer, detail: problem.text });
  const { agent, contextId, principal, message } = command;
  const mode = command.mode === "blocking" ? ({ mode: "blocking" } as const) : {};
  const forwards = command.forwards?.length ? { forwards: command.forwards } : {};
  const { tenant } = key;
  return accept({ type: "task-submitted", agent, contextId, tenant, principal, message, ...mode, ...forwards });
}

function decideReceive(task: Task, command: Command & { type: "receive" }, now: Circumstances): Verdict {
  const { message, principal, choices } = command;
  const problem = findJsonProblem(message, MESSAGE_BYTES_MAX);
  if (problem) return refuse({ code: "message-invalid", pointer: problem.pointer, detail: problem.text });
  const received = (decided: Fact[]): Fact => ({
    type: "message-received",
    message,
    principal,
    decided: decided.flatMap((fact) => (fact.type === "request-decided" ? [fact.requestId] : [])),
  });
  if (choices.length === 0) {
    if (task.end) return refuse({ code: "task-over", state: stateOf(task), message: task.end.message });
    return accept(received([]));
  }
  const verdict = decideChoices(task, choices, principal, now);
  if (!verdict.ok || verdict.facts.length === 0) return verdict;
  return { ...verdict, facts: [received([...verdict.facts]), ...verdict.facts] };
}

/** Nothing a model says can break the log: what cannot be taken is refused call by call. */
function decideReply(task: Task, command: Command & { type: "reply" }): Verdict {
  const expected = task.turns.length + 1;
  if (command.turn !== expected) return refuse({ code: "turn-stale", turn: command.turn, expected });
  const unsettled = whatIsUnsettled(task);
  if (unsettled) return refuse({ code: "task-unsettled", detail: unsettled });
  // The last word must have heard everything; a word that goes on to act hears it with the next turn.
  if (command.calls.length === 0 && (command.messagesHeard ?? task.messages.length) < task.messages.length) {
    return refuse({ code: "task-unsettled", detail: "a message has not been heard" });
  }
  const refused: Fact[] = [];
  const calls = command.calls.slice(0, CALLS_PER_TURN_MAX).map(({ problem: unread, ...call }, i) => {
    const callId = `call-${command.turn}-${i + 1}`;
    const tool = call.tool.slice(0, TOOL_NAME_CHARS_MAX).toWellFormed();
    const problem = unread === undefined ? findArgsProblem(call.args) : { pointer: "", text: unread };
    if (!problem) return { ...call, callId, tool };
    const at = problem.pointer ? ` at ${problem.pointer}` : "";
    const text = `Arguments refused${at}: ${problem.text.replace(/\.$/, "")}.`.toWellFormed();
    refused.push({ type: "call-refused", callId, code: "arguments-invalid", text });
    return { ...call, callId, tool, args: {} };
  });
  const facts: Fact[] = [
    {
      type: "model-replied",
      turn: command.turn,
      text: command.text.slice(0, TEXT_CHARS_MAX).toWellFormed(),
      calls,
      ...(command.usage ? { usage: command.usage } : {}),
    },
    ...refused,
  ];
  return { ok: true, facts, blobs: command.blobs ?? [] };
}

function findArgsProblem(args: unknown): JsonProblem | undefined {
  return isObject(args) ? findJsonProblem(args) : { pointer: "", text: "not an object" };
}

/**
 * At once while nothing runs; while an effect runs, the wish is recorded and the worker reports what really happened
 * before the task ends (then this command comes again, from the loop).
 */
function decideCancel(task: Task, principal: Principal): Verdict {
  const wish: Fact[] = task.cancelRequestedBy ? [] : [{ type: "cancel-requested", principal }];
  if (claimedEffects(task).length > 0) return accept(...wish);
  const by = task.cancelRequestedBy ?? principal;
  const message = `Canceled by ${by.name}.${tellUnknown(task)}`;
  return accept(...wish, ...wrapUp(task, by), { type: "task-canceled", message });
}

/** What nobody knows the outcome of stands in the last words of a task. */
function tellUnknown(task: Task): string {
  const running = new Set(claimedEffects(task).map(({ callId }) => callId));
  const unknown = Object.values(task.calls).filter((call) => running.has(call.callId) || isDoubtful(task, call));
  return unknown.length === 0 ? "" : ` Outcome unknown of: ${unknown.map(({ tool }) => tool).join(", ")}.`;
}

/** What must come to its end before a task, or a turn, can. */
function whatIsUnsettled(task: Task): string | undefined {
  const [open] = openRequests(task);
  if (open) return `request ${open.id} is open`;
  const call = Object.values(task.calls).find((candidate) => callStatus(task, candidate).type !== "settled");
  return call && `call ${call.callId} has no result`;
}
