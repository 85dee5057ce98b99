/** Real processes on a real disk, killed at every kind of port call, and at moments that nobody chose. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Random } from "../../src/testing/random.ts";
import { bundle } from "./bundle.ts";
import type { Death } from "./evidence.ts";
import { type Blow, type Chain, PROGRAM, replayCommand, runChain } from "./kill-chain.ts";
import { STORIES, type StoryName } from "./story.ts";
import type { Place } from "./worker-process.ts";

const KILLS_MIN = 300;
/** Of each story: places to die at, and processes that are killed after a while, whatever they do then. */
const PLACES = 120;
const TIMED = 12;
/** Where a promise can break, if it can: half of the places are taken from these. */
const KEY_POINTS: ReadonlySet<string> = new Set(["store.append", "tool.run"]);
const KILLS_IN_A_ROW_MAX = 3;
const AT_A_TIME = 2;
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
    const plan = new Plan(shuffle([...choosePlaces(trace, random), ...chooseMoments(random)], random));
    await together(async () => {
      while (!plan.isDone) chains.push(await plan.play(story));
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

/** The blows of one story, dealt out over as many databases as it takes. */
class Plan {
  readonly #blows: Blow[];
  /** Dealt to a process that was over before: only one that starts from nothing gets so far. */
  readonly #forFirst: Blow[] = [];

  constructor(blows: Blow[]) {
    this.#blows = blows;
  }

  get isDone(): boolean {
    return this.#blows.length === 0 && this.#forFirst.length === 0;
  }

  async play(story: StoryName): Promise<Chain> {
    const dealt: Blow[] = [];
    const chain = await runChain(
      story,
      (life) => {
        if (life > KILLS_IN_A_ROW_MAX) return undefined;
        const blow = (life === 1 ? this.#forFirst.pop() : undefined) ?? this.#blows.pop();
        if (blow) dealt.push(blow);
        return blow;
      },
      program,
    );
    const missed = dealt[chain.hits.length];
    if (missed && chain.hits.length > 0) this.#forFirst.push(missed);
    return chain;
  }
}

/** Every kind of call in turn, so that rare ones are met as often as frequent ones; the key points come first. */
function choosePlaces(trace: readonly string[], random: Random): Place[] {
  const kinds = Map.groupBy(trace.keys(), (i) => trace[i] ?? "");
  const placesOf = (calls: readonly number[]) =>
    shuffle(
      calls.flatMap((i): Place[] => [`${i + 1}:before`, `${i + 1}:after`]),
      random,
    );
  const key = placesOf([...kinds].flatMap(([point, calls]) => (KEY_POINTS.has(point) ? calls : [])));
  const places = key.slice(0, PLACES / 2);
  const others = [...kinds].flatMap(([point, calls]) => (KEY_POINTS.has(point) ? [] : [placesOf(calls)]));
  while (places.length < PLACES) places.push(...others.flatMap((kind) => kind.splice(0, 1)));
  return places.slice(0, PLACES);
}

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

async function together(work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
}

function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, order: random.next() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}
