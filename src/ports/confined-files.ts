/**
 * Files inside one root, as a port. A path is walked folder by folder through open descriptors, so that what was
 * looked at is what is used: a folder that somebody exchanges for a link in between leads nowhere.
 *
 * F1  No link is followed; only regular files with a single name are touched, and none is opened to find that out.
 * F2  Looks and effects go through the folder's descriptor (`/proc/self/fd/<n>/<name>`, Node having no openat). Where
 *     there is no /proc, the folder's real path and inode are compared before and after instead.
 * F3  What is protected is recognised by inode, and by path where it does not exist yet.
 * F4  A file is replaced or removed only while it still is what it was when it was looked at.
 */
import { createHash } from "node:crypto";
import { type BigIntStats, constants, existsSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink, realpath, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fold, isInside } from "./inside.ts";

/** A file by its root (a real path) and its path below it, without `.`, `..` or empty parts. */
export interface Place {
  readonly root: string;
  readonly path: string;
  /** Absolute paths that are never touched: each with everything below it. */
  readonly protectedPaths: readonly string[];
}

export type Look =
  | { readonly type: "absent"; readonly missingFolders: readonly string[] }
  | {
      readonly type: "file";
      readonly sha256: string;
      readonly bytes: number;
      readonly mode: number;
      /** Undefined when it is larger than was asked for. */
      readonly content: Buffer | undefined;
    };

export interface Replacement {
  /** SHA-256 of the file that is replaced; undefined: there must be none. */
  readonly before: string | undefined;
  readonly content: Buffer;
  readonly mode: number;
  /** Folders to make on the way, relative to the root. */
  readonly newFolders: readonly string[];
  /** Names the file beside, so that one that a crash left there is found and replaced. */
  readonly mark: string;
}

export interface ConfinedFiles {
  /** The real path of a root; refuses what is no folder. */
  findRoot(path: string): Promise<string>;
  look(place: Place, contentMax: number): Promise<Look>;
  /**
   * On disk, whole, with fsync of file and folder (`done`); or nothing, because the file is not what it was
   * (`changed`); or done, without the disk having said that it will last (`unsure`).
   */
  replace(place: Place, replacement: Replacement): Promise<Effect>;
  remove(place: Place, sha256: string): Promise<Effect>;
}

export type Effect = "done" | "changed" | "unsure";

/** The path leads where it must not; the text says why, for people and models. */
export class PathRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "PathRefused";
  }
}

/** A larger file is not hashed, and so neither replaced nor deleted. */
const HASHED_BYTES_MAX = 1024 * 1024 * 1024;

const CHUNK_BYTES = 256 * 1024;
const FOLDER_MODE = 0o755;
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;

export const systemConfinedFiles: ConfinedFiles = createConfinedFiles(existsSync("/proc/self/fd"));

/** `throughDescriptors: false` is what a system without /proc gets. */
export function createConfinedFiles(throughDescriptors: boolean): ConfinedFiles {
  const withParent = <T>(place: Place, newFolders: readonly string[], use: (parent: Parent) => Promise<T>) =>
    walk(place, newFolders, throughDescriptors, use);
  return {
    async findRoot(path) {
      const real = await realpath(path).catch(() => undefined);
      if (real === undefined || !(await stat(real)).isDirectory()) throw new PathRefused(`there is no folder ${path}`);
      return real;
    },
    look: (place, contentMax) =>
      withParent(place, [], (parent) =>
        "missing" in parent
          ? Promise.resolve({ type: "absent", missingFolders: parent.missing })
          : lookAt(parent, contentMax),
      ),
    replace: (place, replacement) =>
      withParent(place, replacement.newFolders, async (parent) =>
        "missing" in parent ? "changed" : replaceIn(parent, replacement),
      ),
    remove: (place, sha256) =>
      withParent(place, [], async (parent) => ("missing" in parent ? "changed" : removeFrom(parent, sha256))),
  };
}

/** The open folder that holds the file, or the folders that are missing on the way there. */
type Parent = Folder | { readonly missing: readonly string[] };

interface Folder {
  readonly handle: FileHandle;
  /** Where it was found. */
  readonly path: string;
  readonly throughDescriptors: boolean;
  /** The name of the file in it, and what may not be touched. */
  readonly name: string;
  readonly guards: readonly Guard[];
}

