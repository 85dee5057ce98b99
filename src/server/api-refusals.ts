/** How "no" sounds over HTTP: the one place where our words become numbers. */
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { type FaultCode, isFault, unreachable } from "../errors.ts";
import type { Refusal, RefusalCode } from "../task/command.ts";
import type { JsonProblem } from "../task/json.ts";
import { type DecisionView, describeDecision, projectDecision, type RequestView, toIso } from "../task/request-view.ts";

const STATUS = {
  "task-unknown": 404,
  "request-unknown": 404,
  "call-unknown": 404,
  "task-exists": 409,
  "task-over": 409,
  "task-unsettled": 409,
  "already-decided": 409,
  "claim-lost": 409,
  "turn-stale": 409,
  "message-reused": 409,
  "request-expired": 410,
  "digest-differs": 412,
  "choice-invalid": 422,
  "message-invalid": 422,
  "not-allowed": 403,
  "principal-unfit": 403,
  "too-many-requests": 429,
} as const satisfies Record<RefusalCode, ContentfulStatusCode>;

const FAULT_STATUS: Partial<Record<FaultCode, ContentfulStatusCode>> = {
  "agent-missing": 404,
  "log-purged": 410,
  "usage-invalid": 422,
  "store-unavailable": 503,
  "store-contended": 503,
  "store-full": 503,
};

/** The body of every answer that is not 2xx. */
export interface ErrorBody {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly pointers?: readonly JsonProblem[];
  };
  /** What closed the request before. */
  readonly decision?: DecisionView;
  /** The request as it is now, or the one that has taken its place. */
  readonly request?: RequestView;
}

export function refused(c: Context, refusal: Refusal, request?: RequestView): Response {
  const body: ErrorBody = {
    error: { code: refusal.code, message: describe(refusal), ...pointersOf(refusal) },
    ...(refusal.code === "already-decided" ? { decision: projectDecision(refusal.decision) } : {}),
    ...(request ? { request } : {}),
  };
  return c.json(body, STATUS[refusal.code]);
}

export function invalid(c: Context, pointers: readonly JsonProblem[], status: 400 | 422 = 422): Response {
  const message = pointers.map(({ pointer, text }) => (pointer ? `${pointer}: ${text}` : text)).join("; ");
  return c.json({ error: { code: "body-invalid", message, pointers } } satisfies ErrorBody, status);
}

/** The same whether it never existed or belongs to another tenant. */
export function unknown(c: Context, what: "task" | "request"): Response {
  return refused(c, what === "task" ? { code: "task-unknown" } : { code: "request-unknown", requestId: "" });
}

export function tooManyStreams(c: Context): Response {
  const message = "Too many streams are open for this token; close some.";
  return c.json({ error: { code: "too-many-streams", message } } satisfies ErrorBody, 429);
}

/** A broken world. What is not known by name is told to nobody outside. */
export function faulted(c: Context, error: unknown): Response {
  const status = isFault(error) ? FAULT_STATUS[error.code] : undefined;
  if (isFault(error) && status !== undefined) {
    if (error.retry) c.header("retry-after", "1");
    return c.json({ error: { code: error.code, message: error.message } } satisfies ErrorBody, status);
  }
  const message = "Something went wrong here; the server's own output says what.";
  return c.json({ error: { code: "internal", message } } satisfies ErrorBody, 500);
}

function pointersOf(refusal: Refusal): { pointers?: readonly JsonProblem[] } {
  if (refusal.code !== "choice-invalid" && refusal.code !== "message-invalid") return {};
  return { pointers: [{ pointer: refusal.pointer, text: refusal.detail }] };
}

function describe(refusal: Refusal): string {
  switch (refusal.code) {
    case "task-unknown":
      return "There is no such task.";
    case "request-unknown":
      return "There is no such request.";
    case "call-unknown":
      return `There is no call ${refusal.callId}.`;
    case "task-exists":
      return "There is such a task already.";
    case "task-over":
      return `The task is ${refusal.state}: ${refusal.message}`;
    case "task-unsettled":
    case "claim-lost":
    case "not-allowed":
    case "principal-unfit":
      return `${refusal.detail}.`;
    case "already-decided":
      return `It was ${describeDecision(projectDecision(refusal.decision))}. Nothing changed.`;
    case "turn-stale":
      return `Turn ${refusal.turn} came late; ${refusal.expected} is next.`;
    case "message-reused":
      return `The message id ${refusal.messageId} was used before, for something else.`;
    case "request-expired":
      return `It expired at ${toIso(refusal.expiredAtMs)}. Nothing changed.`;
    case "digest-differs":
      return "What would run is not what was shown. Nothing was decided; look at the request again.";
    case "choice-invalid":
    case "message-invalid":
      return refusal.pointer ? `${refusal.pointer}: ${refusal.detail}` : refusal.detail;
    case "too-many-requests":
      return `At most ${refusal.max} requests of a task can be open.`;
    default:
      return unreachable(refusal);
  }
}
