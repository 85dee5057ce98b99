/** Whether an answer fits the schema of what was asked. What cannot be checked does not fit. */
import { canonicalJson, type JsonObject, type JsonProblem } from "../task/json.ts";
import { createArgumentCheck, SchemaRefused } from "../tools/schema.ts";
import { CallRefused } from "../tools/tool.ts";

/** Compiling a schema takes longer than everything else that a decision does; most questions are asked again and again. */
const CHECKS_MAX = 200;
const checks = new Map<string, (values: JsonObject) => void>();

export function findValueProblem(schema: JsonObject, values: JsonObject): JsonProblem | undefined {
  try {
    checkFor(schema)(values);
    return undefined;
  } catch (error) {
    if (error instanceof SchemaRefused) return { pointer: "/values", text: error.message };
    if (!(error instanceof CallRefused)) throw error;
    // "<pointer>: <text>", where "/" stands for the values as a whole.
    const [, pointer = "/", text = error.message] = /^(\S*?): (.*)$/s.exec(error.message) ?? [];
    return { pointer: `/values${pointer === "/" ? "" : pointer}`, text };
  }
}

function checkFor(schema: JsonObject): (values: JsonObject) => void {
  const name = canonicalJson(schema);
  const known = checks.get(name);
  if (known) return known;
  const check = createArgumentCheck(schema);
  if (checks.size >= CHECKS_MAX) checks.clear();
  checks.set(name, check);
  return check;
}
