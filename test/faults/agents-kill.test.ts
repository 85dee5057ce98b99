/** The documented configuration, its real model client and real tools, in processes that are killed at any port call. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { Random } from "../../src/testing/random.ts";
import { startOpenAi } from "../openai/server.ts";
import { modelReply, TOOL_RULES } from "./agents-story.ts";
import { bundle } from "./bundle.ts";
import { type Blow, type Chain, runChain } from "./kill-chain.ts";
import { choosePlaces, Plan, shuffle, together } from "./plan.ts";

const PROGRAM = fileURLToPath(new URL("./agents-process.ts", import.meta.url));
const SEED = fileURLToPath(new URL("../seeds/002-complete-example.yaml", import.meta.url));
const KILLS_MIN = 100;
const PLACES = 110;

test("a process killed at any moment of the documented story loses nothing and repeats nothing", {
  timeout: 600_000,
}, async () => {
  const model = await startOpenAi(modelReply);
  onTestFinished(() => model.stop());
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-kill-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const program = await bundle(PROGRAM, folder);
  const startedAtMs = performance.now();
  // Compiled once: a process then starts in half the time.
  const env = { OPENAI_HOST: model.url, SEED_CONFIG: SEED, NODE_COMPILE_CACHE: folder };
  const options = { toolRules: TOOL_RULES, env };
  const run = (nextBlow: (life: number) => Blow | undefined) => runChain("agents", nextBlow, program, options);
  const whole = await run(() => undefined);
  const chains: Chain[] = [whole];
  const random = new Random(1);
  const plan = new Plan(shuffle(choosePlaces(whole.trace, PLACES, random), random));
  await together(async () => {
    while (!plan.isDone) chains.push(await plan.play(run));
  });
  const places = new Set(chains.flatMap(({ hits }) => hits));
  const effects = chains.reduce((sum, chain) => sum + chain.effects, 0);
  const seconds = Math.round((performance.now() - startedAtMs) / 1000);
  console.log(`${places.size} places to die at, ${chains.length} databases, ${effects} effects, ${seconds} s`);
  expect(chains.flatMap(({ hits, problems }) => problems.map((problem) => `${hits.join(" ")}: ${problem}`))).toEqual(
    [],
  );
  expect(places.size).toBeGreaterThanOrEqual(KILLS_MIN);
  // Without blows: two tasks, in each two reads, two commands, two writes that were approved; nothing else ran.
  expect(whole.effects).toBe(12);
});
