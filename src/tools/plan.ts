/** The plan of a call: one object that is shown, hashed and executed; and what else the digest binds. */
import { Ajv } from "ajv";
import type { ToolConfig } from "../config/config.ts";
import { sha256 } from "../task/digest.ts";
import { canonicalJson, type JsonObject } from "../task/json.ts";
import type { ToolFacts } from "../task/request.ts";
import { createArgumentCheck, schemaHash } from "./schema.ts";

/** Facts of a built-in tool: its kind, its schema, the rule that governs it, and the plan. */
export function builtinFacts(
  config: ToolConfig,
  rule: JsonObject,
  parameters: JsonObject,
  plan: JsonObject,
): ToolFacts {
  const { type, requiresApproval: gated, risk, editable, idempotent, onAmbiguous, timeoutMs } = config;
  // What a person reads is part of the rule: other words may have got another answer.
  const approvalPrompt = config.approvalPrompt ?? null;
  const policy = { type, gated, risk, editable, idempotent, onAmbiguous, timeoutMs, approvalPrompt, ...rule };
  return {
    identity: `builtin:${type}`,
    schemaHash: schemaHash(parameters),
    policyVersion: sha256(canonicalJson(policy)),
    plan,
  };
}

/** Checks the arguments of a built-in tool; made when it is first needed, so that starting up costs nothing. */
export function builtinCheck(parameters: JsonObject): (args: JsonObject) => void {
  let check: ((args: JsonObject) => void) | undefined;
  return (args) => {
    check ??= createArgumentCheck(parameters);
    check(args);
  };
}

const ajv = new Ajv({ strict: true, allErrors: false });

/** Reads a plan back from JSON. An executor takes nothing else, and nothing that only resembles a plan. */
export function createPlanReader<P extends JsonObject>(schema: JsonObject): (plan: JsonObject) => P {
  const validate = ajv.compile<P>(schema);
  return (plan) => {
    // Widened so that the check may narrow it: a generic compiled type does not narrow JsonObject itself.
    const value: unknown = plan;
    if (validate(value)) return value;
    throw new Error(`not run: the plan is not one of this tool (${ajv.errorsText(validate.errors)})`);
  };
}

/** An object that has exactly these properties. */
export function exactly(properties: JsonObject, optional: readonly string[] = []): JsonObject {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", additionalProperties: false, required, properties };
}

export const TEXT: JsonObject = { type: "string" };
export const TEXTS: JsonObject = { type: "array", items: TEXT };
export const COUNT: JsonObject = { type: "integer", minimum: 0 };
export const SHA256: JsonObject = { type: "string", pattern: "^[0-9a-f]{64}$" };
