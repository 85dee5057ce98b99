/** Real processes on a real disk, killed at every kind of port call, and at moments that nobody chose. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Random } from "../../src/testing/random.ts";
import { bundle } from "./bundle.ts";
import type { Death } from "./evidence.ts";
import { type Blow, type Chain, PROGRAM, replayCommand, runChain } from "./kill-chain.ts";
import { choosePlaces, Plan, shuffle, together } from "./plan.ts";
import { STORIES, type StoryName } from "./story.ts";

const KILLS_MIN = 300;
/** Of each story: places to die at, and processes that are killed after a while, whatever they do then. */
const PLACES = 120;
const TIMED = 12;
const SEED = 1;

const folder = mkdtempSync(join(tmpdir(), "holdpoint-kill-"));
let program = PROGRAM;
beforeAll(async () => {
  program = await bundle(PROGRAM, folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

test("a process killed at any moment loses nothing and repeats nothing", { timeout: 600_000 }, async () => {
  const random = new Random(SEED);
  const startedAtMs = performance.now();
  const chains: Chain[] = [];
  for (const story of Object.keys(STORIES) as StoryName[]) chains.push(await runChain(story, () => undefined, program));

  for (const { story, trace } of [...chains]) {
    const plan = new Plan(shuffle([...choosePlaces(trace, PLACES, random), ...chooseMoments(random)], random));
    await together(async () => {
      while (!plan.isDone) chains.push(await plan.play((nextBlow) => runChain(story, nextBlow, program)));
    });
  }
  const rest = deathsMissing(chains).map((death) => () => dieThere(chains, death));
  await together(async () => {
    for (let play = rest.pop(); play; play = rest.pop()) chains.push(await play());
  });

  const places = new Set(chains.flatMap(({ story, hits }) => hits.map((blow) => `${story} ${blow}`)));
  const sum = (count: (chain: Chain) => number) => chains.reduce((total, chain) => total + count(chain), 0);
  const points = new Set(chains.flatMap(({ deaths }) => deaths.map(({ point }) => point)));
  console.log(
    `${sum(({ hits }) => hits.length)} kills at ${places.size} places (${points.size} kinds of port call, before and after)`,
    `on ${chains.length} databases with ${sum(({ tasks }) => tasks)} tasks and ${sum(({ effects }) => effects)} effects`,
    `in ${Math.round((performance.now() - startedAtMs) / 1000)} s`,
  );

  const wrong = chains.filter(({ problems }) => problems.length > 0);
  expect(wrong.map(({ story, hits, problems }) => [replayCommand(story, hits), ...problems].join("\n  "))).toEqual([]);
  expect(deathsMissing(chains), "port calls that nobody died at").toEqual([]);
  expect(places.size).toBeGreaterThanOrEqual(KILLS_MIN);
});

/** From before the first line of the program to after the last one of most stories. */
function chooseMoments(random: Random): Blow[] {
  return Array.from({ length: TIMED }, (): Blow => `${40 + random.below(120)}ms`);
}

/** Calls that were made, and that nobody has died at. */
function deathsMissing(chains: readonly Chain[]): Death[] {
  const died = new Set(chains.flatMap(({ deaths }) => deaths.map(({ point, when }) => `${point} ${when}`)));
  const points = new Set(chains.flatMap(({ trace }) => trace));
  return [...points]
    .flatMap((point): Death[] => [
      { point, when: "before" },
      { point, when: "after" },
    ])
    .filter(({ point, when }) => !died.has(`${point} ${when}`));
}

/** Goes again through a chain whose last process has made the call. */
function dieThere(chains: readonly Chain[], { point, when }: Death): Promise<Chain> {
  const chain = chains.find(({ trace }) => trace.includes(point));
  if (!chain) throw new Error(`nobody calls ${point}`);
  const blows: Blow[] = [...chain.hits, `${point}:${when}`];
  return runChain(chain.story, (life) => blows[life - 1], program);
}
