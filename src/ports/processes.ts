/** Other processes as a port. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface ChildProcess {
  readonly pid: number;
  /** What it prints, line by line, until it ends. */
  readonly lines: AsyncIterable<string>;
  /** SIGKILL: it gets no chance to tidy up. Resolves when it is gone. */
  kill(): Promise<void>;
}

/** Runs a module of this program in a process of its own. */
export function spawnModule(path: string, args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return {
    pid: child.pid ?? 0,
    lines: createInterface({ input: child.stdout }),
    kill: () => {
      child.kill("SIGKILL");
      return gone;
    },
  };
}
