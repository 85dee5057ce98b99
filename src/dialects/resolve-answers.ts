/** Which request an answer means (DESIGN §6, rules 4 and 7). An answer that may mean another request means none. */
import type { Principal, Request, RequestId } from "../task/request.ts";
import { findRequest, openRequests, type RequestRecord, type Task } from "../task/task.ts";
import type { Answer, Flaw } from "./dialect.ts";
import { type Found, mergeAnswers } from "./merge-answers.ts";

/** `/v1/agents` shows the lowest open request and no other; every other mount shows all of them. */
export type Mount = "a2a" | "v1";

export interface Speaker {
  readonly principal: Principal;
  readonly mount: Mount;
  /** `server.answers_without_id`. */
  readonly withoutId: "allow" | "deny";
}

export type NamedAnswer = Answer & { readonly requestId: RequestId };

export type Resolution =
  /** An id of another task, or two parts that disagree: nothing counts. */
  | ({ readonly ok: false } & Flaw)
  /** What counts; and, if there was an answer that cannot be placed, the open requests that it may have meant. */
  | { readonly ok: true; readonly choices: readonly NamedAnswer[]; readonly ambiguous?: readonly RequestId[] };

export function resolveAnswers(found: readonly Found[], task: Task, speaker: Speaker): Resolution {
  const named: Found<NamedAnswer>[] = [];
  let ambiguous: readonly RequestId[] | undefined;
  for (const { answer, pointer } of found) {
    const { requestId } = answer;
    const record = requestId === undefined ? findMeant(answer, task, speaker) : findRequest(task, requestId);
    if (record) named.push({ answer: { ...answer, requestId: record.request.id }, pointer });
    else if (requestId !== undefined) return { ok: false, pointer, detail: `"${requestId}" is not of this task` };
    else ambiguous = openRequests(task).map(({ id }) => id);
  }
  const merged = mergeAnswers(named);
  if (!merged.ok) return merged;
  const choices = merged.answers.map(({ answer }) => answer);
  return { ok: true, choices, ...(ambiguous ? { ambiguous } : {}) };
}

/** The request by whose shape an answer without id is read. Whether it may mean that one is said above. */
export function requestWithoutId(task: Task): Request | undefined {
  return openRequests(task)[0] ?? task.requests.at(-1)?.request;
}

function findMeant(
  { choice }: Answer,
  task: Task,
  { principal, mount, withoutId }: Speaker,
): RequestRecord | undefined {
  const open = task.requests.filter(({ decision }) => decision === undefined);
  const [lowest] = open;
  // Late: it means what was closed last, so that whoever says it hears who decided. Nothing closed is opened by it.
  if (!lowest) return task.requests.findLast(({ request }) => takes(request, choice));
  if (withoutId === "deny") return undefined;
  if (mount === "a2a" && open.length > 1) return undefined;
  // A late "approve" for request 1 must not hit request 2.
  const earlier = task.requests.slice(0, task.requests.indexOf(lowest));
  return earlier.every((record) => isClosedFor(record, principal)) ? lowest : undefined;
}

/** Whether this principal knows that it is closed: by themselves, or by a deadline that was shown. */
function isClosedFor({ decision }: RequestRecord, { name, issuer, tenant }: Principal): boolean {
  if (!decision) return false;
  if (decision.by !== undefined) return decision.by === "deadline";
  const { principal } = decision;
  return principal.name === name && principal.issuer === issuer && principal.tenant === tenant;
}

function takes({ kind }: Request, choice: Answer["choice"]): boolean {
  if (choice === "cancel") return true;
  return (kind === "approval") === (choice === "approve" || choice === "deny");
}
