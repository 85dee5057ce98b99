/** What the log says about the keys of a function: what was called under each, and what became of it. */
import { unreachable } from "../errors.ts";
import type { TaskStore } from "../store/store.ts";
import type { EffectResult, Message, TaskKey } from "../task/event.ts";
import type { Json, JsonObject } from "../task/json.ts";
import type { Decision, Principal } from "../task/request.ts";
import { argsOf, type Call, callStatus, findRequest, inDoubtAnswer, type Settled, type Task } from "../task/task.ts";
import { CallDenied, type CallError, CallUnknown, ToolFailed } from "./define-agent.ts";

export type CodeLog = Pick<TaskStore, "read" | "readBlob">;

export interface History {
  readonly key: TaskKey;
  readonly message: Message;
  /** By key, which the log keeps as the model's own call id. */
  readonly calls: ReadonlyMap<string, RecordedCall>;
  readonly artifacts: ReadonlyMap<string, JsonObject>;
}

export interface RecordedCall {
  readonly tool: string;
  readonly args: JsonObject;
  /** The log could not take its arguments; nobody knows what they were. */
  readonly isUnkept: boolean;
  readonly ran: { readonly args: JsonObject; readonly changedBy: Principal | undefined };
  /** Undefined while it has no outcome. */
  readonly outcome: CallOutcome | undefined;
}

export type CallOutcome =
  | { readonly ok: true; readonly value: Json; readonly message?: Message }
  | { readonly ok: false; readonly error: CallError };

/** All of it at once: the function then waits for nothing that is recorded, and its branches keep their order. */
export async function readHistory(log: CodeLog, task: Task): Promise<History> {
  const [opening] = task.messages;
  if (!opening) throw new Error(`task ${task.key.id}: nothing opened it`);
  const calls = new Map<string, RecordedCall>();
  const messages = await readAnswers(log, task);
  for (const call of Object.values(task.calls)) {
    const key = call.modelCallId;
    if (key === undefined) continue;
    const status = callStatus(task, call);
    const outcome = status.type === "settled" ? await toOutcome(log, task, key, status.how) : undefined;
    const message =
      status.type === "settled" && "decision" in status.how && messages.get(status.how.decision.requestId);
    calls.set(key, {
      tool: call.tool,
      args: call.args,
      isUnkept: call.refused?.code === "arguments-invalid" && Object.keys(call.args).length === 0,
      ran: { args: argsOf(task, call), changedBy: whoChanged(task, call) },
      outcome: outcome?.ok && message ? { ...outcome, message } : outcome,
    });
  }
  const artifacts = new Map(task.artifacts.map((artifact) => [String(artifact.artifactId), artifact]));
  return { key: task.key, message: opening.message, calls, artifacts };
}

/** The messages that brought answers. A task keeps only that they did; the log says to which request. */
async function readAnswers(log: CodeLog, { key, messages }: Task): Promise<ReadonlyMap<string, Message>> {
  const answers = new Map<string, Message>();
  if (!messages.some(({ decided }) => decided)) return answers;
  const { events } = await log.read(key);
  for (const event of events) {
    if (event.type !== "message-received") continue;
    for (const requestId of event.decided) answers.set(requestId, event.message);
  }
  return answers;
}

async function toOutcome(log: CodeLog, task: Task, key: string, how: Settled): Promise<CallOutcome> {
  switch (how.type) {
    case "refused":
      return failed(new CallDenied(key, { outcome: "refused", reason: how.text, by: undefined }));
    case "ran": {
      const { status } = how.effect;
      if (status.type !== "done" && status.type !== "failed") return failed(new CallUnknown(key));
      const value = await readResult(log, task, status.result);
      return status.type === "done" ? { ok: true, value } : failed(new ToolFailed(key, value));
    }
    case "answered":
      return toAnswer(task, key, how.decision);
    case "unknown":
      return failed(new CallUnknown(key));
    case "not-run":
      return failed(toDenial(key, how.decision));
    default:
      return unreachable(how);
  }
}

function toAnswer(task: Task, key: string, decision: Decision): CallOutcome {
  const values = decision.values ?? {};
  if (findRequest(task, decision.requestId)?.request.kind !== "in-doubt") return { ok: true, value: values };
  // Whoever says that it was done may know its result too.
  if (inDoubtAnswer(decision) === "done") return { ok: true, value: values.result ?? null };
  return failed(new ToolFailed(key, `${decision.principal.name} says that it failed`));
}

function toDenial(key: string, { outcome, principal, reason, by }: Decision): CallDenied {
  if (outcome === "expired") {
    return new CallDenied(key, { outcome, reason: "nobody answered in time", by: undefined });
  }
  const who = by ? undefined : principal;
  return new CallDenied(key, {
    outcome: outcome === "canceled" ? "canceled" : "denied",
    reason: reason ?? "no reason given",
    by: who,
  });
}

async function readResult(log: CodeLog, { key }: Task, result: EffectResult): Promise<Json> {
  if ("value" in result) return result.value;
  const text = await log.readBlob(key, result.blob);
  if (text === undefined) throw new Error(`task ${key.id}: the result ${result.blob} is no longer kept`);
  return JSON.parse(text) as Json; // written by us, addressed by its hash
}

function whoChanged(task: Task, call: Call): Principal | undefined {
  const last = call.requestIds.at(-1);
  const decision = last && findRequest(task, last)?.decision;
  return decision?.editedArgs ? decision.principal : undefined;
}

function failed(error: CallError): CallOutcome {
  return { ok: false, error };
}
