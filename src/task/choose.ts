/** Requests: opened, decided once, expired, asked again. Part of `decide`, pure like it. */
import type { Choice, Circumstances, Command, Refusal } from "./command.ts";
import { callDigest, requestDigest } from "./digest.ts";
import type { Fact } from "./event.ts";
import { canonicalJson, findJsonProblem } from "./json.ts";
import {
  type Decision,
  IN_DOUBT_ANSWERS,
  type Outcome,
  type Principal,
  type Request,
  type RequestDraft,
  type RequestId,
  requestId,
} from "./request.ts";
import { callStatus, findRequest, openRequests, type RequestRecord, stateOf, type Task } from "./task.ts";
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
  return accept(...drafts.map((draft, i) => opened(task, task.requests.length + 1 + i, draft, now)));
}

function opened(task: Task, n: number, draft: RequestDraft, { key, epoch }: Circumstances): Fact {
  const id = requestId(task.key.id, n);
  const request = { ...draft, id, digest: requestDigest({ key, epoch }, id, draft) } as Request;
  return { type: "request-opened", request };
}

/** D1. An invalid choice refuses all; one that lost its race refuses alone, and the others count. */
export function decideChoices(
  task: Task,
  choices: readonly Choice[],
  principal: Principal,
  now: Circumstances,
): Verdict {
  const facts: Fact[] = [];
  const seen = new Map<RequestId, Choice>();
  let lost: Refusal | undefined;
  for (const choice of choices) {
    const twin = seen.get(choice.requestId);
    if (twin && canonicalJson(twin) !== canonicalJson(choice)) {
      return refuse({
        code: "choice-invalid",
        requestId: choice.requestId,
        pointer: "",
        detail: "two parts disagree about it",
      });
    }
    if (twin) continue;
    seen.set(choice.requestId, choice);
    const verdict = decideChoice(task, choice, principal, now);
    if (verdict.ok) facts.push(...verdict.facts);
    else if (LOST.has(verdict.refusal.code)) lost ??= verdict.refusal;
    else return verdict;
  }
  return lost && facts.length === 0 ? refuse(lost) : accept(...facts);
}

const LOST: ReadonlySet<Refusal["code"]> = new Set([
  "already-decided",
  "request-expired",
  "digest-differs",
  "task-over",
]);

function decideChoice(task: Task, choice: Choice, principal: Principal, now: Circumstances): Verdict {
  const record = findRequest(task, choice.requestId);
  if (!record) return refuse({ code: "request-unknown", requestId: choice.requestId });
  const { request } = record;
  const invalid = findInvalid(request, choice);
  if (invalid) return refuse({ code: "choice-invalid", requestId: request.id, ...invalid });

  const decision = toDecision(request, choice, principal, now);
  if (record.decision) return judgeLate(task, record, decision);
  if (task.end) return refuse({ code: "task-over", state: stateOf(task), message: task.end.message });
  if (request.expiresAtMs !== null && request.expiresAtMs <= now.nowMs) {
    return refuse({ code: "request-expired", requestId: request.id, expiredAtMs: request.expiresAtMs });
  }
  if (choice.digest !== undefined && choice.digest !== request.digest) {
    return refuse({ code: "digest-differs", requestId: request.id, request });
  }
  return accept({ type: "request-decided", ...decision });
}

/** The same decision twice is a retry and changes nothing; a different one lost the race. */
function judgeLate(task: Task, { decision: earlier }: RequestRecord, decision: Decision): Verdict {
  if (!earlier || isSame(earlier, decision)) return accept();
  if (earlier.outcome === "superseded") {
    const successor = task.requests.find(
      ({ request }) => request.kind === "approval" && request.supersedes === earlier.requestId,
    );
    return refuse({
      code: "digest-differs",
      requestId: earlier.requestId,
      ...(successor ? { request: successor.request } : {}),
    });
  }
  return refuse({ code: "already-decided", decision: earlier });
}

function isSame(earlier: Decision, decision: Decision): boolean {
  return (
    earlier.by === undefined &&
    earlier.outcome === decision.outcome &&
    earlier.principal.name === decision.principal.name &&
    earlier.principal.issuer === decision.principal.issuer &&
    canonicalJson(earlier.editedArgs ?? null) === canonicalJson(decision.editedArgs ?? null) &&
    canonicalJson(earlier.values ?? null) === canonicalJson(decision.values ?? null)
  );
}

