import { expect, test } from "vitest";
import { FORGET_MS, REMEMBERED_MAX, warnOnce } from "./warn-once.ts";

function open() {
  const said: string[] = [];
  let nowMs = 0;
  const warn = warnOnce({ clock: { nowMs: () => nowMs }, note: (text) => said.push(text) });
  return { said, warn, pass: (ms: number) => (nowMs += ms) };
}

test("the same warning again and again is said once, another is said too", () => {
  const { said, warn, pass } = open();
  for (const text of ["a: away", "a: away", "b: away", "a: away"]) {
    warn(text);
    pass(FORGET_MS / 3);
  }
  expect(said).toEqual(["a: away\n", "b: away\n"]);
});

test("one that comes back after a long silence is news", () => {
  const { said, warn, pass } = open();
  warn("a: away");
  pass(FORGET_MS);
  warn("a: away");
  expect(said).toHaveLength(2);
});

test("only so many are remembered, the newest", () => {
  const { said, warn } = open();
  for (let i = 0; i <= REMEMBERED_MAX; i++) warn(`task ${i}`);
  warn(`task ${REMEMBERED_MAX}`);
  expect(said).toHaveLength(REMEMBERED_MAX + 1);
  warn("task 0");
  expect(said).toHaveLength(REMEMBERED_MAX + 2);
});
