/**
 * One database and the processes that work on it: each is killed with SIGKILL, until the last one runs to the end and
 * everything is judged. To see one case again:
 *
 *   npx node test/faults/kill-chain.ts "two turns" 17:before 4:after
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import type { History } from "../../src/testing/checker.ts";
import { type Death, openEvidence } from "./evidence.ts";
import type { Place } from "./executioner.ts";
import { judge } from "./judge.ts";

/** Where a process dies by itself, or after how many milliseconds it is killed, whatever it does then. */
export type Blow = Place | `${number}ms`;

export interface Chain {
  readonly story: string;
  /** The blows that hit; one that came after the end of the story did not. */
  readonly hits: readonly Blow[];
  readonly deaths: readonly Death[];
  /** The port calls of the process that ran to the end. */
  readonly trace: readonly string[];
  readonly problems: readonly string[];
  readonly tasks: number;
  readonly effects: number;
}

export const PROGRAM = fileURLToPath(new URL("./worker-process.ts", import.meta.url));

export interface ChainOptions {
  readonly toolRules?: History["toolRules"];
  readonly env?: Readonly<Record<string, string>>;
}

/** `nextBlow` is asked before each process starts; without a blow it is the last one. */
export async function runChain(
  story: string,
  nextBlow: (life: number) => Blow | undefined,
  program = PROGRAM,
  options: ChainOptions = {},
): Promise<Chain> {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-kill-"));
  const blows: Blow[] = [];
  try {
    for (let life = 1; ; life++) {
      const blow = nextBlow(life);
      const trace = await live(program, folder, story, blow, options.env);
      if (trace) return { story, hits: blows, trace, ...(await judgeFolder(folder, options)) };
      if (blow) blows.push(blow);
    }
  } catch (error) {
    const problems = await judgeFolder(folder, options).then(({ problems }) => problems, String);
    throw new Error(`${replayCommand(story, blows)}: ${[error, problems].flat().join("\n  ")}`, { cause: error });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function replayCommand(story: string, blows: readonly Blow[]): string {
  return `npx node test/faults/kill-chain.ts "${story}" ${blows.join(" ")}`;
}

/** One process: its port calls when it came to the end, undefined when it was killed. */
async function live(
  program: string,
  folder: string,
  story: string,
  blow: Blow | undefined,
  env: Readonly<Record<string, string>> = {},
): Promise<string[] | undefined> {
  const isTimed = blow?.endsWith("ms");
  const args = ["--disable-warning=ExperimentalWarning", program, folder, story, ...(blow && !isTimed ? [blow] : [])];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  if (isTimed) void killAfter(child, Number.parseInt(blow ?? "", 10));
  const [[code, signal], out, errors] = await Promise.all([
    once(child, "close"),
    text(child.stdout),
    text(child.stderr),
  ]);
  if (blow && signal === "SIGKILL") return undefined;
  if (code === 0) return JSON.parse(out).trace;
  throw new Error(`the process ended with ${signal ?? code}: ${errors}`);
}

async function killAfter(child: ChildProcess, ms: number): Promise<void> {
  await sleep(ms);
  child.kill("SIGKILL");
}

async function judgeFolder(folder: string, { toolRules }: ChainOptions) {
  const path = join(folder, "test.db");
  const evidence = openEvidence(folder);
  const store = SqliteStore.open({ path, clock: systemClock, ids: systemIds, readOnly: true });
  const { problems, tasks, effects } = await judge(store, evidence, toolRules);
  await store.close();
  const db = new DatabaseSync(path, { readOnly: true });
  const { integrity_check: integrity } = db.prepare("pragma integrity_check").get() as { integrity_check: string };
  db.close();
  return {
    problems: integrity === "ok" ? problems : [...problems, `SQLite says: ${integrity}`],
    tasks: tasks.length,
    effects,
    deaths: evidence.deaths.read(),
  };
}

if (import.meta.main) {
  const [story, ...blows] = process.argv.slice(2) as [string, ...Blow[]];
  const chain = await runChain(story, (life) => blows[life - 1]);
  console.log({ ...chain, trace: `${chain.trace.length} calls` });
  process.exitCode = chain.problems.length > 0 ? 1 : 0;
}
