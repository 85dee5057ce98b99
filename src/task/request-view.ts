/** What is shown of a request: JSON for people and programs, times as ISO text. Derived from the log, never kept. */
import { unreachable } from "../errors.ts";
import type { Json, JsonObject } from "./json.ts";
import {
  type Decision,
  type Digest,
  IN_DOUBT_ANSWERS,
  type Outcome,
  type Request,
  type RequestId,
  type RequestKind,
  type Risk,
} from "./request.ts";
import type { Effect, RequestRecord, Task } from "./task.ts";

export interface RequestView {
  readonly id: RequestId;
  readonly kind: RequestKind;
  readonly status: "open" | Outcome;
  readonly taskId: string;
  readonly contextId: string;
  readonly agent: string;
  /** The agents that asked, root first. */
  readonly path: readonly string[];
  readonly title: string;
  readonly prompt: string;
  /** What the agent said when it made the call: its own words, checked by nobody. */
  readonly agentSays: string | null;
  readonly tool: string | null;
  readonly args: JsonObject | null;
  /** What would run, in full. */
  readonly plan: JsonObject | null;
  /** JSON Schema of the values that an answer must have. */
  readonly schema: JsonObject | null;
  /** Where an auth step is taken. */
  readonly url?: string;
  readonly digest: Digest;
  readonly editable: boolean;
  readonly risk: Risk;
  readonly rule: { readonly file: string; readonly line: number } | null;
  readonly openedAt: string;
  readonly expiresAt: string | null;
  readonly onTimeout: "fail" | "deny";
  readonly supersedes?: RequestId;
  readonly decision?: DecisionView;
  readonly effect?: EffectView;
}

export interface DecisionView {
  readonly outcome: Outcome;
  /** The principal's name; with `cause`, the one on whose behalf nobody decided. */
  readonly by: string;
  readonly via: string;
  readonly at: string;
  /** Nobody decided: the deadline, the end of the task, or a changed rule did. */
  readonly cause?: "deadline" | "task" | "policy";
  readonly reason?: string;
  readonly values?: JsonObject;
  readonly editedArgs?: JsonObject;
}

/** The execution that the decision allowed. */
export interface EffectView {
  readonly state: "running" | "done" | "failed" | "unknown";
  readonly attempt: number;
  readonly result?: Json;
  /** A result that is too large to stand here: its beginning and its size. */
  readonly head?: string;
  readonly bytes?: number;
  readonly why?: string;
}

export function projectRequest(task: Task, { request, openedAtMs, decision }: RequestRecord): RequestView {
  const effect = Object.values(task.effects).findLast(({ requestId }) => requestId === request.id);
  return {
    id: request.id,
    kind: request.kind,
    status: decision?.outcome ?? "open",
    taskId: task.key.id,
    contextId: task.contextId,
    agent: task.agent,
    path: [task.agent],
    title: request.title,
    prompt: request.prompt,
    agentSays: wordsOf(task, request),
    ...contentOf(request),
    digest: request.digest,
    risk: request.risk,
    openedAt: toIso(openedAtMs),
    expiresAt: request.expiresAtMs === null ? null : toIso(request.expiresAtMs),
    onTimeout: request.onTimeout,
    ...(decision ? { decision: projectDecision(decision) } : {}),
    ...(effect ? { effect: projectEffect(effect) } : {}),
  };
}

export function projectDecision(decision: Decision & { readonly atMs: number }): DecisionView {
  const { outcome, principal, atMs, by, reason, values, editedArgs } = decision;
  return {
    outcome,
    by: principal.name,
    via: principal.via,
    at: toIso(atMs),
    ...(by ? { cause: by } : {}),
    ...(reason !== undefined ? { reason } : {}),
    ...(values !== undefined ? { values } : {}),
    ...(editedArgs !== undefined ? { editedArgs } : {}),
  };
}

/** Who closed it, how and why, as a sentence's end: `denied by ana: wrong cluster`. */
export function describeDecision({ outcome, by, cause, reason, editedArgs }: DecisionView): string {
  const why = reason === undefined || reason === "" ? "" : `: ${reason}`;
  switch (cause) {
    case "deadline":
      return "expired, nobody decided in time";
    case "policy":
      return "replaced, because what would run has changed";
    case "task":
      return `${outcome}, because the task ended`;
    case undefined:
      return `${outcome} by ${by}${editedArgs ? " with changed arguments" : ""}${why}`;
    default:
      return unreachable(cause);
  }
}

export function toIso(ms: number): string {
  return new Date(ms).toISOString();
}

const IN_DOUBT_SCHEMA: JsonObject = {
  type: "object",
  properties: { outcome: { type: "string", enum: IN_DOUBT_ANSWERS } },
  required: ["outcome"],
  additionalProperties: false,
};

function contentOf(request: Request) {
  const none = { tool: null, args: null, plan: null, schema: null, editable: false, rule: null } as const;
  switch (request.kind) {
    case "approval": {
      const { tool, args, facts, editable, rule = null, supersedes } = request;
      return { ...none, tool, args, plan: facts.plan, editable, rule, ...(supersedes ? { supersedes } : {}) };
    }
    case "in-doubt":
      return { ...none, tool: request.tool, args: request.args, plan: request.facts.plan, schema: IN_DOUBT_SCHEMA };
    case "input":
      return { ...none, schema: request.schema };
    case "auth":
      return { ...none, url: request.url };
    default:
      return unreachable(request);
  }
}

function wordsOf(task: Task, request: Request): string | null {
  if (!("callId" in request) || request.callId === undefined) return null;
  const turn = task.calls[request.callId]?.turn;
  return task.turns.find((candidate) => candidate.turn === turn)?.text || null;
}

function projectEffect({ status, attempt }: Effect): EffectView {
  switch (status.type) {
    case "claimed":
      return { state: "running", attempt };
    case "unknown":
      return { state: "unknown", attempt, why: status.why };
    case "done":
    case "failed": {
      const { result } = status;
      if ("value" in result) return { state: status.type, attempt, result: result.value };
      return { state: status.type, attempt, head: result.head, bytes: result.bytes };
    }
    default:
      return unreachable(status);
  }
}
