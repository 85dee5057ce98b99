/** What a tool is to the gate: what it would do (the plan, shown and hashed), and how exactly that is done. */
import type { Json, JsonObject } from "../task/json.ts";
import type { Risk, ToolFacts } from "../task/request.ts";

export interface Tool {
  readonly name: string;
  /** For the model. */
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: JsonObject;
  /** The one argument that may be longer than all others together may be (a file's content). */
  readonly longArgument?: string;
  /** Whether its rule asks a person. */
  readonly gated: boolean;
  readonly risk: Risk;
  readonly editable: boolean;
  /** May run again under the same idempotency key without a second effect. */
  readonly idempotent: boolean;
  /** What to do when a crash leaves the outcome unknown; `retry` counts only for an idempotent tool. */
  readonly onAmbiguous: "ask" | "fail" | "retry";
  /** Where its rule stands. */
  readonly rule?: { readonly file: string; readonly line: number };
  /**
   * What these arguments would do now, in full; without any effect. Throws `CallRefused` for arguments that are
   * invalid or not allowed: that is an answer for the model, not a failure.
   */
  prepare(args: JsonObject): Promise<ToolFacts>;
  promptFor(args: JsonObject): string;
  /** A call of this tool is a question to a person, whose answer is its result; it never runs. */
  readonly question?: (args: JsonObject) => Question;
  /**
   * After a crash in mid-run: what the world says. `approved` is the plan that a person saw; nobody saw one for an
   * ungated call. Without this a person is asked.
   */
  readonly settle?: (args: JsonObject, approved: JsonObject | undefined) => Promise<"done" | "not-done" | "unknown">;
  run(work: Work): Promise<Finished>;
}

export interface Question {
  readonly title: string;
  readonly prompt: string;
  /** JSON Schema of the values. */
  readonly schema: JsonObject;
}

/** All that an executor gets: what was shown, hashed and approved. */
export interface Work {
  readonly args: JsonObject;
  readonly facts: ToolFacts;
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
  /**
   * Headers of the client that started this, for tools that forward some by name. They are credentials: never shown,
   * never hashed, never logged.
   */
  readonly headers?: Readonly<Record<string, string>>;
  /** The client sent some, and the process that had them is gone. */
  readonly headersLost?: boolean;
}

export type Finished =
  | { readonly outcome: "done" | "failed"; readonly result: Json }
  /** It was sent off and its answer was lost: it may have run or not. */
  | { readonly outcome: "unknown"; readonly why: string };

/** A call that may not even be proposed; the text is for the model and says what would be allowed. */
export class CallRefused extends Error {
  readonly code: "arguments-invalid" | "not-allowed" | "tool-unavailable";

  constructor(code: CallRefused["code"], message: string) {
    super(message);
    this.name = "CallRefused";
    this.code = code;
  }
}
