/**
 * Checks arguments against a JSON Schema that may come from a stranger. A schema is refused when it is too large, too
 * deep or points elsewhere; whatever can take longer than its size suggests (patterns, references, combinations) is
 * compiled and evaluated under a watchdog. What cannot be checked is refused, never let through.
 */
import { Ajv, type ErrorObject } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import formatsModule from "ajv-formats";
import { TIME_OVER, withinMs } from "../ports/watchdog.ts";
import { sha256 } from "../task/digest.ts";
import { canonicalJson, findJsonProblem, type Json, type JsonObject } from "../task/json.ts";
import { CallRefused } from "./tool.ts";

export const SCHEMA_BYTES_MAX = 64 * 1024;
export const SCHEMA_DEPTH_MAX = 32;
const COMPILE_MS_MAX = 1_000;
const CHECK_MS_MAX = 250;
const PROBLEMS_MAX = 5;

/** A schema that is not taken, and why. */
export class SchemaRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "SchemaRefused";
  }
}

/** A function that throws `CallRefused("arguments-invalid")`, with JSON pointers, for arguments that do not fit. */
export function createArgumentCheck(schema: JsonObject): (args: JsonObject) => void {
  const problem = findSchemaProblem(schema);
  if (problem) throw new SchemaRefused(problem);
  const validate = compile(schema);
  const guarded = mayTakeLong(schema);
  return (args) => {
    const problems = guarded ? guardedProblems(() => validate(args)) : validate(args);
    if (problems.length > 0) throw new CallRefused("arguments-invalid", problems.join("; "));
  };
}

/** The same schema, whatever the order of its keys, has the same hash. */
export function schemaHash(schema: JsonObject): string {
  return sha256(canonicalJson(schema));
}

type Validate = (args: JsonObject) => readonly string[];

function findSchemaProblem(schema: JsonObject): string | undefined {
  // Depth first: nothing below recurses deeper than allowed.
  const deep = findDepth(schema, 1);
  if (deep) return deep;
  const json = findJsonProblem(schema, SCHEMA_BYTES_MAX);
  if (json) return `the schema cannot be taken: ${json.pointer || "it"}: ${json.text}`;
  return findForeignReference(schema);
}

function findDepth(value: Json, depth: number): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > SCHEMA_DEPTH_MAX) return `the schema is nested deeper than ${SCHEMA_DEPTH_MAX}`;
  for (const child of Object.values(value)) {
    const problem = findDepth(child, depth + 1);
    if (problem) return problem;
  }
  return undefined;
}

const REFERENCES: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

function findForeignReference(value: Json): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, child] of Object.entries(value)) {
    if (REFERENCES.has(key) && typeof child === "string" && !child.startsWith("#")) {
      return `the schema points to ${JSON.stringify(child.slice(0, 200))}; only references inside it (#…) are followed`;
    }
    const problem = findForeignReference(child);
    if (problem) return problem;
  }
  return undefined;
}

/**
 * Keywords whose evaluation is not linear in schema and arguments. A property that merely bears such a name costs a
 * watchdog and nothing else.
 */
const SLOW_KEYWORDS: ReadonlySet<string> = new Set([
  ...REFERENCES,
  ...["pattern", "patternProperties", "propertyNames", "format", "uniqueItems", "contains"],
  ...["anyOf", "oneOf", "allOf", "not", "if", "dependentSchemas", "dependencies"],
  ...["unevaluatedProperties", "unevaluatedItems"],
]);

function mayTakeLong(value: Json): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, child]) => SLOW_KEYWORDS.has(key) || mayTakeLong(child));
}

function compile(schema: JsonObject): Validate {
  const work = () => {
    try {
      return compileWith(schema, true);
    } catch (error) {
      // Patterns written for engines without Unicode mode (`[\w-.]`) are common; they mean the same without it.
      if (!(error instanceof SyntaxError)) throw error;
      return compileWith(schema, false);
    }
  };
  let validate: Validate | typeof TIME_OVER;
  try {
    validate = mayTakeLong(schema) ? withinMs(COMPILE_MS_MAX, work) : work();
  } catch (error) {
    throw new SchemaRefused(`the schema is not valid: ${textOf(error)}`);
  }
  if (validate === TIME_OVER) throw new SchemaRefused(`the schema was not compiled within ${COMPILE_MS_MAX} ms`);
  return validate;
}

// The package is CommonJS: its types say that the import is the module, at run time the function is in `default`.
const addFormats = formatsModule.default;

function compileWith(schema: JsonObject, unicodeRegExp: boolean): Validate {
  const { $schema, ...rest } = schema;
  // A validator of its own for each schema: an `$id` of one server must not be seen by another.
  const options = { strict: false, allErrors: false, unicodeRegExp, logger: false } as const;
  const isOld = typeof $schema === "string" && /^https?:\/\/json-schema\.org\/draft-0[467]\//.test($schema);
  const ajv = isOld ? new Ajv(options) : new Ajv2020(options);
  addFormats(ajv);
  const validate = ajv.compile(rest);
  return (args) => (validate(args) ? [] : (validate.errors ?? []).slice(0, PROBLEMS_MAX).map(describe));
}

function guardedProblems(work: () => readonly string[]): readonly string[] {
  try {
    const problems = withinMs(CHECK_MS_MAX, work);
    if (problems !== TIME_OVER) return problems;
    return [`these arguments could not be checked against the tool's schema within ${CHECK_MS_MAX} ms`];
  } catch (error) {
    // A schema that refers to itself without end.
    if (error instanceof RangeError) return [`the tool's schema cannot be evaluated: ${error.message}`];
    throw error;
  }
}

function describe({ instancePath, keyword, params, message }: ErrorObject): string {
  switch (keyword) {
    case "required":
      return `${instancePath}/${params.missingProperty}: is missing`;
    case "additionalProperties":
      return `${instancePath}/${params.additionalProperty}: is not known`;
    case "enum":
      return `${instancePath || "/"}: must be one of ${JSON.stringify(params.allowedValues)}`;
    default:
      return `${instancePath || "/"}: ${message ?? keyword}`;
  }
}

function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 300);
}
