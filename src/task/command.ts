/** What can be asked of a task, and how it says no. */
import type { Message, TaskKey, ToolCall, Usage } from "./event.ts";
import type { Json, JsonObject } from "./json.ts";
import type { Decision, Digest, Principal, Request, RequestDraft, RequestId, ToolFacts } from "./request.ts";
import type { TaskState } from "./task.ts";
import type { Blob } from "./verdict.ts";

/** What a person wants to do with a request. */
export interface Choice {
  readonly requestId: RequestId;
  readonly choice: "approve" | "deny" | "answer" | "cancel";
  /** What the person saw; checked when sent. */
  readonly digest?: Digest;
  readonly reason?: string;
  readonly values?: JsonObject;
  /** Other arguments instead of those shown, with what the tool says they would do. */
  readonly edited?: {
    readonly args: JsonObject;
    readonly facts: ToolFacts;
    /** What stands beside the log of them. */
    readonly blobs?: readonly Blob[];
  };
}

/** What a model wants to do; with a `problem` it could not be read, and is refused with these words. */
export interface WantedCall extends Omit<ToolCall, "callId"> {
  readonly problem?: string;
}

export type Command =
  | {
      readonly type: "submit";
      readonly agent: string;
      readonly contextId: string;
      readonly principal: Principal;
      readonly message: Message;
      /** How it waits for a person: put away, or in its worker's slot. */
      readonly mode?: "async" | "blocking";
      /** Names of the headers that its client wants forwarded; their values never stand in the log. */
      readonly forwards?: readonly string[];
    }
  /** One message is one command: its choices count together or not at all. */
  | {
      readonly type: "receive";
      readonly message: Message;
      readonly principal: Principal;
      readonly choices: readonly Choice[];
    }
  | { readonly type: "choose"; readonly choice: Choice; readonly principal: Principal }
  | {
      readonly type: "reply";
      readonly turn: number;
      readonly text: string;
      readonly calls: readonly WantedCall[];
      readonly usage?: Usage;
      /** Arguments that stand beside the log; the calls have their hashes. */
      readonly blobs?: readonly Blob[];
      /** How many messages of the task the model had before it when it said this; absent: all of them. */
      readonly messagesHeard?: number;
    }
  | { readonly type: "refuse-call"; readonly callId: string; readonly code: string; readonly text: string }
  | { readonly type: "open"; readonly drafts: readonly RequestDraft[] }
  /** The tool, its rule or its plan is no longer what was asked about: ask about what is there now. */
  | {
      readonly type: "ask-again";
      readonly callId: string;
      readonly draft: RequestDraft & { kind: "approval" };
      /** Nothing happens unless this request still governs the call, and is still open, or approved. */
      readonly replaces?: { readonly requestId: RequestId; readonly state: "open" | "approved" };
    }
  /** Close every request whose deadline has passed. */
  | { readonly type: "expire" }
  | {
      readonly type: "claim";
      readonly callId: string;
      readonly token: string;
      /** Whether the tool's rule, as it is now, asks a person. */
      readonly gated: boolean;
      readonly facts: ToolFacts;
      /** The tool may run again under the same idempotency key without asking. */
      readonly mayRetry: boolean;
    }
  | {
      readonly type: "finish";
      readonly effectId: string;
      readonly token: string;
      readonly outcome: "done" | "failed";
      readonly result: Json;
    }
  /** A claim was cut off: ask, fail, or leave it to be claimed again. */
  | {
      readonly type: "doubt";
      readonly effectId: string;
      readonly why: string;
      readonly onAmbiguous: "ask" | "fail" | "retry";
      readonly draft?: RequestDraft & { kind: "in-doubt" };
    }
  | {
      readonly type: "update-artifact";
      readonly artifact: JsonObject;
      readonly append: boolean;
      readonly lastChunk: boolean;
    }
  | { readonly type: "cancel"; readonly principal: Principal }
  | { readonly type: "complete"; readonly message: string }
  | { readonly type: "fail"; readonly message: string; readonly code: string }
  | { readonly type: "reject"; readonly message: string };

/** What the caller brings so that `decide` needs no clock, no ids and no store. */
export interface Circumstances {
  readonly key: TaskKey;
  /** The store's clock. */
  readonly nowMs: number;
  readonly epoch: string;
}

/** How a task says no. Each names what stands in the way, so that the caller can be told. */
export type Refusal =
  | { readonly code: "task-unknown" }
  | { readonly code: "task-exists" }
  | { readonly code: "task-over"; readonly state: TaskState; readonly message: string }
  | { readonly code: "task-unsettled"; readonly detail: string }
  | { readonly code: "request-unknown"; readonly requestId: string }
  | { readonly code: "request-expired"; readonly requestId: RequestId; readonly expiredAtMs: number }
  | { readonly code: "already-decided"; readonly decision: Decision & { readonly atMs: number } }
  | { readonly code: "digest-differs"; readonly requestId: RequestId; readonly request?: Request }
  | {
      readonly code: "choice-invalid";
      readonly requestId: RequestId;
      readonly pointer: string;
      readonly detail: string;
    }
  | { readonly code: "too-many-requests"; readonly max: number }
  | { readonly code: "call-unknown"; readonly callId: string }
  | { readonly code: "not-allowed"; readonly callId: string; readonly detail: string }
  | { readonly code: "claim-lost"; readonly effectId: string; readonly detail: string }
  | { readonly code: "turn-stale"; readonly turn: number; readonly expected: number }
  | { readonly code: "message-reused"; readonly messageId: string }
  | { readonly code: "message-invalid"; readonly pointer: string; readonly detail: string }
  | { readonly code: "principal-unfit"; readonly detail: string };

export type RefusalCode = Refusal["code"];
