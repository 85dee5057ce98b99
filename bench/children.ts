/** Starts measurements as processes of their own, from JavaScript as it is published: stripping types takes time and memory. */
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { BedAddress } from "./bed.ts";
import type { Roles } from "./gate-child.ts";

type Role = keyof Roles;
type Plan<R extends Role> = Parameters<Roles[R]>[0];
type Result<R extends Role> = Awaited<ReturnType<Roles[R]>>;

export interface Started<R extends Role> {
  readonly result: Result<R>;
  /** From exec to the first message. */
  readonly firstMs: number;
}

export class Children {
  readonly #program: string;
  readonly #flags: readonly string[];

  /** Builds into `folder`, which lies inside the repository so that packages are found. */
  constructor(root: string, folder: string, profiles?: string) {
    const built = join(folder, "built");
    mkdirSync(built);
    const config = join(built, "tsconfig.json");
    const options = { rootDir: root, outDir: built, declaration: false, sourceMap: true, noCheck: true };
    const include = [join(root, "src"), join(root, "bench")];
    const exclude = [join(root, "**/*.test.ts"), join(root, "bench/results")];
    const base = join(root, "tsconfig.build.json");
    writeFileSync(config, JSON.stringify({ extends: base, compilerOptions: options, include, exclude }));
    const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
    execFileSync(process.execPath, [join(dirname(manifest), "bin", "tsc"), "-p", config], { stdio: "inherit" });
    this.#program = join(built, "bench", "gate-child.js");
    this.#flags = profiles ? ["--expose-gc", "--cpu-prof", `--cpu-prof-dir=${profiles}`] : ["--expose-gc"];
  }

  async run<R extends Role>(role: R, plan: Plan<R>): Promise<Result<R>> {
    return (await this.start(role, plan)).result;
  }

  async start<R extends Role>(role: R, plan: Plan<R>): Promise<Started<R>> {
    const [first, last] = await startProcess([...this.#flags, this.#program, role, JSON.stringify(plan)]);
    return { result: (last.message as { result: Result<R> }).result, firstMs: first.atMs };
  }
}

interface Told {
  readonly message: unknown;
  /** Since the process was started. */
  readonly atMs: number;
}

/** How long from exec to ready, a few times. */
export async function startOften(children: Children, address: BedAddress, times: number): Promise<number[]> {
  const readyMs: number[] = [];
  for (let i = 0; i < times; i++) readyMs.push((await children.start("ready", address)).firstMs);
  return readyMs;
}

/** Its first message and its last. */
export function startProcess(args: readonly string[], cwd?: string): Promise<[first: Told, last: Told]> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const told: Told[] = [];
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      ...(cwd === undefined ? {} : { cwd }),
    });
    child.on("message", (message) => told.push({ message, atMs: performance.now() - startMs }));
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      const [first, last] = [told.at(0), told.at(-1)];
      if (code === 0 && first && last) resolve([first, last]);
      else reject(new Error(`${args.slice(-2, -1)} ended with ${code ?? signal}`));
    });
  });
}
