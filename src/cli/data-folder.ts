/** The folder in which everything is kept, and the note in it that says which server is running. */
import { join, resolve } from "node:path";
import { HoldpointError } from "../errors.ts";
import { makePrivateFolder, removeFile, writePrivateFile } from "../ports/files.ts";

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
    throw new HoldpointError("store-read-only", `${folder.path} cannot be made. Choose another with --data.`, {
      cause,
    });
  }
  return folder;
}

/** Other commands find the running server through this. Answers how to take it back. */
export function announceServer(folder: DataFolder, url: string): () => void {
  const file = join(folder.path, "server.json");
  writePrivateFile(file, `${JSON.stringify({ url, pid: process.pid })}\n`);
  return () => removeFile(file);
}
