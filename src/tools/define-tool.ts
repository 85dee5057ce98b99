/** A tool written in code: typed from its schema, gated by its definition, run with exactly what was shown. */
import { sha256 } from "../task/digest.ts";
import {
  canonicalJson,
  escapePointer,
  findJsonProblem,
  isObject,
  type Json,
  type JsonObject,
  type JsonProblem,
} from "../task/json.ts";
import type { Risk } from "../task/request.ts";
import { renderPrompt } from "./prompt.ts";
import { createArgumentCheck, schemaHash } from "./schema.ts";
import { CallRefused, type Tool } from "./tool.ts";

/** The part of Standard Schema (standardschema.dev) that is used: zod, Valibot, ArkType and others have it. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Standard JSON Schema; zod has it. */
    readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
  };
}

type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

type InputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];
type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

export interface ToolDefinition<S extends StandardSchema> {
  readonly name: string;
  /** For the model. */
  readonly description: string;
  readonly parameters: S;
  /** Needed where the schema cannot say by itself what it is as JSON Schema. */
  readonly jsonSchema?: JsonObject;
  readonly requiresApproval: boolean;
  readonly risk?: Risk;
  /** Whether a person may change the arguments; true unless said otherwise. */
  readonly editable?: boolean;
  /** May run again under the same idempotency key without a second effect. */
  readonly idempotent?: boolean;
  readonly onAmbiguous?: "ask" | "fail" | "retry";
  /** What a person is asked, instead of the usual text; of the arguments as they were sent. */
  readonly prompt?: (args: InputOf<S>) => string;
  /** What these arguments would do, in full: shown, hashed, and computed again before it runs. */
  readonly plan?: (args: OutputOf<S>) => JsonObject | Promise<JsonObject>;
  /**
   * Does it, and returns what the model gets. What it throws is a failure, and its message goes to the model; it throws
   * `OutcomeUnknown` when it cannot say whether it happened.
   */
  readonly run: (args: OutputOf<S>, context: RunContext) => Json | Promise<Json>;
}

export interface RunContext {
  readonly signal: AbortSignal;
  readonly idempotencyKey: string;
  /** As it was shown and approved. */
  readonly plan: JsonObject;
}

/** Thrown by `run` when the effect may or may not have happened: then a person is asked. */
export class OutcomeUnknown extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "OutcomeUnknown";
  }
}

const RESULT_BYTES_MAX = 1024 * 1024;
const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** Throws at once when the definition cannot work. */
export function defineTool<S extends StandardSchema>(definition: ToolDefinition<S>): Tool {
  const { name, description, requiresApproval, risk = "low", editable = true, idempotent = false } = definition;
  const { onAmbiguous = "ask" } = definition;
  if (!NAME.test(name)) {
    throw new TypeError(
      `defineTool: "${name}" is no name for a tool: a letter, then letters, digits, _ . -, at most 64`,
    );
  }
  if (onAmbiguous === "retry" && !idempotent) {
    throw new TypeError(`defineTool: "${name}" has onAmbiguous "retry", which needs idempotent: true`);
  }
  const parameters = jsonSchemaOf(definition);
  const check = createArgumentCheck(parameters);
  const policy = { type: "code", gated: requiresApproval, risk, editable, idempotent, onAmbiguous };
  const fixed = {
    identity: `code:${name}`,
    schemaHash: schemaHash(parameters),
    policyVersion: sha256(canonicalJson(policy)),
  };

  return {
    name,
    description,
    parameters,
    gated: requiresApproval,
    risk,
    editable,
    idempotent,
    onAmbiguous,
    async prepare(args) {
      const unsafe = findJsonProblem(args);
      if (unsafe) throw new CallRefused("arguments-invalid", describeProblem(unsafe));
      check(args);
      const parsed = await parse(definition.parameters, args);
      const plan = definition.plan ? await definition.plan(parsed) : usualPlan(args, parsed);
      const unshown = findJsonProblem(plan, RESULT_BYTES_MAX);
      if (unshown) throw new CallRefused("tool-unavailable", `its plan cannot be shown: ${describeProblem(unshown)}`);
      return { ...fixed, plan };
    },
    promptFor: (args) =>
      // The arguments have been prepared, so they are what the schema takes.
      definition.prompt?.(args as InputOf<S>) ?? renderPrompt(undefined, name, canonicalJson(args)),
    async run({ args, facts, signal, idempotencyKey }) {
      const parsed = await parse(definition.parameters, args);
      try {
        const result = await definition.run(parsed, { signal, idempotencyKey, plan: facts.plan });
        return { outcome: "done", result: keepable(result) };
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        if (error instanceof OutcomeUnknown) return { outcome: "unknown", why: message };
        // What was under way when the signal came may have arrived: an aborted request says nothing about its effect.
        if (signal.aborted) return { outcome: "unknown", why: `it was canceled while it ran: ${message}` };
        return { outcome: "failed", result: message };
      }
    },
  };
}

/** The effect has happened: a result that cannot be kept must not make it look otherwise. */
function keepable(result: Json | undefined): Json {
  if (result === undefined) return null;
  const problem = findJsonProblem(result, RESULT_BYTES_MAX);
  return problem ? `[the result cannot be kept: ${describeProblem(problem)}]` : result;
}

function describeProblem({ pointer, text }: JsonProblem): string {
  return `${pointer || "/"}: ${text}`;
}

function jsonSchemaOf<S extends StandardSchema>({ name, parameters, jsonSchema }: ToolDefinition<S>): JsonObject {
  const given = jsonSchema ?? parameters["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  if (!given) {
    const { vendor } = parameters["~standard"];
    throw new TypeError(`defineTool: "${name}": a schema of ${vendor} needs jsonSchema beside it`);
  }
  // Through JSON: a generator may leave undefined in it, which does not hash.
  return JSON.parse(JSON.stringify(given)) as JsonObject;
}

/** What was filled in by defaults is shown too; what JSON cannot say (a date, a map) is shown as it was sent. */
function usualPlan(args: JsonObject, parsed: unknown): JsonObject {
  const isPlain = isObject(parsed) && findJsonProblem(parsed) === undefined;
  return { arguments: isPlain ? (parsed as JsonObject) : args };
}

async function parse<S extends StandardSchema>(schema: S, args: JsonObject): Promise<OutputOf<S>> {
  const validated = await schema["~standard"].validate(args);
  if (validated.issues)
    throw new CallRefused("arguments-invalid", validated.issues.slice(0, 5).map(describe).join("; "));
  return validated.value as OutputOf<S>;
}

function describe({ message, path = [] }: Issue): string {
  const keys = path.map((step) => String(typeof step === "object" ? step.key : step));
  return `/${keys.map(escapePointer).join("/")}: ${message}`;
}
