/**
 * What a message to `/v1/agents` means (DESIGN §6, rules 1 to 10): as on every mount, but an answer without an id is for
 * the lowest open request, and of a task that is over its end is told instead of an error.
 */
import { decodeMessage } from "../dialects/registry.ts";
import { resolveAnswers } from "../dialects/resolve-answers.ts";
import type { Outcome, Runtime } from "../runtime/runtime.ts";
import type { Message, TaskKey } from "../task/event.ts";
import type { JsonObject } from "../task/json.ts";
import { projectDecision, toIso } from "../task/request-view.ts";
import type { Lost } from "../task/verdict.ts";
import { invalid, notAllowed, refusalError, scopeMissing, taskNotFound } from "./a2a-errors.ts";
import { findTask, type MessageParts, type Received, receiveMessage, type Sender } from "./a2a-messages.ts";
import type { SendRequest } from "./a2a-shapes.ts";
import { defined } from "./api-query.ts";
import { isSelfApproval } from "./self-approval.ts";

const MOUNT = "v1";

export async function receiveV1(parts: MessageParts, sender: Sender, request: SendRequest): Promise<Received> {
  const { runtime, server } = parts;
  const { taskId, contextId } = request.message;
  // What begins a task means the same everywhere.
  if (taskId === undefined) return receiveMessage(parts, sender, request);
  const { scopes, principal } = sender.caller;
  if (!scopes.has("task:submit") && !scopes.has("decide")) throw scopeMissing("task:submit");
  const key = { tenant: principal.tenant, id: taskId };
  const task = await findTask(runtime, sender, key);
  if (contextId !== undefined && contextId !== task.contextId) {
    throw invalid("/message/contextId", "is not the context of this task");
  }
  const message = toMessage(request);
  const read = decodeMessage(message, task, MOUNT);
  if (read.type === "malformed") throw invalid(`/message${read.pointer}`, read.detail);
  if (read.type === "chat") {
    if (!scopes.has("task:submit")) throw scopeMissing("task:submit");
    return settle(runtime, key, await runtime.receive(key, message, principal));
  }
  if (!scopes.has("decide")) throw scopeMissing("decide");
  // Before it is asked what it means: by now an answer without an id would mean something else.
  const repeated = await runtime.findRepeated(key, message, principal);
  if (repeated) return settle(runtime, key, repeated);
  const speaker = { principal, mount: MOUNT, withoutId: server.answersWithoutId } as const;
  const resolved = resolveAnswers(read.answers, task, speaker);
  if (!resolved.ok) throw invalid(`/message${resolved.pointer}`, resolved.detail);
  const unplaced = resolved.ambiguous ? tellAmbiguous(resolved.ambiguous) : [];
  const isDenied = server.auth.selfApproval === "deny";
  if (isDenied && resolved.choices.some((choice) => isSelfApproval(task, choice, principal))) {
    throw notAllowed("You asked for this, so someone else must approve it.", "SELF_APPROVAL_DENIED");
  }
  if (resolved.choices.length === 0) return { task, refused: unplaced, counted: false };
  return settle(runtime, key, await runtime.answer(key, message, resolved.choices, principal), unplaced);
}

/** What stands in the log: the client's words and nothing of its addressing. */
function toMessage({ message }: SendRequest): Message {
  const { messageId, parts, metadata, extensions, referenceTaskIds } = message;
  return {
    messageId,
    role: "user",
    // Only keys with a value are left, and those are JSON.
    parts: parts.map((part) => defined(part) as JsonObject),
    ...defined({ metadata, extensions, referenceTaskIds }),
  };
}

async function settle(
  runtime: Runtime,
  key: TaskKey,
  outcome: Outcome,
  unplaced: readonly JsonObject[] = [],
): Promise<Received> {
  const { lost = [] } = outcome;
  const refused = [...lost.map(tellLost), ...unplaced];
  if (outcome.ok) return { task: outcome.task, refused, counted: true };
  if (lost.length === 0 && outcome.refusal.code !== "task-over") throw refusalError(outcome.refusal);
  const { task } = await runtime.load(key);
  if (!task) throw taskNotFound();
  return { task, refused, counted: false };
}

function tellLost({ requestId, refusal }: Lost): JsonObject {
  switch (refusal.code) {
    case "already-decided": {
      const { outcome, by, cause, at } = projectDecision(refusal.decision);
      return { requestId, code: refusal.code, outcome, by: cause ?? by, at };
    }
    case "request-expired":
      return { requestId, code: refusal.code, outcome: "expired", by: "deadline", at: toIso(refusal.expiredAtMs) };
    case "digest-differs": {
      const successor = refusal.request && refusal.request.id !== requestId ? { now: refusal.request.id } : {};
      return { requestId, code: refusal.code, ...successor };
    }
    default:
      return { requestId, code: refusal.code };
  }
}

function tellAmbiguous(open: readonly string[]): readonly JsonObject[] {
  return open.length === 0 ? [{ code: "ambiguous" }] : open.map((requestId) => ({ requestId, code: "ambiguous" }));
}
