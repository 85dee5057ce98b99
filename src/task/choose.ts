/** What people choose: one decision for one request, or why not. Part of `decide`, pure like it. */
import type { Choice, Circumstances, Refusal } from "./command.ts";
import { callDigest, requestDigest } from "./digest.ts";
import type { Fact } from "./event.ts";
import { canonicalJson, findJsonProblem } from "./json.ts";
import {
  type Decision,
  IN_DOUBT_ANSWERS,
  type Outcome,
  type Principal,
  type Request,
  type RequestId,
} from "./request.ts";
import { findRequest, type RequestRecord, stateOf, type Task } from "./task.ts";
import { accept, type Blob, type Lost, refuse, type Verdict } from "./verdict.ts";

/** D1. An invalid choice refuses all; one that lost its race refuses alone, and the others count. */
export function decideChoices(
  task: Task,
  choices: readonly Choice[],
  principal: Principal,
  now: Circumstances,
): Verdict {
  const facts: Fact[] = [];
  const blobs: Blob[] = [];
  const seen = new Map<RequestId, Choice>();
  const lost: Lost[] = [];
  for (const choice of choices) {
    const record = findRequest(task, choice.requestId);
    if (!record) return refuse({ code: "request-unknown", requestId: choice.requestId });
    const twin = seen.get(choice.requestId);
    const invalid = findInvalid(record.request, choice) ?? (twin && findDisagreement(twin, choice));
    if (invalid) return refuse({ code: "choice-invalid", requestId: record.request.id, ...invalid });
    if (twin) continue;
    seen.set(choice.requestId, choice);
    const verdict = decideChoice(task, record, choice, principal, now);
    if (verdict.ok) {
      facts.push(...verdict.facts);
      blobs.push(...(choice.edited?.blobs ?? []));
    } else if (LOST.has(verdict.refusal.code)) lost.push({ requestId: choice.requestId, refusal: verdict.refusal });
    else return verdict;
  }
  const accepted: Verdict = { ok: true, facts, blobs };
  const [first] = lost;
  if (!first) return accepted;
  return { ...(facts.length === 0 ? refuse(first.refusal) : accepted), lost };
}

const LOST: ReadonlySet<Refusal["code"]> = new Set([
  "already-decided",
  "request-expired",
  "digest-differs",
  "task-over",
]);

function decideChoice(
  task: Task,
  record: RequestRecord,
  choice: Choice,
  principal: Principal,
  now: Circumstances,
): Verdict {
  const { request } = record;
  const decision = toDecision(request, choice, principal, now);
  if (record.decision) return judgeLate(task, record, decision);
  if (task.end) return refuse({ code: "task-over", state: stateOf(task), message: task.end.message });
  if (request.expiresAtMs !== null && request.expiresAtMs <= now.nowMs) {
    return refuse({ code: "request-expired", requestId: request.id, expiredAtMs: request.expiresAtMs });
  }
  // A request from before a restore, or whose content is not what was hashed, can be closed but not agreed to.
  const agrees = choice.choice === "approve" || choice.choice === "answer";
  const isForeign = agrees && requestDigest(now, request.id, request) !== request.digest;
  if (isForeign || (choice.digest !== undefined && choice.digest !== request.digest)) {
    return refuse({ code: "digest-differs", requestId: request.id, request });
  }
  return accept({ type: "request-decided", ...decision });
}

/** The same decision twice is a retry and changes nothing; a different one lost the race. */
function judgeLate(task: Task, { request, decision: earlier }: RequestRecord, decision: Decision): Verdict {
  if (!earlier || isSame(earlier, decision)) return accept();
  if (earlier.outcome === "superseded") {
    const successor = task.requests.find(
      ({ request: other }) => other.kind === "approval" && other.supersedes === request.id,
    );
    return refuse({
      code: "digest-differs",
      requestId: earlier.requestId,
      ...(successor ? { request: successor.request } : {}),
    });
  }
  if (earlier.outcome === "expired") {
    return refuse({
      code: "request-expired",
      requestId: earlier.requestId,
      expiredAtMs: request.expiresAtMs ?? earlier.atMs,
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

function findDisagreement(twin: Choice, choice: Choice): { pointer: string; detail: string } | undefined {
  if (canonicalJson(twin) === canonicalJson(choice)) return undefined;
  return { pointer: "", detail: "two parts disagree about it" };
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
