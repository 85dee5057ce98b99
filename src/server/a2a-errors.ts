/**
 * How "no" sounds in A2A: the one place where our words become its numbers, for both error profiles. Errors are the
 * SDK's own, so that every transport of it understands them.
 */
import {
  A2A_ERROR_CODE,
  A2AError,
  ContentTypeNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  toJsonRpcError,
  UnsupportedOperationError,
} from "@a2a-js/sdk/errors";
import type { Scope, ServerConfig } from "../config/config.ts";
import { isFault, unreachable } from "../errors.ts";
import type { Refusal } from "../task/command.ts";
import type { Json, JsonObject, JsonProblem } from "../task/json.ts";

export type Profile = ServerConfig["a2a"]["profile"];

/** What is wrong with a request, by places in it. */
export class InvalidRequest extends Error {
  readonly problems: readonly JsonProblem[];
  readonly code: number;

  constructor(problems: readonly JsonProblem[], code: number = A2A_ERROR_CODE.INVALID_PARAMS) {
    super(problems.map(({ pointer, text }) => (pointer ? `${pointer}: ${text}` : text)).join("; "));
    this.problems = problems;
    this.code = code;
  }
}

export function invalid(pointer: string, text: string): InvalidRequest {
  return new InvalidRequest([{ pointer, text }]);
}

export function methodNotFound(method: string): InvalidRequest {
  const problems = [{ pointer: "/method", text: `there is no method "${method.slice(0, 100)}"` }];
  return new InvalidRequest(problems, A2A_ERROR_CODE.METHOD_NOT_FOUND);
}

/** The same whether it never existed, is another agent's, or belongs to another tenant. */
export function taskNotFound(): A2AError {
  return new TaskNotFoundError({ message: "There is no such task." });
}

export function unsupported(message: string, metadata?: Record<string, string>): A2AError {
  return new UnsupportedOperationError({ message, ...(metadata ? { metadata } : {}) });
}

/** The same by its number; its reason says that somebody else may. */
export function notAllowed(message: string, reason: NotAllowed, metadata?: Record<string, string>): A2AError {
  return Object.assign(unsupported(message, metadata), { reason });
}

type NotAllowed = "DECIDE_SCOPE_REQUIRED" | "SCOPE_REQUIRED" | "SELF_APPROVAL_DENIED";
const NOT_ALLOWED: ReadonlySet<string> = new Set<NotAllowed>([
  "DECIDE_SCOPE_REQUIRED",
  "SCOPE_REQUIRED",
  "SELF_APPROVAL_DENIED",
]);

export function notCancelable(message: string): A2AError {
  return new TaskNotCancelableError({ message });
}

export function contentTypeWrong(message: string): A2AError {
  return new ContentTypeNotSupportedError({ message });
}

export function scopeMissing(scope: Scope): A2AError {
  const reason = scope === "decide" ? "DECIDE_SCOPE_REQUIRED" : "SCOPE_REQUIRED";
  return notAllowed(`This token lacks the scope "${scope}".`, reason, { scope });
}

/** A refusal of the task that is not told in its metadata. */
export function refusalError(refusal: Refusal): Error {
  switch (refusal.code) {
    case "task-unknown":
      return taskNotFound();
    case "request-unknown":
      return invalid("/message", `${refusal.requestId} is not a request of this task`);
    case "choice-invalid":
      return invalid(`/message${refusal.pointer}`, `${refusal.requestId}: ${refusal.detail}`);
    case "message-invalid":
      return invalid(`/message${refusal.pointer}`, refusal.detail);
    case "message-reused":
      return invalid("/message/messageId", "was used before, for something else");
    case "task-over":
      return unsupported(`The task is ${refusal.state}: ${refusal.message}`, { state: refusal.state });
    case "principal-unfit":
      return unsupported(`${refusal.detail}.`);
    case "request-expired":
    case "already-decided":
    case "digest-differs":
    case "task-exists":
    case "task-unsettled":
    case "too-many-requests":
    case "call-unknown":
    case "not-allowed":
    case "claim-lost":
    case "turn-stale":
      return unsupported(`The task does not take this now (${refusal.code}).`);
    default:
      return unreachable(refusal);
  }
}

