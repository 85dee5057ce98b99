/**
 * An argument too long for the log (the content of a file) stands beside it as a blob. The log and the digest have its
 * hash, which binds it as well as the bytes would; tools and people get the bytes.
 */
import { HoldpointError } from "../errors.ts";
import type { Store } from "../store/store.ts";
import { sha256 } from "../task/digest.ts";
import type { TaskKey } from "../task/event.ts";
import { isObject, type Json, type JsonObject } from "../task/json.ts";
import type { Blob } from "../task/verdict.ts";
import type { Tool } from "../tools/tool.ts";
import type { Agent, Reply } from "./agent.ts";

const ASIDE_FROM_BYTES = 16 * 1024;
const ASIDE_BYTES_MAX = 1024 * 1024;

/** The calls as the log has them, and what goes beside it. */
export function putAside(
  agent: Agent,
  calls: Reply["calls"],
): { readonly calls: Reply["calls"]; readonly blobs: readonly Blob[] } {
  const blobs: Blob[] = [];
  const kept = calls.map((call) => {
    const tool = agent.tools.get(call.tool);
    if (!tool || !isObject(call.args)) return call;
    const aside = putArgsAside(tool, call.args);
    blobs.push(...aside.blobs);
    return { ...call, args: aside.args };
  });
  return { calls: kept, blobs };
}

export function putArgsAside(
  { longArgument: name }: Pick<Tool, "longArgument">,
  args: JsonObject,
): { readonly args: JsonObject; readonly blobs: readonly Blob[] } {
  const value = name === undefined ? undefined : args[name];
  if (name === undefined || value === undefined) return { args, blobs: [] };
  // Only we write references; one that somebody else has made up is no content.
  if (isObject(value)) return { args: { ...args, [name]: null }, blobs: [] };
  if (typeof value !== "string" || !value.isWellFormed()) return { args, blobs: [] };
  const bytes = Buffer.byteLength(value);
  if (bytes < ASIDE_FROM_BYTES || bytes > ASIDE_BYTES_MAX) return { args, blobs: [] };
  const blob = { sha256: sha256(value), text: value };
  return { args: { ...args, [name]: { blob: blob.sha256, bytes } }, blobs: [blob] };
}

/** The arguments as the tool wants them. */
export async function bringBack(
  store: Pick<Store, "readBlob">,
  key: TaskKey,
  { longArgument: name }: Pick<Tool, "longArgument">,
  args: JsonObject,
): Promise<JsonObject> {
  const value: Json | undefined = name === undefined ? undefined : args[name];
  if (name === undefined || !isObject(value) || typeof value.blob !== "string") return args;
  const text = await store.readBlob(key, value.blob);
  if (text === undefined || sha256(text) !== value.blob) {
    throw new HoldpointError("log-unreadable", `task ${key.id}: the ${name} of a call is missing or damaged`);
  }
  return { ...args, [name]: text };
}
