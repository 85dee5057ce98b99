import type { StoryKind } from "../../src/testing/sim-story.ts";

/** Seeds that once showed a bug, with what it was. They stay, so that it does not come back unnoticed. */
export const MENDED_SEEDS: readonly { readonly seed: number; readonly story: StoryKind; readonly bug: string }[] = [
  {
    seed: 873,
    story: "calls",
    bug: "a release that failed while the store was away overwrote a paused task's deadline, and it spun",
  },
  { seed: 2319, story: "calls", bug: "the same, with two tasks and a crash" },
  { seed: 5828, story: "calls", bug: "the same, without a crash" },
  {
    seed: 20064,
    story: "calls",
    bug: "a lease whose answer was lost was kept alive by the owner's heartbeat, and nobody could take it",
  },
  { seed: 20745, story: "calls", bug: "the same, after a crash" },
];
