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
  writeFileSync,
} from "node:fs";

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

export function makePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: PRIVATE_FOLDER });
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
