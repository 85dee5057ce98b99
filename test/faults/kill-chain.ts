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
import { type Death, openEvidence } from "./evidence.ts";
import { judge } from "./judge.ts";
import type { StoryName } from "./story.ts";
import type { Place } from "./worker-process.ts";

/** Where a process dies by itself, or after how many milliseconds it is killed, whatever it does then. */
export type Blow = Place | `${number}ms`;

export interface Chain {
  readonly story: StoryName;
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

/** `nextBlow` is asked before each process starts; without a blow it is the last one. */
export async function runChain(
  story: StoryName,
  nextBlow: (life: number) => Blow | undefined,
  program = PROGRAM,
): Promise<Chain> {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-kill-"));
  const blows: Blow[] = [];
  try {
    for (let life = 1; ; life++) {
      const blow = nextBlow(life);
      const trace = await live(program, folder, story, blow);
      if (trace) return { story, hits: blows, trace, ...(await judgeFolder(folder)) };
      if (blow) blows.push(blow);
    }
  } catch (error) {
    const problems = await judgeFolder(folder).then(({ problems }) => problems, String);
    throw new Error(`${replayCommand(story, blows)}: ${[error, problems].flat().join("\n  ")}`, { cause: error });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function replayCommand(story: StoryName, blows: readonly Blow[]): string {
  return `npx node test/faults/kill-chain.ts "${story}" ${blows.join(" ")}`;
}

/** One process: its port calls when it came to the end, undefined when it was killed. */
async function live(
  program: string,
  folder: string,
  story: StoryName,
  blow: Blow | undefined,
): Promise<string[] | undefined> {
  const isTimed = blow?.endsWith("ms");
  const args = ["--disable-warning=ExperimentalWarning", program, folder, story, ...(blow && !isTimed ? [blow] : [])];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (isTimed) void killAfter(child, Number.parseInt(blow ?? "", 10));
  const [[code, signal], out, errors] = await Promise.all([
    once(child, "close"),
    text(child.stdout),
    text(child.stderr),
  ]);
  if (blow && signal === "SIGKILL") return undefined;
  if (code === 0) return JSON.parse(out).trace;
  throw new Error(`worker-process.ts ended with ${signal ?? code}: ${errors}`);
}

async function killAfter(child: ChildProcess, ms: number): Promise<void> {
  await sleep(ms);
  child.kill("SIGKILL");
}

async function judgeFolder(folder: string) {
  const path = join(folder, "test.db");
  const evidence = openEvidence(folder);
  const store = SqliteStore.open({ path, clock: systemClock, ids: systemIds, readOnly: true });
  const { problems, tasks, effects } = await judge(store, evidence);
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
  const [story, ...blows] = process.argv.slice(2) as [StoryName, ...Blow[]];
  const chain = await runChain(story, (life) => blows[life - 1]);
  console.log({ ...chain, trace: `${chain.trace.length} calls` });
  process.exitCode = chain.problems.length > 0 ? 1 : 0;
}
