/** What the runtime needs of a model: one reply to one prompt. Nothing is kept between calls. */
import type { Usage } from "../task/event.ts";
import type { JsonObject } from "../task/json.ts";

export interface Model {
  /**
   * One call. Text that arrives before the whole goes to `onText`. Throws `ModelFailed` for what a person must mend
   * (key, name, quota) and `ModelBusy` when the provider wants to be asked again later.
   */
  reply(prompt: Prompt, options: ReplyOptions): Promise<ModelReply>;
}

export interface ReplyOptions {
  readonly signal: AbortSignal;
  readonly onText?: (delta: string) => void;
}

export interface Prompt {
  readonly system: string;
  /** Earlier tasks of the conversation first, then this one, in order. */
  readonly messages: readonly PromptMessage[];
  readonly tools: readonly ToolSpec[];
  /** The text that opened the task. */
  readonly opening: string;
  /** The number of this model call in its task, from 1. */
  readonly turn: number;
}

export type PromptMessage =
  | { readonly role: "user"; readonly text: string }
  | { readonly role: "assistant"; readonly text: string; readonly calls: readonly PromptCall[] }
  | {
      readonly role: "tool";
      readonly callId: string;
      readonly tool: string;
      /** What became of the call, in words for the model. */
      readonly text: string;
      /** `not-run`: denied, expired or canceled; `answered`: a person's answer to ask_user. */
      readonly outcome: "done" | "failed" | "not-run" | "refused" | "unknown" | "answered";
    };

export interface PromptCall {
  readonly callId: string;
  readonly tool: string;
  readonly args: JsonObject;
}

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
}

export interface ModelReply {
  readonly text: string;
  readonly calls: readonly ReplyCall[];
  readonly usage?: Usage;
}

export interface ReplyCall {
  readonly tool: string;
  readonly args: JsonObject;
  readonly modelCallId?: string;
  /** What the model wrote is no JSON object: `args` is empty, the call must be refused, and this is why, for the model. */
  readonly problem?: string;
}

/** A rate limit or an overload: ask again after `retryAfterMs`, or when you like if it does not say. */
export class ModelBusy extends Error {
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs: number | undefined, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "ModelBusy";
    this.retryAfterMs = retryAfterMs;
  }
}

/** Asking again does not help: the key is wrong, the model does not exist, the prompt is too long. */
export class ModelFailed extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "ModelFailed";
  }
}
