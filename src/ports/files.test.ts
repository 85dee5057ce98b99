import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fileExists, makePrivateFile, makePrivateFolder, readText, removeFile, writePrivateFile } from "./files.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test("a private file is its owner's alone, and keeps what it holds", () => {
  const path = join(folder, "database");
  makePrivateFile(path);
  expect([modeOf(path), readText(path)]).toEqual(["600", ""]);
  writeFileSync(path, "rows");
  chmodSync(path, 0o644);
  makePrivateFile(path);
  expect([modeOf(path), readText(path)]).toEqual(["600", "rows"]);
});

test("a private folder is made with all folders above it", () => {
  const path = join(folder, "a", "b");
  makePrivateFolder(path);
  expect(modeOf(path)).toBe("700");
  makePrivateFolder(path);
});

test("a written file is private and replaces the old one whole, with nothing left beside it", () => {
  const path = join(folder, "token");
  writePrivateFile(path, "first, and longer");
  writePrivateFile(path, "second");
  expect([modeOf(path), readText(path), readdirSync(folder)]).toEqual(["600", "second", ["token"]]);
});

test("a written file is private even where the old one was not", () => {
  const path = join(folder, "token");
  writeFileSync(path, "old", { mode: 0o644 });
  writePrivateFile(path, "new");
  expect(modeOf(path)).toBe("600");
});

test("removing what is not there is no error", () => {
  const path = join(folder, "file");
  writePrivateFile(path, "");
  expect(fileExists(path)).toBe(true);
  removeFile(path);
  removeFile(path);
  expect(fileExists(path)).toBe(false);
});

// The mode counts only for a file that is made: what an interrupted write or somebody else left there keeps its own.
test("a written file is private even where a file of the same name lies beside it", () => {
  const path = join(folder, "token");
  writeFileSync(`${path}.new`, "left behind");
  chmodSync(`${path}.new`, 0o644);
  writePrivateFile(path, "secret");
  expect(modeOf(path)).toBe("600");
});
