/** Files as a port: only what is needed, private by default. */
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, resolve } from "node:path";

const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

/**
 * Makes a file that only its owner can read, or takes that right away from all others. A file that is there is not
 * opened: closing it again would drop every lock that this process holds on it (POSIX).
 */
export function makePrivateFile(path: string): void {
  if (!existsSync(path)) closeSync(openSync(path, "a", PRIVATE_FILE));
  chmodSync(path, PRIVATE_FILE);
}

/** One folder after the other: in some places (/proc) the recursive call of Node never comes back. */
export function makePrivateFolder(path: string): void {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const folder of missing) mkdirSync(folder, { mode: PRIVATE_FOLDER });
  if (!statSync(path).isDirectory()) throw Object.assign(new Error(`${path} is a file`), { code: "ENOTDIR" });
}

export function fileExists(path: string): boolean {
  return existsSync(path);
}

/** `path` may be a file descriptor: 0 is standard input. */
export function readText(path: string | number): string {
  return readFileSync(path, "utf8");
}

/** Whole or not at all: written beside and moved into place. */
export function writePrivateFile(path: string, text: string): void {
  const beside = `${path}.new`;
  // A file that was left there would keep its own mode.
  rmSync(beside, { force: true });
  writeFileSync(beside, text, { mode: PRIVATE_FILE });
  renameSync(beside, path);
}

export function removeFile(path: string): void {
  rmSync(path, { force: true });
}