/** F2. */
function at(folder: Folder, name: string): string {
  return folder.throughDescriptors ? `/proc/self/fd/${folder.handle.fd}/${name}` : join(folder.path, name);
}

async function walk<T>(
  place: Place,
  newFolders: readonly string[],
  throughDescriptors: boolean,
  use: (parent: Parent) => Promise<T>,
): Promise<T> {
  const parts = place.path.split("/");
  const name = parts.pop() ?? "";
  const guards = await findGuards(place);
  refuseProtectedPath(guards, join(place.root, place.path));
  const opened: FileHandle[] = [];
  const enter = async (through: string, path: string): Promise<Folder> => {
    const handle = await openFolder(through, path);
    opened.push(handle);
    const folder = { handle, path, throughDescriptors, name, guards };
    refuseProtectedFile(guards, path, await handle.stat({ bigint: true }));
    return folder;
  };
  try {
    let folder = await enter(place.root, place.root);
    // The root's own parents were links once, or are now.
    if (!(await isWhereItWas(folder))) throw new PathRefused(`the root ${place.root} was moved or replaced`);
    for (const [i, part] of parts.entries()) {
      const path = join(folder.path, part);
      const next = await enter(at(folder, part), path).catch(unlessAbsent);
      if (next) {
        folder = next;
        continue;
      }
      const missing = parts.slice(i).map((_part, n) => parts.slice(0, i + n + 1).join("/"));
      if (!newFolders.includes(missing[0] ?? "")) return await use({ missing });
      await mkdir(at(folder, part), FOLDER_MODE);
      await folder.handle.sync();
      folder = await enter(at(folder, part), path);
    }
    return await use(folder);
  } catch (error) {
    throw explain(error, place.path);
  } finally {
    await Promise.all(opened.map(close));
  }
}

