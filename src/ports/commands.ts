/**
 * Programs of the system, as a port: run without a shell, in a folder that cannot be exchanged, with an environment
 * made from nothing, in a process group of their own that is ended as a whole.
 */
import { spawn } from "node:child_process";
import { constants, existsSync } from "node:fs";
import { access, type FileHandle, mkdir, mkdtemp, open, readlink, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { type Followed, followPath } from "./follow-path.ts";
import { hashProgram } from "./program-hash.ts";

export interface CommandToRun {
  /** A real path. */
  readonly executable: string;
  /** What the file must still be when it is started. */
  readonly executableSha256: string;
  /** With the program's name as it was written in front. */
  readonly argv: readonly string[];
  /** A real path. */
  readonly cwd: string;
  readonly searchPath: string;
  readonly timeoutMs: number;
  /** Bytes of stdout and stderr together; a program that prints more is ended. */
  readonly outputMax: number;
}

export type CommandEnd =
  | { readonly type: "not-started"; readonly why: string }
  | {
      readonly type: "ended";
      readonly exitCode: number | null;
      readonly signal: string | null;
      readonly stdout: string;
      readonly stderr: string;
      /** What came after the part that was kept. */
      readonly bytesCut: number;
      readonly stoppedBy: "timeout" | "abort" | "output" | undefined;
    };

export interface Commands {
  /** Where programs are looked for, and what they find as PATH. */
  readonly searchPath: string;
  /** The real path of a program, by its name on the search path or by its absolute path. */
  findProgram(word: string): Promise<string | undefined>;
  /** SHA-256 of a program; undefined when it cannot be read, or is too large to be. */
  hashProgram(path: string): Promise<string | undefined>;
  /** The real path of a folder. */
  findFolder(path: string): Promise<string | undefined>;
  /** Where an absolute path leads, link by link; undefined when nowhere. */
  followPath(path: string): Promise<Followed | undefined>;
  run(command: CommandToRun, signal: AbortSignal): Promise<CommandEnd>;
}

/** The names of what a program finds in its environment; nothing of ours is inherited. */
export const COMMAND_ENVIRONMENT = ["HOME", "LANG", "PATH", "TMPDIR"] as const;

/** Between asking a group to end and ending it. */
const GRACE_MS = 2_000;
/** A process that left the group may hold a pipe open for ever. */
const DRAIN_MS = 500;
/** A longer timer would fire at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/**
 * The PATH of the server does not count: whoever could write into one of its folders would choose the program. Node's
 * own folder stands last, where it shadows nothing: it is as trusted as this process.
 */
const SEARCH_PATH = ["/usr/local/bin", "/usr/bin", "/bin", dirname(process.execPath)].join(delimiter);
const HAS_DESCRIPTORS = existsSync("/proc/self/fd");

export const systemCommands: Commands = {
  searchPath: SEARCH_PATH,
  async findProgram(word) {
    const candidates = isAbsolute(word) ? [word] : SEARCH_PATH.split(delimiter).map((folder) => join(folder, word));
    if (!isAbsolute(word) && word.includes("/")) return undefined;
    for (const path of candidates) if (await isProgram(path)) return realpath(path);
    return undefined;
  },
  hashProgram,
  followPath,
  async findFolder(path) {
    const real = await realpath(path).catch(() => undefined);
    return real !== undefined && (await stat(real)).isDirectory() ? real : undefined;
  },
  async run(command, signal) {
    if (signal.aborted) return { type: "not-started", why: "it was canceled before it began" };
    const own = await mkdtemp(join(await realpath(tmpdir()), "holdpoint-run-"));
    let folder: FileHandle | undefined;
    try {
      folder = await openFolder(command.cwd);
      if (!folder) return { type: "not-started", why: `the folder ${command.cwd} was moved or replaced` };
      if ((await realpath(command.executable).catch(() => undefined)) !== command.executable) {
        return { type: "not-started", why: `the program ${command.executable} was moved or replaced` };
      }
      const environment = await makeEnvironment(own, command);
      // As late as it can be: Node cannot start a program by its descriptor, so after this only the start itself follows.
      if ((await hashProgram(command.executable)) !== command.executableSha256) {
        return { type: "not-started", why: `the program ${command.executable} is not the one that was approved` };
      }
      return await execute(command, environment, pathOf(folder, command.cwd), signal);
    } finally {
      await folder?.close().catch(() => undefined);
      // A program may leave what even its owner cannot remove; a folder too many in /tmp is no reason to fail.
      await rm(own, { recursive: true, force: true, maxRetries: 2 }).catch(() => undefined);
    }
  },
};

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** The folder, held open; undefined when its path no longer leads to it without a link. */
async function openFolder(path: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const folder = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(() => undefined);
  if (!folder) return undefined;
  const real = await (HAS_DESCRIPTORS ? readlink(`/proc/self/fd/${folder.fd}`) : realpath(path)).catch(() => undefined);
  if (real === path) return folder;
  await folder.close();
  return undefined;
}

/** The child enters the folder by our descriptor, which it still has before it becomes the program. */
function pathOf(folder: FileHandle, path: string): string {
  return HAS_DESCRIPTORS ? `/proc/self/fd/${folder.fd}` : path;
}

async function makeEnvironment(own: string, { searchPath }: CommandToRun): Promise<NodeJS.ProcessEnv> {
  const [HOME, TMPDIR] = [join(own, "home"), join(own, "tmp")];
  await Promise.all([mkdir(HOME), mkdir(TMPDIR)]);
  const environment = { HOME, LANG: "C.UTF-8", PATH: searchPath, TMPDIR };
  // Node adds this one of its own accord where it is not named; named and undefined, it is left out.
  return { ...environment, NODE_V8_COVERAGE: undefined };
}

function execute(
  { executable, argv, timeoutMs, outputMax }: CommandToRun,
  env: NodeJS.ProcessEnv,
  cwd: string,
  signal: AbortSignal,
): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const [argv0 = executable, ...args] = argv;
    const child = spawn(executable, args, {
      argv0,
      cwd,
      env,
      shell: false,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { pid } = child;
    const output = new Output(outputMax);
    let stoppedBy: "timeout" | "abort" | "output" | undefined;
    const timers: NodeJS.Timeout[] = [];
    const stop = (why: typeof stoppedBy) => {
      if (stoppedBy) return;
      stoppedBy = why;
      killGroup(pid, "SIGTERM");
      timers.push(setTimeout(() => killGroup(pid, "SIGKILL"), GRACE_MS));
    };
    const onAbort = () => stop("abort");
    const finish = (end: CommandEnd) => {
      for (const timer of timers) clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      resolve(end);
    };
    timers.push(setTimeout(() => stop("timeout"), Math.min(timeoutMs, TIMER_MAX_MS)));
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    child.stdout.on("data", (chunk: Buffer) => output.add("stdout", chunk) || stop("output"));
    child.stderr.on("data", (chunk: Buffer) => output.add("stderr", chunk) || stop("output"));
    child.once("error", (error) => {
      if (pid === undefined) finish({ type: "not-started", why: error.message });
    });
    child.once("exit", () => {
      // Nothing that it started stays behind.
      killGroup(pid, "SIGKILL");
      timers.push(setTimeout(() => [child.stdout, child.stderr].map((stream) => stream.destroy()), DRAIN_MS));
    });
    child.once("close", (exitCode, killedBy) => {
      finish({ type: "ended", exitCode, signal: killedBy, ...output.texts(), stoppedBy });
    });
  });
}

/** A group that is gone is what was wanted. */
function killGroup(pid: number | undefined, signal: "SIGTERM" | "SIGKILL"): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // ESRCH: nobody is left in it.
  }
}

/** Keeps the head of what is printed and counts the rest. */
class Output {
  readonly #kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  #room: number;
  #cut = 0;

  constructor(max: number) {
    this.#room = max;
  }

  /** False when it was too much. */
  add(stream: "stdout" | "stderr", chunk: Buffer): boolean {
    const head = chunk.subarray(0, this.#room);
    this.#room -= head.length;
    this.#cut += chunk.length - head.length;
    if (head.length > 0) this.#kept[stream].push(head);
    return this.#cut === 0;
  }

  texts() {
    return { stdout: textOf(this.#kept.stdout), stderr: textOf(this.#kept.stderr), bytesCut: this.#cut };
  }
}

/** Control characters take six bytes each in JSON and say nothing; what is no text becomes U+FFFD as well. */
function textOf(chunks: readonly Buffer[]): string {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(chunks));
  return text.replace(/(?![\t\n\r])\p{Cc}/gu, "\ufffd");
}
