import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Button,
  isTooQuick,
  type Key,
  type Menu,
  pressKey,
  QUIET_MS,
  SETTLE_MS,
  SHOWN_MS,
  settled,
  showMenu,
} from "./arming.ts";

const BUTTONS = ["approve", "edit", "deny"] as const;
const key = (text: string): Key =>
  text === "\r" ? { text, name: "return" } : text === " " ? { text, name: "space" } : { text, name: text };

/** Plays keys at their times and answers what was decided, looking as often as a terminal would. */
function play(keys: readonly (readonly [atMs: number, text: string])[], isHigh = false): Button | undefined {
  let menu: Menu = showMenu(BUTTONS, isHigh, 0);
  for (const [atMs, text] of keys) {
    const done = settled(menu, atMs);
    if (done) return done;
    menu = pressKey(menu, key(text), atMs);
  }
  return settled(menu, Number.MAX_SAFE_INTEGER);
}

describe("for low and medium risk", () => {
  test.each([
    ["a approves once it is armed", [[SHOWN_MS, "a"]], "approve"],
    ["d denies", [[SHOWN_MS, "d"]], "deny"],
    ["e edits", [[SHOWN_MS, "e"]], "edit"],
    ["A is a too", [[SHOWN_MS, "A"]], "approve"],
    ["a just after it was shown does nothing", [[SHOWN_MS - 1, "a"]], undefined],
    ["any other letter does nothing", [[5000, "y"]], undefined],
    ["Enter alone does nothing", [[5000, "\r"]], undefined],
    ["Space alone does nothing", [[5000, " "]], undefined],
    [
      "Enter acts on what has the focus",
      [
        [5000, "right"],
        [6000, "\r"],
      ],
      "approve",
    ],
    [
      "Enter acts on what has the focus, moved on",
      [
        [5000, "right"],
        [5100, "right"],
        [6000, "\r"],
      ],
      "edit",
    ],
    [
      "backwards begins at the end",
      [
        [5000, "left"],
        [6000, "\r"],
      ],
      "deny",
    ],
    [
      "a within a second of other typing does nothing",
      [
        [5000, "x"],
        [5000 + QUIET_MS - 1, "a"],
      ],
      undefined,
    ],
    [
      "a after a second of silence approves",
      [
        [5000, "x"],
        [5000 + QUIET_MS, "a"],
      ],
      "approve",
    ],
    [
      "the first letter of a word does nothing",
      [
        [5000, "a"],
        [5000 + SETTLE_MS - 1, "d"],
      ],
      undefined,
    ],
    [
      "a refused key waits anew",
      [
        [100, "a"],
        [SHOWN_MS + 100, "a"],
      ],
      undefined,
    ],
  ] as const)("%s", (_what, keys, button) => {
    expect(play(keys)).toBe(button);
  });
});

describe("for high risk", () => {
  test.each([
    ["a alone only focuses", [[5000, "a"]], undefined],
    [
      "a, then Enter approves",
      [
        [5000, "a"],
        [5000 + SHOWN_MS, "\r"],
      ],
      "approve",
    ],
    [
      "a and Enter at once do nothing",
      [
        [5000, "a"],
        [5000 + SHOWN_MS - 1, "\r"],
      ],
      undefined,
    ],
    [
      "a twice is not Enter",
      [
        [5000, "a"],
        [6000, "a"],
      ],
      undefined,
    ],
    [
      "a, something else, Enter does nothing",
      [
        [5000, "a"],
        [6000, "p"],
        [7500, "\r"],
      ],
      undefined,
    ],
    ["d denies with one key", [[5000, "d"]], "deny"],
  ] as const)("%s", (_what, keys, button) => {
    expect(play(keys, true)).toBe(button);
  });
});

describe("Enter too soon after a", () => {
  const enter = key("\r");
  const shown = showMenu(BUTTONS, true, 0);
  const focused = pressKey(shown, key("a"), 5000);

  test("is told as too quick, and not any more once it counts", () => {
    expect(isTooQuick(focused, enter, 5000 + SHOWN_MS - 1)).toBe(true);
    expect(isTooQuick(focused, enter, 5000 + SHOWN_MS)).toBe(false);
    // Where a alone decides, Enter takes it back.
    const pressed = pressKey(showMenu(BUTTONS, false, 0), key("a"), 5000);
    expect(isTooQuick(pressed, enter, 5000 + SETTLE_MS - 1)).toBe(true);
  });

  test("is all that is told: other keys that are swallowed are not", () => {
    expect(isTooQuick(shown, enter, 5000)).toBe(false);
    for (const text of ["a", "p", " "]) expect(isTooQuick(focused, key(text), 5001)).toBe(false);
    expect(isTooQuick(pressKey(focused, key("p"), 5001), enter, 5002)).toBe(false);
    expect(isTooQuick(pressKey(shown, key("d"), 5000), enter, 5001)).toBe(false);
  });
});

test("no burst of typing decides, whatever is typed and whenever the request appears in it", () => {
  const character = fc.constantFrom(..."aaaddee \r\r\rpprovynx".split(""));
  const gap = fc.integer({ min: 0, max: SETTLE_MS - 1 });
  const burst = fc.array(fc.tuple(gap, character), { minLength: 2, maxLength: 60 });
  fc.assert(
    fc.property(burst, fc.nat({ max: 3000 }), fc.boolean(), (strokes, startMs, isHigh) => {
      let atMs = startMs;
      const keys = strokes.map(([gapMs, text]) => {
        atMs += gapMs;
        return [atMs, text] as const;
      });
      // The last key of a burst has none after it; it is the second at least, so it was never armed.
      expect(play(keys, isHigh)).toBeUndefined();
    }),
    { numRuns: 1000 },
  );
});
