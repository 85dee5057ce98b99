/** Shapes of foreign JSON: what every dialect reads with, and how a wrong one is told. */
import { z } from "zod";
import { escapePointer, isObject, type Json, type JsonObject } from "../task/json.ts";
import type { Answer } from "./dialect.ts";
import { malformed } from "./dialect.ts";

const ID_CHARS_MAX = 512;
const REASON_CHARS_MAX = 10_000;

export const Id = z.string().min(1).max(ID_CHARS_MAX);
export const Text = z.string();
export const Texts = z.array(z.string());
export const Reason = z.string().max(REASON_CHARS_MAX);
export const Sha256 = z.templateLiteral(["sha256:", z.string().regex(/^[0-9a-f]{64}$/)], "must be the digest shown");
/** Whether it is JSON all the way down is asked by the registry, of the whole payload. */
export const AnyObject = z.custom<JsonObject>(isObject, "must be an object");

export function readShape<T>(shape: z.ZodType<T>, data: unknown, at = "") {
  const result = shape.safeParse(data);
  if (result.success) return { outcome: "decoded", value: result.data } as const;
  const [issue] = result.error.issues;
  const pointer = at + (issue?.path ?? []).map((step) => pointerTo(String(step))).join("");
  if (issue?.code !== "unrecognized_keys") return malformed(pointer, issue?.message ?? "is wrong");
  return malformed(pointer + pointerTo(issue.keys[0] ?? ""), "is not known here");
}

/** One step of an RFC 6901 pointer. */
export function pointerTo(key: string): string {
  return `/${escapePointer(key)}`;
}

/** An object of what is there. */
export function objectOf(entries: Readonly<Record<string, Json | undefined>>): JsonObject {
  // The filter has taken away what is not JSON.
  return Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** Null and absent are the same in protocols that come from protobuf. */
type Maybe<T> = { [K in keyof T]?: T[K] | null | undefined };

export function answerOf(choice: Answer["choice"], rest: Maybe<Omit<Answer, "choice">>): Answer {
  const said = Object.entries(rest).filter(([, value]) => value !== undefined && value !== null);
  return { choice, ...Object.fromEntries(said) };
}

export function hasKey(data: unknown, key: string): data is Record<string, unknown> {
  return isObject(data) && Object.hasOwn(data, key);
}
