/** What a message means: a new task, an answer, or something for the model's next turn (DESIGN §6, rules 1 to 10). */
import { PushNotificationNotSupportedError } from "@a2a-js/sdk/errors";
import type { ServerConfig } from "../config/config.ts";
import { decodeMessage } from "../dialects/registry.ts";
import { type Mount, type NamedAnswer, resolveAnswers } from "../dialects/resolve-answers.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Outcome, Runtime } from "../runtime/runtime.ts";
import type { Message, TaskKey } from "../task/event.ts";
import { isObject, type JsonObject } from "../task/json.ts";
import { parseRequestId } from "../task/request.ts";
import { projectDecision, toIso } from "../task/request-view.ts";
import type { Task } from "../task/task.ts";
import type { Lost } from "../task/verdict.ts";
import {
  contentTypeWrong,
  invalid,
  notAllowed,
  refusalError,
  scopeMissing,
  taskNotFound,
  unsupported,
} from "./a2a-errors.ts";
import type { SendRequest } from "./a2a-shapes.ts";
import { defined } from "./api-query.ts";
import type { Caller } from "./auth.ts";
import { isSelfApproval } from "./self-approval.ts";

export interface MessageParts {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly server: ServerConfig;
  /** Media types of files that are taken. */
  readonly inputModes: readonly string[];
}

/** Who sends it, to which agent. */
export interface Sender {
  readonly agent: string;
  readonly caller: Caller;
  /** What the client wants forwarded to tools. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Received {
  /** The task right after the message. */
  readonly task: Task;
  /** Why some of it, or all, did not count. */
  readonly refused: readonly JsonObject[];
  /** Whether anything has changed. */
  readonly counted: boolean;
}

/**
 * On `/v1/agents` an answer without an id is for the lowest open request, and of a task that is over its end is told
 * instead of an error.
 */
export async function receiveMessage(
  parts: MessageParts,
  sender: Sender,
  request: SendRequest,
  mount: Mount,
): Promise<Received> {
  const { caller } = sender;
  const { taskId, contextId } = request.message;
  // Whoever may neither start nor decide learns nothing of what there is.
  if (!caller.scopes.has("task:submit") && !caller.scopes.has("decide")) throw scopeMissing("task:submit");
  if (request.configuration?.taskPushNotificationConfig) {
    throw new PushNotificationNotSupportedError();
  }
  checkModes(request, parts.inputModes);
  const message = toMessage(parts, request);
  if (taskId === undefined) return submit(parts, sender, message, contextId);
  const key = { tenant: caller.principal.tenant, id: taskId };
  const task = await findTask(parts.runtime, sender, key);
  if (contextId !== undefined && contextId !== task.contextId) {
    throw invalid("/message/contextId", "is not the context of this task");
  }
  const read = decodeMessage(message, task, mount);
  if (read.type === "malformed") throw invalid(`/message${read.pointer}`, read.detail);
  if (read.type === "chat") {
    if (!caller.scopes.has("task:submit")) throw scopeMissing("task:submit");
    return settle(parts, mount, key, await parts.runtime.receive(key, message, caller.principal));
  }
  if (!caller.scopes.has("decide")) throw scopeMissing("decide");
  // Before it is asked what it means: by now an answer without an id would mean something else.
  const repeated = await parts.runtime.findRepeated(key, message, caller.principal);
  if (repeated) return settle(parts, mount, key, repeated);
  const { principal } = caller;
  const withoutId = parts.server.answersWithoutId;
  const resolved = resolveAnswers(read.answers, task, { principal, mount, withoutId });
  if (!resolved.ok) throw invalid(`/message${resolved.pointer}`, resolved.detail);
  const unplaced = resolved.ambiguous ? tellAmbiguous(resolved.ambiguous) : [];
  for (const choice of resolved.choices) checkAnswer(parts, task, choice, caller);
  if (resolved.choices.length === 0) {
    if (mount === "v1" || !task.end) return { task, refused: unplaced, counted: false };
    throw refusalError({ code: "task-over", state: task.end.state, message: task.end.message });
  }
  const outcome = await parts.runtime.answer(key, message, resolved.choices, principal);
  return settle(parts, mount, key, outcome, unplaced);
}

