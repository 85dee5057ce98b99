/** Starts the real program and talks to it as a person or a supervisor would. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const LAUNCHER = fileURLToPath(new URL("../../bin/holdpoint.js", import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Surroundings {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export class HoldpointProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<Finished>;
  stdout = "";
  stderr = "";

  constructor(args: readonly string[], { cwd, env = {} }: Surroundings = {}, command = [process.execPath, LAUNCHER]) {
    const [program = "", ...before] = command;
    this.child = spawn(program, [...before, ...args], { stdio: "pipe", cwd, env: { ...cleanEnvironment(), ...env } });
    this.child.stdout?.on("data", (chunk) => {
      this.stdout += chunk;
    });
    this.child.stderr?.on("data", (chunk) => {
      this.stderr += chunk;
    });
    this.exited = new Promise((resolve) => {
      this.child.once("close", (code) => resolve({ code, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  /** Waits until it has printed something that matches; fails when it ends first. */
  async saw(pattern: RegExp): Promise<RegExpMatchArray> {
    for (;;) {
      const match = this.stdout.match(pattern);
      if (match) return match;
      const ended = await Promise.race([
        this.exited,
        new Promise<undefined>((resolve) => setTimeout(resolve, 20, undefined)),
      ]);
      if (ended && !this.stdout.match(pattern))
        throw new Error(`ended with ${ended.code} before ${pattern}: ${ended.stdout}${ended.stderr}`);
    }
  }

  async url(): Promise<string> {
    return (await this.saw(/^Holdpoint ready on (http:\/\/\S+)$/m))[1] ?? "";
  }

  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<Finished> {
    this.child.kill(signal);
    return this.exited;
  }
}

/** Nothing of the machine that runs the tests may name a server or a token. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const { HOLDPOINT_URL: _url, HOLDPOINT_TOKEN: _token, NO_COLOR: _colour, ...rest } = process.env;
  return rest;
}

export function holdpoint(...args: string[]): Promise<Finished> {
  return holdpointIn({}, ...args);
}

/** Runs a command to its end, with nothing on its standard input. */
export function holdpointIn(surroundings: Surroundings, ...args: string[]): Promise<Finished> {
  const process = new HoldpointProcess(args, surroundings);
  process.child.stdin?.end();
  return process.exited;
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "holdpoint-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
