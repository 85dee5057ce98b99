/**
 * JSON that can be hashed and shown without surprise (I-JSON, RFC 7493): no duplicate keys, no lone surrogates, no
 * numbers that change when read, no prototype games, bounded depth and size. Anything else is refused, never mended.
 */
import canonicalize from "canonicalize";

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };

export const JSON_DEPTH_MAX = 64;
export const ARGS_BYTES_MAX = 64 * 1024;

/** What is wrong, and where (RFC 6901 pointer). */
export interface JsonProblem {
  readonly pointer: string;
  readonly text: string;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The first reason why a value cannot be taken, or undefined when it is safe to hash, show and run. */
export function findJsonProblem(value: unknown, bytesMax: number = ARGS_BYTES_MAX): JsonProblem | undefined {
  const problem = walk(value, "", 1);
  if (problem) return problem;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > bytesMax) return { pointer: "", text: `${bytes} bytes; at most ${bytesMax} are taken` };
  return undefined;
}

/** RFC 8785 text. The value must have passed `findJsonProblem`. */
export function canonicalJson(value: unknown): string {
  return canonicalize(value) ?? "null";
}

/** Parses text and refuses what `JSON.parse` would silently mend: duplicate keys above all. */
export function parseJson(
  text: string,
  bytesMax: number = ARGS_BYTES_MAX,
): { ok: true; value: Json } | { ok: false; problem: JsonProblem } {
  const bytes = Buffer.byteLength(text);
  if (bytes > bytesMax) return failed("", `${bytes} bytes; at most ${bytesMax} are taken`);
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return failed("", error instanceof Error ? error.message : "not JSON");
  }
  // Depth before keys: the scan for duplicates may then recurse no deeper than allowed.
  const problem = findJsonProblem(value, bytesMax);
  if (problem) return { ok: false, problem };
  const duplicate = findDuplicateKey(text);
  if (duplicate !== undefined) return failed(duplicate, "the key stands twice in one object");
  return { ok: true, value };
}

function failed(pointer: string, text: string) {
  return { ok: false as const, problem: { pointer, text } };
}

function walk(value: unknown, pointer: string, depth: number): JsonProblem | undefined {
  if (depth > JSON_DEPTH_MAX) return { pointer, text: `nested deeper than ${JSON_DEPTH_MAX}` };
  switch (typeof value) {
    case "string":
      return value.isWellFormed() ? undefined : { pointer, text: "a lone surrogate is not valid text" };
    case "number":
      if (!Number.isFinite(value)) return { pointer, text: "the number is too large for JSON" };
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
        return { pointer, text: `${value} is beyond 2^53 and would change when read; send it as a string` };
      }
      return undefined;
    case "boolean":
      return undefined;
    case "object":
      break;
    default:
      return { pointer, text: `${typeof value} is not JSON` };
  }
  if (value === null) return undefined;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const problem = walk(value[i], `${pointer}/${i}`, depth + 1);
      if (problem) return problem;
    }
    return undefined;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return { pointer, text: "not a plain object" };
  for (const key of Object.keys(value)) {
    const at = `${pointer}/${escapePointer(key)}`;
    if (key === "__proto__") return { pointer: at, text: 'the key "__proto__" is not taken' };
    if (!key.isWellFormed()) return { pointer: at, text: "a lone surrogate is not valid text" };
    const problem = walk((value as Record<string, unknown>)[key], at, depth + 1);
    if (problem) return problem;
  }
  return undefined;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/g;

/** The pointer of the first key that repeats in its object. The text is known to be valid JSON. */
function findDuplicateKey(text: string): string | undefined {
  const stack: { keys: Set<string> | undefined; at: string; index: number }[] = [];
  let expectKey = false;
  let name = "";
  for (const [token] of text.matchAll(TOKEN)) {
    const top = stack.at(-1);
    switch (token) {
      case "{":
      case "[":
        stack.push({ keys: token === "{" ? new Set() : undefined, at: top ? place(top, name) : "", index: 0 });
        expectKey = token === "{";
        break;
      case "}":
      case "]":
        stack.pop();
        expectKey = false;
        break;
      case ",":
        if (top) top.index++;
        expectKey = top?.keys !== undefined;
        break;
      case ":":
        expectKey = false;
        break;
      default: {
        if (!expectKey || !top?.keys) break;
        name = JSON.parse(token) as string;
        if (top.keys.has(name)) return place(top, name);
        top.keys.add(name);
      }
    }
  }
  return undefined;
}

function place(top: { keys: Set<string> | undefined; at: string; index: number }, name: string): string {
  return `${top.at}/${top.keys ? escapePointer(name) : top.index}`;
}

/** A key as one step of a JSON Pointer (RFC 6901). */
export function escapePointer(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
