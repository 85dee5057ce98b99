/** A process of somebody else's that we talk to by pipes: its own process group, its own environment, killed whole. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

export interface PipedProcess {
  readonly pid: number;
  /** Resolves when the pipe has taken it; rejects when the process is gone. */
  write(text: string): Promise<void>;
  /** The end of what it said on stderr, for a person who looks for the reason. */
  lastWords(): string;
  /** Closes its input, then asks (SIGTERM), then kills the whole group; resolves when it is gone. */
  end(): Promise<void>;
}

export interface PipedHandlers {
  /** What it prints, as it comes. */
  onData(chunk: Buffer): void;
  /** Once, when it is gone or could not be started. */
  onGone(reason: string): void;
}

const PATIENCE_MS = 1_000;
const LAST_WORDS_MAX = 2_000;

/** Started without a shell; of our environment it gets the search path and nothing else. */
export function spawnPiped(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  handlers: PipedHandlers,
): PipedProcess {
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH ?? "/usr/local/bin:/usr/bin:/bin", ...env },
    stdio: ["pipe", "pipe", "pipe"],
    shell: false,
    detached: true,
    windowsHide: true,
  });
  let words = "";
  const gone = new Promise<void>((resolve) => {
    const over = (reason: string) => {
      live.delete(child);
      resolve();
      handlers.onGone(reason);
    };
    child.once("error", (error) => over(error.message));
    child.once("exit", (code, signal) => {
      // Its children may hold the pipes open and outlive it.
      killGroup(child, "SIGKILL");
      const read = new Promise((heard) => child.once("close", heard));
      // What it said last is still in the pipe; who fled the group may hold that open for ever.
      void Promise.race([read, pause()]).then(() =>
        over(signal ? `it was ended by ${signal}` : `it ended with code ${code}`),
      );
    });
  });
  child.stdout.on("data", (chunk: Buffer) => handlers.onData(chunk));
  child.stderr.on("data", (chunk: Buffer) => {
    words = (words + chunk.toString()).slice(-LAST_WORDS_MAX);
  });
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
  live.add(child);
  watchOwnEnd();

  return {
    pid: child.pid ?? 0,
    write: (text) =>
      new Promise((resolve, reject) => {
        child.stdin.write(text, (error) => (error ? reject(error) : resolve()));
      }),
    lastWords: () => words,
    end: async () => {
      child.stdin.end();
      const isGone = () => child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
      for (const signal of ["SIGTERM", "SIGKILL"] as const) {
        await Promise.race([gone, pause()]);
        if (isGone()) break;
        killGroup(child, signal);
      }
      await gone;
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
    },
  };
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref());
}

function killGroup({ pid }: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // Nobody is left in it.
  }
}

const live = new Set<ChildProcessWithoutNullStreams>();
let isWatching = false;

/** A group of its own does not hear the terminal's interrupt: what is left when this process ends is killed here. */
function watchOwnEnd(): void {
  if (isWatching) return;
  isWatching = true;
  process.once("exit", () => {
    for (const child of live) killGroup(child, "SIGKILL");
  });
}
