/** The folder in which everything is kept, and the note in it that says which server is running. */
import { join, resolve } from "node:path";
import { HoldpointError } from "../errors.ts";
import { fileExists, makePrivateFolder, readText, removeFile, writePrivateFile } from "../ports/files.ts";
import { isObject } from "../task/json.ts";

export const DATA_FOLDER = ".holdpoint";

export interface DataFolder {
  readonly path: string;
  readonly database: string;
}

export function dataFolder(path: string): DataFolder {
  const absolute = resolve(path);
  return { path: absolute, database: join(absolute, "holdpoint.db") };
}

export function createDataFolder(path: string): DataFolder {
  const folder = dataFolder(path);
  try {
    makePrivateFolder(folder.path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const text = `${folder.path} cannot be used (${why}). Choose another with --data.`;
    throw new HoldpointError("store-read-only", text, { cause });
  }
  return folder;
}

/** Other commands find the running server through this. Answers how to take it back. */
export function announceServer(folder: DataFolder, url: string): () => void {
  const file = noteFile(folder);
  writePrivateFile(file, `${JSON.stringify({ url, pid: process.pid })}\n`);
  return () => removeFile(file);
}

/**
 * Where the server of this folder listens, if it runs. A killed one leaves its note behind; then its port may belong to
 * anybody, who must not be sent a token: only a living process of this user counts.
 */
export function findServer(folder: DataFolder): string | undefined {
  const file = noteFile(folder);
  if (!fileExists(file)) return undefined;
  try {
    const note: unknown = JSON.parse(readText(file));
    if (!isObject(note) || typeof note.url !== "string" || typeof note.pid !== "number") return undefined;
    process.kill(note.pid, 0);
    return note.url;
  } catch {
    // Not JSON, no such process, or somebody else's: nobody of ours is there.
    return undefined;
  }
}

function noteFile(folder: DataFolder): string {
  return join(folder.path, "server.json");
}
