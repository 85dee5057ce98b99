/** Whether an answer fits the schema of what was asked. What cannot be checked does not fit. */
import type { JsonObject, JsonProblem } from "../task/json.ts";
import { createArgumentCheck, SchemaRefused } from "../tools/schema.ts";
import { CallRefused } from "../tools/tool.ts";

export function findValueProblem(schema: JsonObject, values: JsonObject): JsonProblem | undefined {
  try {
    createArgumentCheck(schema)(values);
    return undefined;
  } catch (error) {
    if (error instanceof SchemaRefused) return { pointer: "/values", text: error.message };
    if (!(error instanceof CallRefused)) throw error;
    // "<pointer>: <text>", where "/" stands for the values as a whole.
    const [, pointer = "/", text = error.message] = /^(\S*?): (.*)$/s.exec(error.message) ?? [];
    return { pointer: `/values${pointer === "/" ? "" : pointer}`, text };
  }
}
