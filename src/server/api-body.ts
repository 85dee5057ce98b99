/** What comes in: JSON of a known shape and a bounded size, or a precise no. */
import type { Context } from "hono";
import { z } from "zod";
import { escapePointer, isObject, type JsonObject, type JsonProblem, parseJson } from "../task/json.ts";
import { invalid } from "./api-refusals.ts";

export const BODY_BYTES_MAX = 1024 * 1024;
const NAME_CHARS_MAX = 256;
const REASON_CHARS_MAX = 10_000;

// What parseJson has taken is JSON all the way down.
const JsonObjectBody = z.custom<JsonObject>(isObject, "must be an object");
const Name = z.string().min(1).max(NAME_CHARS_MAX);

const Digest = z.templateLiteral(["sha256:", z.string().regex(/^[0-9a-f]{64}$/)], "must be the digest that was shown");
const Reason = z.string().max(REASON_CHARS_MAX).optional();

export const DecisionBody = z.discriminatedUnion("decision", [
  z.strictObject({
    decision: z.literal("approve"),
    digest: Digest,
    reason: Reason,
    editedArgs: JsonObjectBody.optional(),
  }),
  z.strictObject({ decision: z.literal("deny"), digest: Digest.optional(), reason: Reason }),
  z.strictObject({
    decision: z.literal("answer"),
    digest: Digest.optional(),
    reason: Reason,
    values: JsonObjectBody,
  }),
  z.strictObject({ decision: z.literal("cancel"), digest: Digest.optional(), reason: Reason }),
]);

export const SubmitBody = z.strictObject({
  agent: Name,
  message: z.string().min(1),
  contextId: Name.optional(),
  messageId: Name.optional(),
});

export const EmptyBody = z.strictObject({});

/** The body, or the answer that says what is wrong with it. */
export async function readBody<T>(c: Context, shape: z.ZodType<T>): Promise<{ body: T } | { response: Response }> {
  const type = c.req.header("content-type") ?? "";
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    const message = 'The body must be JSON: send "content-type: application/json".';
    return { response: c.json({ error: { code: "content-type-wrong", message } }, 415) };
  }
  const parsed = parseJson(await c.req.text(), BODY_BYTES_MAX);
  if (!parsed.ok) return { response: invalid(c, [parsed.problem], parsed.problem.pointer === "" ? 400 : 422) };
  const result = shape.safeParse(parsed.value);
  return result.success ? { body: result.data } : { response: invalid(c, result.error.issues.flatMap(toProblems)) };
}

function toProblems(issue: z.core.$ZodIssue): JsonProblem[] {
  const pointer = issue.path.map((step) => `/${escapePointer(String(step))}`).join("");
  if (issue.code !== "unrecognized_keys") return [{ pointer, text: issue.message }];
  return issue.keys.map((key) => ({ pointer: `${pointer}/${escapePointer(key)}`, text: "is not known here" }));
}
