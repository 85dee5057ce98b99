/**
 * `npm run sim -- [--schedules n] [--seed n] [--from n] [--workers n] [--story calls|agents]`: many schedules on all cores, or one seed with
 * its trace.
 */
import { spawn } from "node:child_process";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { StoryKind } from "../../src/testing/sim-story.ts";
import { simulate } from "../../src/testing/simulation.ts";
import { readFlags, stop } from "../flags.ts";
import { describeFailure, runSchedules, type Summary } from "./schedules.ts";

const USAGE =
  "npm run sim -- [--schedules n] [--seed n | --from n] [--workers n] [--story calls|agents]; --seed alone replays one with its trace";

const { values } = readFlags(USAGE, {
  options: {
    schedules: { type: "string", default: "10000" },
    seed: { type: "string" },
    from: { type: "string", default: "1" },
    workers: { type: "string", default: String(availableParallelism()) },
    story: { type: "string", default: "agents" },
    part: { type: "boolean", default: false },
  },
});

for (const [name, value] of Object.entries(values)) {
  if (name !== "story" && typeof value === "string" && !/^[1-9]\d*$/.test(value))
    stop(`--${name} is a number from 1, not "${value}"\n${USAGE}`);
}
if (values.story !== "calls" && values.story !== "agents") stop(`--story is calls or agents\n${USAGE}`);
const story = values.story as StoryKind;
if (values.part) await runPart();
else if (values.seed !== undefined && !process.argv.includes("--schedules")) await replay(Number(values.seed));
else await runAll();

async function replay(seed: number): Promise<void> {
  const { trace, violations, stats } = await simulate(seed, undefined, story);
  console.log(trace.join("\n"));
  console.log(stats);
  console.log(violations.length === 0 ? `seed ${seed}: every invariant holds` : violations.join("\n"));
  process.exitCode = violations.length === 0 ? 0 : 1;
}

/** One share of the work, in a process of its own; talks in lines of JSON. */
async function runPart(): Promise<void> {
  const tell = (done: number) => console.log(JSON.stringify({ done }));
  const summary = await runSchedules(Number(values.from), Number(values.schedules), tell, story);
  console.log(JSON.stringify({ summary }));
}

async function runAll(): Promise<void> {
  const schedules = Number(values.schedules);
  const workers = Math.max(1, Number(values.workers));
  const from = Number(values.seed ?? values.from);
  const share = Math.ceil(schedules / workers);
  const since = performance.now();
  const done = new Map<number, number>();
  const show = () => {
    const sum = [...done.values()].reduce((a, b) => a + b, 0);
    const rate = Math.round((sum / (performance.now() - since)) * 1000);
    process.stderr.write(`\r${sum} of ${schedules} schedules, ${rate}/s   `);
  };
  const parts = Array.from({ length: workers }, (_, i) => {
    const count = Math.min(share, schedules - i * share);
    return runChild(from + i * share, count, (n) => {
      done.set(i, n);
      show();
    });
  });
  const summaries = await Promise.all(parts);
  const sum = (pick: (summary: Summary) => number) => summaries.reduce((total, summary) => total + pick(summary), 0);
  const failures = summaries.flatMap((summary) => summary.failures);
  process.stderr.write("\n");
  console.log(
    `${sum((s) => s.schedules)} schedules from seed ${from}: ${sum((s) => s.crashes)} crashes, ${sum((s) => s.tasks)} tasks, ` +
      `${sum((s) => s.effects)} effects, ${failures.length} with violations, ${Math.round((performance.now() - since) / 1000)} s`,
  );
  for (const failure of failures) console.log(describeFailure(failure));
  process.exitCode = failures.length === 0 ? 0 : 1;
}

async function runChild(from: number, schedules: number, progress: (done: number) => void): Promise<Summary> {
  const child = spawn(
    process.execPath,
    [
      fileURLToPath(import.meta.url),
      "--part",
      "--from",
      String(from),
      "--schedules",
      String(schedules),
      "--story",
      story,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as { done?: number; summary?: Summary };
    if (said.done !== undefined) progress(said.done);
    if (said.summary) return said.summary;
  }
  throw new Error(`the part from seed ${from} ended without a result`);
}