/** One error in all the forms in which it is told. */
export interface ToldError {
  /** JSON-RPC. */
  readonly code: number;
  readonly message: string;
  readonly details: readonly JsonObject[];
  readonly httpStatus: number;
  /** The name of the gRPC status, which HTTP+JSON tells too. */
  readonly status: string;
  /** It is nobody's mistake but ours, and is told to nobody outside. */
  readonly isOurs: boolean;
}

const OURS = "Something went wrong here; the server's own output says what.";

export function tellError(error: unknown, profile: Profile): ToldError {
  if (error instanceof InvalidRequest) {
    const { code, message, problems } = error;
    const fieldViolations = problems.map(({ pointer, text }) => ({ field: pointer, description: text }));
    const info = new RequestMalformedError({ message }).toErrorInfo();
    const violations = { "@type": "type.googleapis.com/google.rpc.BadRequest", fieldViolations };
    const isMethod = code === A2A_ERROR_CODE.METHOD_NOT_FOUND;
    const details = isMethod ? [] : [{ ...info, metadata: {} }, violations];
    const http = isMethod ? { httpStatus: 404, status: "NOT_FOUND" } : { httpStatus: 400, status: "INVALID_ARGUMENT" };
    return { code, message, details, ...http, isOurs: false };
  }
  if (error instanceof A2AError) {
    const { code, message } = toJsonRpcError(error);
    const details = [{ metadata: {}, ...error.toErrorInfo() }];
    return { code, message, details, ...httpOf(error, profile), isOurs: false };
  }
  const isAway = isFault(error) && error.retry;
  return {
    code: A2A_ERROR_CODE.INTERNAL_ERROR,
    message: isAway ? "The store is away; send it again." : OURS,
    details: [],
    httpStatus: isAway ? 503 : 500,
    status: isAway ? "UNAVAILABLE" : "INTERNAL",
    isOurs: !isAway,
  };
}

type Http = Pick<ToldError, "httpStatus" | "status">;

/** 1.0.1; then what 1.0.0 says otherwise. */
const HTTP: Readonly<Record<string, Http>> = {
  TaskNotFoundError: { httpStatus: 404, status: "NOT_FOUND" },
  ContentTypeNotSupportedError: { httpStatus: 400, status: "INVALID_ARGUMENT" },
  RequestMalformedError: { httpStatus: 400, status: "INVALID_ARGUMENT" },
  InvalidAgentResponseError: { httpStatus: 500, status: "INTERNAL" },
};
const HTTP_1_0_0: Readonly<Record<string, Http>> = {
  ...HTTP,
  TaskNotCancelableError: { httpStatus: 409, status: "FAILED_PRECONDITION" },
  ContentTypeNotSupportedError: { httpStatus: 415, status: "INVALID_ARGUMENT" },
  InvalidAgentResponseError: { httpStatus: 502, status: "INTERNAL" },
  PushNotificationNotSupportedError: { httpStatus: 400, status: "UNIMPLEMENTED" },
  UnsupportedOperationError: { httpStatus: 400, status: "UNIMPLEMENTED" },
  VersionNotSupportedError: { httpStatus: 400, status: "UNIMPLEMENTED" },
};

function httpOf({ name, reason }: A2AError, profile: Profile): Http {
  if (NOT_ALLOWED.has(reason)) return { httpStatus: 403, status: "PERMISSION_DENIED" };
  const known = (profile === "1.0.0" ? HTTP_1_0_0 : HTTP)[name];
  return known ?? { httpStatus: 400, status: "FAILED_PRECONDITION" };
}

export function encodeRpcError(told: ToldError, id: Json): JsonObject {
  const { code, message, details } = told;
  return { jsonrpc: "2.0", id, error: { code, message, ...(details.length > 0 ? { data: details } : {}) } };
}

export function encodeRestError({ httpStatus, status, message, details }: ToldError): JsonObject {
  return { error: { code: httpStatus, status, message, details } };
}

/** 0.3 knows no profile: a code, words, and an object beside them. */
export function encodeLegacyError({ code, message, details }: ToldError): JsonObject {
  const data = Object.assign({}, ...details.map(({ "@type": _type, ...detail }) => detail));
  return { code, message, ...(details.length > 0 ? { data } : {}) };
}
