/** Where the processes of a story die, and how the blows are dealt out over as many databases as it takes. */
import type { Random } from "../../src/testing/random.ts";
import type { Place } from "./executioner.ts";
import type { Blow, Chain } from "./kill-chain.ts";

/** Where a promise can break, if it can: half of the places are taken from these. */
const KEY_POINTS: ReadonlySet<string> = new Set(["store.append", "tool.run"]);
const KILLS_IN_A_ROW_MAX = 3;
const AT_A_TIME = 2;

/** The blows of one story, dealt out over as many databases as it takes. */
export class Plan {
  readonly #blows: Blow[];
  /** Dealt to a process that was over before: only one that starts from nothing gets so far. */
  readonly #forFirst: Blow[] = [];

  constructor(blows: Blow[]) {
    this.#blows = blows;
  }

  get isDone(): boolean {
    return this.#blows.length === 0 && this.#forFirst.length === 0;
  }

  /** `run` asks for the blow of each life. */
  async play(run: (nextBlow: (life: number) => Blow | undefined) => Promise<Chain>): Promise<Chain> {
    const dealt: Blow[] = [];
    const chain = await run((life) => {
      if (life > KILLS_IN_A_ROW_MAX) return undefined;
      const blow = (life === 1 ? this.#forFirst.pop() : undefined) ?? this.#blows.pop();
      if (blow) dealt.push(blow);
      return blow;
    });
    const missed = dealt[chain.hits.length];
    if (missed && chain.hits.length > 0) this.#forFirst.push(missed);
    return chain;
  }
}

/** Every kind of call in turn, so that rare ones are met as often as frequent ones; the key points come first. */
export function choosePlaces(trace: readonly string[], count: number, random: Random): Place[] {
  const kinds = Map.groupBy(trace.keys(), (i) => trace[i] ?? "");
  const placesOf = (calls: readonly number[]) =>
    shuffle(
      calls.flatMap((i): Place[] => [`${i + 1}:before`, `${i + 1}:after`]),
      random,
    );
  const key = placesOf([...kinds].flatMap(([point, calls]) => (KEY_POINTS.has(point) ? calls : [])));
  const places = key.slice(0, count / 2);
  const others = [...kinds].flatMap(([point, calls]) => (KEY_POINTS.has(point) ? [] : [placesOf(calls)]));
  while (places.length < count && others.some(({ length }) => length > 0))
    places.push(...others.flatMap((kind) => kind.splice(0, 1)));
  return places.slice(0, count);
}

export async function together(work: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
}

export function shuffle<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, order: random.next() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}