/** The task, if it is this agent's and this tenant's; else it does not exist. */
export async function findTask(runtime: Runtime, { agent }: Pick<Sender, "agent">, key: TaskKey): Promise<Task> {
  const { task } = await runtime.load(key);
  if (!task || task.agent !== agent) throw taskNotFound();
  return task;
}

async function submit(
  { runtime }: MessageParts,
  { agent, caller, headers }: Sender,
  message: Message,
  contextId: string | undefined,
): Promise<Received> {
  if (!caller.scopes.has("task:submit")) throw scopeMissing("task:submit");
  // It names a request, so it was never meant to begin something.
  const isAnswer = message.parts.some(({ data }) => isObject(data) && isRequestId(data.requestId));
  if (isAnswer) throw invalid("/message/taskId", "an answer needs the id of its task");
  const { principal } = caller;
  const order = { tenant: principal.tenant, agent, principal, message, headers, ...defined({ contextId }) };
  const outcome = await runtime.submit(order);
  if (!outcome.ok) throw refusalError(outcome.refusal);
  return { task: outcome.task, refused: [], counted: true };
}

function isRequestId(id: unknown): boolean {
  return typeof id === "string" && parseRequestId(id) !== undefined;
}

/** Rule 7: what lost is told in the task as it is now; of a task that is over, as an error. */
async function settle(
  { runtime }: MessageParts,
  mount: Mount,
  key: TaskKey,
  outcome: Outcome,
  unplaced: readonly JsonObject[] = [],
): Promise<Received> {
  const { lost = [] } = outcome;
  const refused = [...lost.map(tellLost), ...unplaced];
  if (outcome.ok) return { task: outcome.task, refused, counted: true };
  const isToldAsTask = lost.length > 0 || (mount === "v1" && outcome.refusal.code === "task-over");
  if (!isToldAsTask) throw refusalError(outcome.refusal);
  const { task } = await runtime.load(key);
  if (!task) throw taskNotFound();
  if (mount === "v1" || !task.end) return { task, refused, counted: false };
  const told = Object.entries(refused[0] ?? {}).map(([name, value]) => [name, String(value)]);
  throw unsupported(`The task is ${task.end.state}: ${task.end.message}`, Object.fromEntries(told));
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

function checkAnswer({ server }: MessageParts, task: Task, answer: NamedAnswer, { principal }: Caller): void {
  if (server.auth.selfApproval !== "deny" || !isSelfApproval(task, answer, principal)) return;
  throw notAllowed("You asked for this, so someone else must approve it.", "SELF_APPROVAL_DENIED");
}

/** What stands in the log: the client's words and nothing of its addressing. */
function toMessage({ server, clock, ids }: MessageParts, { message }: SendRequest): Message {
  const { messageId, parts, metadata, extensions, referenceTaskIds } = message;
  // Where ids are ignored each message gets one of its own, which begins with the client's.
  const isIgnored = server.a2a.messageIds === "ignored";
  return {
    messageId: isIgnored ? `${messageId}~${ids.uuid(clock.nowMs())}` : messageId,
    role: "user",
    // Only keys with a value are left, and those are JSON.
    parts: parts.map((part) => defined(part) as JsonObject),
    ...defined({ metadata, extensions, referenceTaskIds }),
  };
}

function checkModes({ message }: SendRequest, modes: readonly string[]): void {
  for (const [i, { text, data, mediaType }] of message.parts.entries()) {
    const isPlain = text !== undefined || data !== undefined;
    const type = (mediaType ?? (isPlain ? undefined : "application/octet-stream"))?.split(";")[0]?.trim().toLowerCase();
    if (type === undefined || (text !== undefined && type.startsWith("text/"))) continue;
    if (modes.some((mode) => mode === "*/*" || mode === type)) continue;
    throw contentTypeWrong(`/message/parts/${i}: ${type} is not taken; ${modes.join(", ")} is`);
  }
}
