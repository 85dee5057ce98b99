/**
 * What a module writes to make an agent of a function:
 *
 *     export default defineAgent(async ({ message, step, ask, tool }) => { …; return "Deployed."; });
 *
 * The function is run again from the log after every pause, so everything it does goes through what it is given, under
 * a key of its own. Whatever else it waits for is done again each time.
 */
import type { Message } from "../task/event.ts";
import type { Json, JsonObject } from "../task/json.ts";
import type { Decision, Principal } from "../task/request.ts";
import type { StandardSchema } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";

export interface AgentDefinition {
  readonly type: typeof DEFINITION;
  readonly run: AgentFunction;
  readonly description: string;
  /** Tools that the module brings along, each with its own rule. */
  readonly tools: readonly Tool[];
}

/** The text is the task's last word; a function that only replies or rejects needs none. */
export type AgentFunction = (context: AgentContext) => Promise<string | undefined>;

export interface AgentContext {
  /** What opened the task. */
  readonly message: Message;
  /**
   * Runs `work` once, and answers with its result from the log ever after. If the process dies in the middle, a person
   * is asked what became of it, unless it may run again (`idempotent`).
   */
  step<T>(key: string, work: StepFunction<T>, options?: { readonly idempotent?: boolean }): Promise<T>;
  /** Asks a person. Nobody answering, or closing the question, is `CallDenied`. */
  ask(key: string, form: ChoicesForm): Promise<Answer<{ readonly answer: readonly string[] }>>;
  ask(key: string, form: QuestionForm): Promise<Answer<{ readonly answer: string }>>;
  ask(key: string, form: QuestionsForm): Promise<Answer<Readonly<Record<string, string | readonly string[]>>>>;
  ask<T>(key: string, form: TypedForm<T>): Promise<Answer<T>>;
  ask(key: string, form: SchemaForm): Promise<Answer<JsonObject>>;
  /** Calls a tool through the gate and answers with its result. Throws `CallDenied` or `ToolFailed`. */
  tool(key: string, tool: ToolName, args?: JsonObject): Promise<Json>;
  tool<T>(key: string, tool: ToolName, args: JsonObject, options: { readonly result: Schema<T> }): Promise<T>;
  /** What a tool really ran with: whoever approved it may have changed the arguments. */
  ran(key: string): { readonly args: JsonObject; readonly changedBy: Principal | undefined };
  /** Writes an artifact, once; its key is its id. */
  artifact(key: string, content: ArtifactContent): Promise<void>;
  /** Answers the message, and that is all: nothing else may be done in this task. */
  reply(parts: string | readonly JsonObject[]): void;
  /** Ends the task as rejected, now. */
  reject(reason: string): never;
}

/** A name, or anything that bears one; the agent must have been given the tool. */
export type ToolName = string | Pick<Tool, "name">;

/** Inside, nothing else of the context may be used. The result must be JSON. */
export type StepFunction<T> = (work: {
  /** The same for every attempt of this step. */
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}) => T | Promise<T>;

export interface Answer<T> {
  readonly values: T;
  /** The message that brought the answer; undefined when it came another way. */
  readonly message: Message | undefined;
}

export interface QuestionForm {
  readonly title?: string;
  readonly question: string;
  readonly choices?: readonly string[];
  readonly multiple?: false;
}

export interface ChoicesForm extends Omit<QuestionForm, "multiple" | "choices"> {
  readonly choices: readonly string[];
  readonly multiple: true;
}

export interface QuestionsForm {
  readonly title?: string;
  /** The answers are `answer1`, `answer2`, …, or as named. */
  readonly questions: readonly {
    readonly name?: string;
    readonly question: string;
    readonly choices?: readonly string[];
    readonly multiple?: boolean;
  }[];
}

/** The values are checked; those that do not fit are `AnswerInvalid`. */
export interface TypedForm<T> extends Pick<QuestionForm, "title" | "question"> {
  readonly schema: Schema<T>;
}

/** The values are as the person's client sent them. */
export interface SchemaForm extends Pick<QuestionForm, "title" | "question"> {
  /** JSON Schema of the values. */
  readonly schema: JsonObject;
}

export type AskForm = ChoicesForm | QuestionForm | QuestionsForm | TypedForm<unknown> | SchemaForm;

export interface ArtifactContent {
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly JsonObject[];
  readonly metadata?: JsonObject;
}

/** zod and others; for `ask` it must also be able to say what it is as JSON Schema (zod 4 is). */
export type Schema<T> = StandardSchema<unknown, T>;

/** What became of a call stands in the log: it will be thrown whenever the function is run again. */
export abstract class CallError extends Error {
  abstract readonly code: "call-denied" | "tool-failed" | "outcome-unknown" | "answer-invalid";
  readonly key: string;

  constructor(key: string, message: string) {
    super(message);
    this.name = new.target.name;
    this.key = key;
  }
}

/** It did not run, or was not answered. */
export class CallDenied extends CallError {
  readonly code = "call-denied";
  readonly outcome: "refused" | Exclude<Decision["outcome"], "approved" | "answered" | "superseded">;
  readonly reason: string;
  /** Undefined when no person said so: it was refused by a rule, or its time ran out. */
  readonly by: Principal | undefined;

  constructor(key: string, denial: Pick<CallDenied, "outcome" | "reason" | "by">) {
    const by = denial.by ? ` by ${denial.by.name}` : "";
    super(key, `"${key}" was ${denial.outcome}${by}: ${denial.reason}`);
    this.outcome = denial.outcome;
    this.reason = denial.reason;
    this.by = denial.by;
  }
}

/** It ran, or began to, and failed. */
export class ToolFailed extends CallError {
  readonly code = "tool-failed";
  readonly result: Json;

  constructor(key: string, result: Json) {
    super(key, `"${key}" failed: ${typeof result === "string" ? result : JSON.stringify(result)}`);
    this.result = result;
  }
}

/** It was cut off, and whoever was asked would not say what became of it. */
export class CallUnknown extends CallError {
  readonly code = "outcome-unknown";

  constructor(key: string) {
    super(key, `the outcome of "${key}" is unknown: it was cut off, and nobody has said what became of it`);
  }
}

/** Somebody answered, but not what was asked for; ask again under another key. */
export class AnswerInvalid extends CallError {
  readonly code = "answer-invalid";

  constructor(key: string, problem: string) {
    super(key, `what came for "${key}" does not fit: ${problem}`);
  }
}

// A word, not a symbol: a module may have another copy of this package.
const DEFINITION = "holdpoint-agent";

export function defineAgent(
  run: AgentFunction,
  { description = "", tools = [] }: Partial<Pick<AgentDefinition, "description" | "tools">> = {},
): AgentDefinition {
  return { type: DEFINITION, run, description, tools };
}

/** Whether a module's default export is an agent. */
export function isAgentDefinition(value: unknown): value is AgentDefinition {
  return typeof value === "object" && value !== null && "type" in value && value.type === DEFINITION;
}