function findInvalid(request: Request, choice: Choice): { pointer: string; detail: string } | undefined {
  const forApproval = choice.choice === "approve" || choice.choice === "deny";
  if (choice.choice !== "cancel" && forApproval !== (request.kind === "approval")) {
    const allowed = request.kind === "approval" ? "approve, deny or cancel" : "answer or cancel";
    return { pointer: "/decision", detail: `"${choice.choice}" does not fit ${request.kind}; ${allowed} does` };
  }
  if (choice.edited) {
    if (choice.choice !== "approve") return { pointer: "/editedArgs", detail: "only an approval can change arguments" };
    if (request.kind === "approval" && !request.editable) {
      return { pointer: "/editedArgs", detail: "this tool does not allow changed arguments" };
    }
    const problem = findJsonProblem(choice.edited.args);
    if (problem) return { pointer: `/editedArgs${problem.pointer}`, detail: problem.text };
  }
  if (choice.choice === "answer") {
    if (choice.values === undefined) return { pointer: "/values", detail: "an answer needs values" };
    if (request.kind === "in-doubt" && !IN_DOUBT_ANSWERS.some((answer) => answer === choice.values?.outcome)) {
      return { pointer: "/values/outcome", detail: `must be one of ${IN_DOUBT_ANSWERS.join(", ")}` };
    }
  }
  const problem = choice.values === undefined ? undefined : findJsonProblem(choice.values);
  if (problem) return { pointer: `/values${problem.pointer}`, detail: problem.text };
  const reason = choice.reason === undefined ? undefined : findJsonProblem(choice.reason);
  return reason ? { pointer: "/reason", detail: reason.text } : undefined;
}

const OUTCOMES = {
  approve: "approved",
  deny: "denied",
  answer: "answered",
  cancel: "canceled",
} as const satisfies Record<Choice["choice"], Outcome>;

function toDecision(request: Request, choice: Choice, principal: Principal, { key, epoch }: Circumstances): Decision {
  const edited = request.kind === "approval" ? choice.edited : undefined;
  return {
    requestId: request.id,
    outcome: OUTCOMES[choice.choice],
    principal,
    digest: request.digest,
    ...(choice.reason !== undefined ? { reason: choice.reason } : {}),
    ...(choice.values !== undefined ? { values: choice.values } : {}),
    ...(edited && request.kind === "approval"
      ? {
          editedArgs: edited.args,
          effectDigest: callDigest({ key, epoch }, request.id, request.tool, edited.args, edited.facts),
        }
      : {}),
  };
}

/** Whatever ends a task closes what is open in the same append (D4). */
export function closeRequests(task: Task, principal: Principal): Fact[] {
  return openRequests(task).map(({ id, digest }) => closedBy(id, digest, "canceled", "task", principal));
}

/** A timeout never approves and never answers. Whoever must fail takes the whole task along. */
export function decideExpire(task: Task, { nowMs }: Circumstances): Verdict {
  const due = openRequests(task).filter(({ expiresAtMs }) => expiresAtMs !== null && expiresAtMs <= nowMs);
  const expired = due.map(({ id, digest }) => closedBy(id, digest, "expired", "deadline", task.principal));
  const inDoubt = due.find(({ kind }) => kind === "in-doubt");
  const fails = inDoubt ?? due.find(({ onTimeout }) => onTimeout === "fail");
  if (!fails) return accept(...expired);
  const others = closeRequests(task, task.principal).filter(
    (fact) => fact.type === "request-decided" && !due.some(({ id }) => id === fact.requestId),
  );
  return accept(...expired, ...others, {
    type: "task-failed",
    message: inDoubt ? `${TIMED_OUT}; the outcome of ${inDoubt.title} is unknown` : TIMED_OUT,
    code: inDoubt ? "outcome-unknown" : "input-timeout",
  });
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

export function decideAskAgain(task: Task, command: Command & { type: "ask-again" }, now: Circumstances): Verdict {
  const call = task.calls[command.callId];
  const lastId = call?.requestIds.at(-1);
  if (!call || !lastId) return refuse({ code: "call-unknown", callId: command.callId });
  const status = callStatus(task, call);
  if (status.type !== "allowed" && !(status.type === "asked" && status.request.kind === "approval")) {
    return refuse({
      code: "not-allowed",
      callId: call.callId,
      detail: `it is ${status.type} and not asked about again`,
    });
  }
  const record = findRequest(task, lastId);
  const closed =
    record && !record.decision ? [closedBy(lastId, record.request.digest, "superseded", "policy", task.principal)] : [];
  if (call.requestIds.length > ASK_AGAIN_MAX) {
    const text = `What ${call.tool} would do changed ${ASK_AGAIN_MAX} times while it waited; it was not run.`;
    return accept(...closed, { type: "call-refused", callId: call.callId, code: "changed-too-often", text });
  }
  return accept(...closed, opened(task, task.requests.length + 1, { ...command.draft, supersedes: lastId }, now));
}
