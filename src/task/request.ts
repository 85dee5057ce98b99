/** What a person is asked, and the one thing that closes it. Requests never change once opened. */
import type { JsonObject } from "./json.ts";

export type RequestId = `input-${string}-${number}`;
export type Digest = `sha256:${string}`;

export type Outcome = "approved" | "denied" | "answered" | "expired" | "canceled" | "superseded";
export type Risk = "low" | "medium" | "high";

/** Who is calling: from the credential, never from the body. */
export interface Principal {
  readonly name: string;
  readonly issuer: string;
  readonly tenant: string;
  readonly via: string;
}

/** What the digest binds besides the ids: the tool as it is now, its rule, and what it would do. */
export interface ToolFacts {
  /** Which tool this is, beyond its name: kind, server, version. */
  readonly identity: string;
  readonly schemaHash: string;
  /** The hash of this tool's effective rule, not of the whole file. */
  readonly policyVersion: string;
  /** What would run, in full: argv, resolved executable, hash of the file before. */
  readonly plan: JsonObject;
}

interface RequestBase {
  readonly id: RequestId;
  readonly digest: Digest;
  readonly title: string;
  readonly prompt: string;
  readonly risk: Risk;
  /** Absolute, by the store's clock; null waits for ever. */
  readonly expiresAtMs: number | null;
  readonly onTimeout: "fail" | "deny";
}

export interface ApprovalRequest extends RequestBase {
  readonly kind: "approval";
  readonly callId: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly facts: ToolFacts;
  readonly editable: boolean;
  readonly rule?: { readonly file: string; readonly line: number };
  readonly supersedes?: RequestId;
}

export interface InputRequest extends RequestBase {
  readonly kind: "input";
  /** The call that asked, when a tool did; its answer is the call's result. */
  readonly callId?: string;
  /** JSON Schema of `values`. */
  readonly schema: JsonObject;
}

export interface AuthRequest extends RequestBase {
  readonly kind: "auth";
  readonly url: string;
}

/** After a crash in mid-tool: did it happen? */
export interface InDoubtRequest extends RequestBase {
  readonly kind: "in-doubt";
  readonly callId: string;
  readonly effectId: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly facts: ToolFacts;
}

export type Request = ApprovalRequest | InputRequest | AuthRequest | InDoubtRequest;
export type RequestKind = Request["kind"];
export const REQUEST_KINDS = ["approval", "input", "auth", "in-doubt"] as const satisfies readonly RequestKind[];

/** A request before the task has given it an id and the digest. */
export type RequestDraft = Request extends infer R ? (R extends Request ? Omit<R, "id" | "digest"> : never) : never;

export const IN_DOUBT_ANSWERS = ["done", "failed", "retry"] as const;
export type InDoubtAnswer = (typeof IN_DOUBT_ANSWERS)[number];

/** What closed a request. */
export interface Decision {
  readonly requestId: RequestId;
  readonly outcome: Outcome;
  readonly principal: Principal;
  readonly digest: Digest;
  /** Set when nobody decided: the deadline, the end of the task, or a changed rule did. */
  readonly by?: "deadline" | "task" | "policy";
  readonly editedArgs?: JsonObject;
  /** The digest of what runs after an edit. */
  readonly effectDigest?: Digest;
  readonly values?: JsonObject;
  readonly reason?: string;
}

export function requestId(taskId: string, n: number): RequestId {
  return `input-${taskId}-${n}`;
}

/** The task and the counter behind a request id, or undefined when it is none. */
export function parseRequestId(id: string): { taskId: string; n: number } | undefined {
  const match = /^input-(.+)-([1-9][0-9]{0,8})$/.exec(id);
  return match?.[1] && match[2] ? { taskId: match[1], n: Number(match[2]) } : undefined;
}
