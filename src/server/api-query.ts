/** What a listing is asked for: bounded pages, known filters, and a precise no for anything else. */
import type { Context } from "hono";
import { z } from "zod";
import type { JsonProblem } from "../task/json.ts";
import { invalid } from "./api-refusals.ts";

const PAGE_MAX = 200;
const NAME_CHARS_MAX = 256;

const Name = z.string().min(1).max(NAME_CHARS_MAX).optional();
const Page = {
  limit: z
    .string()
    .regex(/^\d{1,4}$/, "must be a whole number")
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= PAGE_MAX, `must be from 1 to ${PAGE_MAX}`)
    .optional(),
  cursor: Name,
};

export const RequestsQuery = z.strictObject({
  ...Page,
  status: z.literal("open", 'only "open" can be listed').optional(),
  agent: Name,
});

export const WatchQuery = z.strictObject({ agent: Name });

const STATES = ["working", "input-required", "auth-required", "completed", "failed", "canceled", "rejected"] as const;
export const TasksQuery = z.strictObject({ ...Page, contextId: Name, state: z.enum(STATES).optional() });

/** The query, or the answer that says what is wrong with it. */
export function readQuery<T>(c: Context, shape: z.ZodType<T>): { query: T } | { response: Response } {
  const result = shape.safeParse(c.req.query());
  if (result.success) return { query: result.data };
  const problems = result.error.issues.flatMap((issue): JsonProblem[] => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({ pointer: `?${key}`, text: "is not known here" }));
    return [{ pointer: `?${issue.path.join(".")}`, text: issue.message }];
  });
  return { response: invalid(c, problems) };
}

/** Without the keys that say nothing: an absent key and `undefined` are two things. */
export function defined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  // Only keys with a value are left, which is what the type says.
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined)) as never;
}
