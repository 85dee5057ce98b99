/** Runs many schedules and adds up what they reached. */
import type { StoryKind } from "../../src/testing/sim-story.ts";
import { type SimulationResult, simulate } from "../../src/testing/simulation.ts";

export interface Summary {
  readonly schedules: number;
  readonly crashes: number;
  readonly effects: number;
  readonly tasks: number;
  readonly failures: readonly Failure[];
}

interface Failure extends Pick<SimulationResult, "seed" | "violations"> {
  readonly story: StoryKind;
}

const FAILURES_MAX = 20;

export async function runSchedules(
  first: number,
  count: number,
  progress?: (done: number) => void,
  story: StoryKind = "agents",
): Promise<Summary> {
  const failures: Failure[] = [];
  let [crashes, effects, tasks, done] = [0, 0, 0, 0];
  for (let seed = first; seed < first + count && failures.length < FAILURES_MAX; seed++) {
    const { violations, stats } = await simulate(seed, undefined, story);
    crashes += stats.crashes;
    effects += stats.effects;
    tasks += stats.tasks;
    done++;
    if (violations.length > 0) failures.push({ seed, story, violations });
    if (done % 1000 === 0) progress?.(done);
  }
  return { schedules: done, crashes, effects, tasks, failures };
}

export function describeFailure({ seed, story, violations }: Failure): string {
  return `${violations.join("; ")}\n  replay: npm run sim -- --story ${story} --seed ${seed}`;
}