async function openFolder(through: string, path: string): Promise<FileHandle> {
  try {
    return await open(through, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if (codeOf(error) !== "ELOOP" && codeOf(error) !== "ENOTDIR") throw error;
    throw new PathRefused(`${path} is a link or no folder; links are not followed`);
  }
}

async function isWhereItWas(folder: Folder): Promise<boolean> {
  if (folder.throughDescriptors) return (await readlink(`/proc/self/fd/${folder.handle.fd}`)) === folder.path;
  if ((await realpath(folder.path).catch(() => undefined)) !== folder.path) return false;
  return isSameFile(await stat(folder.path, { bigint: true }), await folder.handle.stat({ bigint: true }));
}

async function lookAt(folder: Folder, contentMax: number): Promise<Look> {
  const found = await openFile(folder);
  try {
    const read = found && (await readAll(found.handle, contentMax));
    if (!(await isWhereItWas(folder))) throw new PathRefused(`${folder.path} was moved or replaced meanwhile`);
    if (!found || !read) return { type: "absent", missingFolders: [] };
    return { type: "file", ...read, mode: Number(found.stats.mode & 0o777n) };
  } finally {
    if (found) await close(found.handle);
  }
}

/** F1: opening a device or a pipe can itself have an effect or wait for ever, so the name is looked at first. */
async function openFile(folder: Folder): Promise<{ handle: FileHandle; stats: BigIntStats } | undefined> {
  const path = at(folder, folder.name);
  const shown = join(folder.path, folder.name);
  const seen = await lstat(path, { bigint: true }).catch(unlessAbsent);
  if (!seen) return undefined;
  refuseUnlessPlain(seen, shown);
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const stats = await handle.stat({ bigint: true });
    refuseUnlessPlain(stats, shown);
    refuseProtectedFile(folder.guards, shown, stats);
    if (!isSameFile(seen, stats)) throw new PathRefused(`${shown} was replaced while it was opened`);
    return { handle, stats };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

function refuseUnlessPlain(stats: BigIntStats, path: string): void {
  if (stats.isSymbolicLink()) throw new PathRefused(`${path} is a link; links are not followed`);
  if (stats.isDirectory()) throw new PathRefused(`${path} is a folder, not a file`);
  if (!stats.isFile()) throw new PathRefused(`${path} is a pipe, a socket or a device, not a regular file`);
  if (stats.nlink !== 1n) throw new PathRefused(`${path} has ${stats.nlink} names (hard links); only one is allowed`);
}

async function readAll(handle: FileHandle, contentMax: number) {
  const hash = createHash("sha256");
  let kept: Buffer[] | undefined = [];
  let bytes = 0;
  // The size that the file claims is not asked: it can grow, and in some file systems it is always 0.
  for (;;) {
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, bytes);
    if (bytesRead === 0) break;
    const chunk = buffer.subarray(0, bytesRead);
    bytes += bytesRead;
    if (bytes > HASHED_BYTES_MAX) throw new PathRefused(`the file is larger than ${HASHED_BYTES_MAX} bytes`);
    hash.update(chunk);
    if (bytes > contentMax) kept = undefined;
    kept?.push(chunk);
  }
  return { sha256: hash.digest("hex"), bytes, content: kept && Buffer.concat(kept) };
}

async function replaceIn(folder: Folder, replacement: Replacement): Promise<Effect> {
  const beside = at(folder, `.holdpoint-${replacement.mark}.tmp`);
  let isBeside = true;
  try {
    await writeBeside(beside, replacement);
    // F4, as late as it can be: after this only the rename follows.
    const now = await lookAt(folder, 0);
    if ((now.type === "file" ? now.sha256 : undefined) !== replacement.before) return "changed";
    await rename(beside, at(folder, folder.name));
    isBeside = false;
    return await lasting(folder);
  } finally {
    if (isBeside) await unlink(beside).catch(unlessAbsent);
  }
}

async function writeBeside(path: string, { content, mode }: Replacement): Promise<void> {
  // What lies there was left by a crash, or was put there: its name is removed, it is never written to.
  await unlink(path).catch(unlessAbsent);
  const handle = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    await handle.writeFile(content);
    await handle.chmod(mode);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function removeFrom(folder: Folder, sha256: string): Promise<Effect> {
  const found = await openFile(folder);
  if (!found) return "changed";
  try {
    if ((await readAll(found.handle, 0)).sha256 !== sha256) return "changed";
    const path = at(folder, folder.name);
    const now = await lstat(path, { bigint: true }).catch(unlessAbsent);
    if (!now || !isSameFile(now, found.stats) || !(await isWhereItWas(folder))) return "changed";
    await unlink(path);
    return await lasting(folder);
  } finally {
    await close(found.handle);
  }
}

/** The name is changed already, so an error of the disk must not pass for "nothing happened". */
async function lasting({ handle }: Folder): Promise<Effect> {
  return handle.sync().then(
    () => "done",
    () => "unsure",
  );
}

// What is protected

interface Guard {
  readonly path: string;
  readonly stats: BigIntStats | undefined;
}

/** F3. A root that lies inside a protected folder is the operator's choice: what is above it cannot be reached. */
async function findGuards({ root, protectedPaths }: Place): Promise<Guard[]> {
  const guards = await Promise.all(
    protectedPaths.map(async (path) => ({
      path: await realpathOfAbsent(path),
      stats: await stat(path, { bigint: true }).catch(() => undefined),
    })),
  );
  return guards.filter(({ path }) => !(isInside(root, path) && fold(root) !== fold(path)));
}

async function realpathOfAbsent(path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real !== undefined || dirname(path) === path) return real ?? path;
  return join(await realpathOfAbsent(dirname(path)), path.slice(dirname(path).length));
}

function refuseProtectedPath(guards: readonly Guard[], path: string): void {
  if (guards.some((guard) => isInside(path, guard.path))) throw protectedFrom(path);
}

function refuseProtectedFile(guards: readonly Guard[], path: string, stats: BigIntStats): void {
  if (guards.some((guard) => guard.stats && isSameFile(stats, guard.stats))) throw protectedFrom(path);
}

function protectedFrom(path: string): PathRefused {
  return new PathRefused(`${path} is protected: configuration, data and tokens of the server are out of reach`);
}

// Mechanics

function isSameFile(a: BigIntStats, b: BigIntStats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** It was only read through: an error now says nothing about what was done, and must not pass for it. */
async function close(handle: FileHandle): Promise<void> {
  await handle.close().catch(() => undefined);
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

function unlessAbsent(error: unknown): undefined {
  if (codeOf(error) !== "ENOENT") throw error;
  return undefined;
}

/** What the system refuses is a refusal too; a descriptor's path would tell nobody anything. */
function explain(error: unknown, path: string): unknown {
  const code = codeOf(error);
  if (error instanceof PathRefused || code === undefined) return error;
  if (code === "ELOOP") return new PathRefused(`${path} is a link; links are not followed`);
  return new PathRefused(`${path} cannot be used (${code})`);
}
