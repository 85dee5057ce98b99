import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemIds } from "../ports/ids.ts";
import { findOwnerToken, ownerToken } from "./token.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const file = () => join(folder, "token");

test("a token is made once, with 256 bits, for its owner alone, and nothing is left beside it", () => {
  expect(findOwnerToken(folder, {})).toBeUndefined();
  const token = ownerToken(folder, {}, systemIds);
  expect(token).toMatch(/^[\w-]{44}$/);
  expect(ownerToken(folder, {}, systemIds)).toBe(token);
  expect(findOwnerToken(folder, {})).toBe(token);
  expect([statSync(file()).mode & 0o777, readdirSync(folder)]).toEqual([0o600, ["token"]]);
});

test("who comes second takes the token of the first", () => {
  let tokens = 0;
  const racing = {
    ...systemIds,
    token: () => {
      // Another process is quicker, in the very last moment.
      if (++tokens === 3) writeFileSync(file(), "of-the-first\n", { mode: 0o600 });
      return `t${tokens}`;
    },
  };
  expect(ownerToken(folder, {}, racing)).toBe("of-the-first");
});

test("a token that others could read is taken from them", () => {
  writeFileSync(file(), "known\n");
  chmodSync(file(), 0o644);
  expect(ownerToken(folder, {}, systemIds)).toBe("known");
  expect(statSync(file()).mode & 0o777).toBe(0o600);
});

test("the environment comes first, and an empty variable is none", () => {
  const made = ownerToken(folder, { HOLDPOINT_TOKEN: "" }, systemIds);
  expect(ownerToken(folder, { HOLDPOINT_TOKEN: "given" }, systemIds)).toBe("given");
  expect(readFileSync(file(), "utf8").trim()).toBe(made);
});

test.each(["", "two words", "line\nbreak", "ünïcode"])("%j is no token", (text) => {
  writeFileSync(file(), text);
  expect(() => ownerToken(folder, {}, systemIds)).toThrow("is not a token");
});
