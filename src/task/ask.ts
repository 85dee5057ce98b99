/** Requests that are opened, asked again, expired or closed with their task. Part of `decide`, pure like it. */
import type { Circumstances, Command, Refusal } from "./command.ts";
import { requestDigest } from "./digest.ts";
import type { Fact } from "./event.ts";
import { type Outcome, type Principal, type Request, type RequestDraft, type RequestId, requestId } from "./request.ts";
import {
  callStatus,
  claimedEffects,
  findCall,
  findRequest,
  openRequests,
  type RequestRecord,
  type Task,
} from "./task.ts";
import { accept, refuse, type Verdict } from "./verdict.ts";

/** More would be a flood, not a question (`too-many-requests`). */
export const OPEN_REQUESTS_MAX = 20;
/** A call whose tool keeps changing under the question is refused after this many. */
export const ASK_AGAIN_MAX = 3;

const TIMED_OUT = "timeout waiting for user input";

export function decideOpen(task: Task, drafts: readonly RequestDraft[], now: Circumstances): Verdict {
  if (openRequests(task).length + drafts.length > OPEN_REQUESTS_MAX) {
    return refuse({ code: "too-many-requests", max: OPEN_REQUESTS_MAX });
  }
  const [running] = claimedEffects(task);
  if (running) return refuse({ code: "task-unsettled", detail: `effect ${running.effectId} has no outcome` });
  const callIds = drafts.flatMap((draft) => ("callId" in draft && draft.callId !== undefined ? [draft.callId] : []));
  for (const [i, callId] of callIds.entries()) {
    const refusal = findUnaskable(task, callId, callIds.indexOf(callId) < i);
    if (refusal) return refuse(refusal);
  }
  return accept(...drafts.map((draft, i) => openFact(task, i, draft, now)));
}

/** A call is asked about once, before anything else has happened to it. */
function findUnaskable(task: Task, callId: string, twice: boolean): Refusal | undefined {
  const call = findCall(task, callId);
  if (!call) return { code: "call-unknown", callId };
  const { type } = callStatus(task, call);
  if (type === "new" && !twice) return undefined;
  return { code: "not-allowed", callId, detail: twice ? "it is asked about twice" : `it is ${type} already` };
}

/** The request that gets the next number, or the one `ahead` of it. */
export function openFact(task: Task, ahead: number, draft: RequestDraft, { key, epoch }: Circumstances): Fact {
  const id = requestId(task.key.id, task.requests.length + 1 + ahead);
  const request = { ...draft, id, digest: requestDigest({ key, epoch }, id, draft) } as Request;
  return { type: "request-opened", request };
}

export function decideAskAgain(task: Task, command: Command & { type: "ask-again" }, now: Circumstances): Verdict {
  const call = findCall(task, command.callId);
  const lastId = call?.requestIds.at(-1);
  const last = lastId && findRequest(task, lastId);
  if (!call || !lastId || !last) return refuse({ code: "call-unknown", callId: command.callId });
  if (command.draft.callId !== call.callId || command.draft.tool !== call.tool) {
    return refuse({ code: "not-allowed", callId: call.callId, detail: "the draft is about another call" });
  }
  // Somebody was quicker: it was replaced, decided, or ran out of time meanwhile.
  if (command.replaces && !isStill(last, command.replaces, now.nowMs)) return accept();
  const status = callStatus(task, call);
  const isAsked = status.type === "asked" && status.request.kind === "approval";
  if (!isAsked && status.type !== "allowed") {
    return refuse({
      code: "not-allowed",
      callId: call.callId,
      detail: `it is ${status.type} and not asked about again`,
    });
  }
  const [running] = claimedEffects(task);
  if (running) return refuse({ code: "task-unsettled", detail: `effect ${running.effectId} has no outcome` });
  const closed = isAsked ? [closedBy(lastId, last.request.digest, "superseded", "policy", task.principal)] : [];
  if (call.requestIds.filter((id) => isAskedAgain(task, id)).length >= ASK_AGAIN_MAX) {
    const text = `What ${call.tool} would do changed ${ASK_AGAIN_MAX} times while it waited; it was not run.`;
    return accept(...closed, { type: "call-refused", callId: call.callId, code: "changed-too-often", text });
  }
  if (openRequests(task).length - closed.length >= OPEN_REQUESTS_MAX) {
    return refuse({ code: "too-many-requests", max: OPEN_REQUESTS_MAX });
  }
  return accept(...closed, openFact(task, 0, { ...command.draft, supersedes: lastId }, now));
}

function isAskedAgain(task: Task, id: RequestId): boolean {
  const request = findRequest(task, id)?.request;
  return request?.kind === "approval" && request.supersedes !== undefined;
}

function isStill(
  { request, decision }: RequestRecord,
  { requestId: id, state }: NonNullable<(Command & { type: "ask-again" })["replaces"]>,
  nowMs: number,
): boolean {
  if (request.id !== id) return false;
  if (state === "approved") return decision !== undefined;
  return decision === undefined && (request.expiresAtMs === null || request.expiresAtMs > nowMs);
}

/** A timeout never approves and never answers. Whoever must fail takes the whole task along. */
export function decideExpire(task: Task, { nowMs }: Circumstances): Verdict {
  const due = openRequests(task).filter(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs);
  const expired = due.map(({ id, digest }) => closedBy(id, digest, "expired", "deadline", task.principal));
  const inDoubt = due.find(({ kind }) => kind === "in-doubt");
  const fails = inDoubt ?? due.find(({ onTimeout }) => onTimeout === "fail");
  if (!fails) return accept(...expired);
  const others = wrapUp(task, task.principal).filter(
    (fact) => fact.type !== "request-decided" || !due.some(({ id }) => id === fact.requestId),
  );
  return accept(...expired, ...others, {
    type: "task-failed",
    message: inDoubt ? `${TIMED_OUT}; the outcome of ${inDoubt.title} is unknown` : TIMED_OUT,
    code: inDoubt ? "outcome-unknown" : "input-timeout",
  });
}

/**
 * What must be said before a task ends (D4): open requests are closed, and what still runs has an unknown outcome, which
 * is never reported as success or failure.
 */
export function wrapUp(task: Task, principal: Principal): Fact[] {
  return [
    ...claimedEffects(task).map(
      ({ effectId }): Fact => ({ type: "effect-unknown", effectId, why: "the task ended while it ran" }),
    ),
    ...openRequests(task).map(({ id, digest }) => closedBy(id, digest, "canceled", "task", principal)),
  ];
}

function closedBy(
  id: RequestId,
  digest: Request["digest"],
  outcome: Outcome,
  by: "deadline" | "policy" | "task",
  principal: Principal,
): Fact {
  return { type: "request-decided", requestId: id, outcome, principal, digest, by };
}
