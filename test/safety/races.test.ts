/** Somebody exchanges files and folders for links all the time, while the tools look, write and delete. */
import { type ChildProcess, spawn } from "node:child_process";
import { linkSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PathRefused, type Place, systemConfinedFiles } from "../../src/ports/confined-files.ts";
import { openWorkshop, type Workshop } from "./workshop.ts";

const LOOKS = 1_000;
const EFFECTS = 120;
const ABSENT = "absent";

let workshop: Workshop;
let swapper: ChildProcess | undefined;
beforeEach(() => {
  workshop = openWorkshop();
  writeFileSync(join(workshop.outside, "target.txt"), "secret");
  writeFileSync(join(workshop.root, "sub", "target.txt"), "ours");
});
afterEach(async () => {
  const gone = new Promise((resolve) => swapper?.once("exit", resolve));
  if (swapper?.kill("SIGKILL")) await gone;
  swapper = undefined;
  workshop.close();
});

/** A process of its own that puts `instead` where `path` is, and back, as fast as it can, with a rest in between. */
async function swapForEver([path, instead]: readonly [string, string], restMs: number): Promise<void> {
  const code = `const { renameSync } = require("node:fs");
    const [path, instead, restMs] = process.argv.slice(1);
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const move = (from, to) => { try { renameSync(from, to); } catch {} };
    process.stdout.write("ready");
    for (;;) {
      move(path, path + ".away"); move(instead, path);
      move(path, instead); move(path + ".away", path);
      if (restMs > 0) Atomics.wait(cell, 0, 0, Number(restMs));
    }`;
  const args = ["-e", code, path, instead, String(restMs)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  swapper = child;
  await new Promise((resolve) => child.stdout.once("data", resolve));
}

const placeOf = (path: string): Place => ({ root: workshop.root, path, protectedPaths: [] });

/** Looks again and again; what was seen, with how often. */
async function look(path: string): Promise<Map<string, number>> {
  const seen = new Map<string, number>();
  for (let i = 0; i < LOOKS; i++) {
    const found = await systemConfinedFiles.look(placeOf(path), 1_000).catch(refused);
    const what = typeof found === "string" ? found : found.type === "file" ? String(found.content) : ABSENT;
    seen.set(what, (seen.get(what) ?? 0) + 1);
  }
  return seen;
}

function refused(error: unknown): "refused" {
  if (error instanceof PathRefused) return "refused";
  throw error;
}

const KINDS = ["folder", "file", "hard link"] as const;

function prepareSwap(kind: (typeof KINDS)[number]): [string, string] {
  const { root, outside } = workshop;
  const instead = join(root, "instead");
  if (kind === "folder") symlinkSync(outside, instead);
  if (kind === "file") symlinkSync(join(outside, "target.txt"), instead);
  if (kind === "hard link") linkSync(join(outside, "target.txt"), instead);
  return [kind === "folder" ? join(root, "sub") : join(root, "sub", "target.txt"), instead];
}

describe.each(KINDS)("while a %s comes and goes", (kind) => {
  test("only our own file is ever read", async () => {
    await swapForEver(prepareSwap(kind), 0);
    const seen = await look("sub/target.txt");
    // The race was there: both sides of it were met.
    expect([...seen.keys()].sort().filter((what) => what !== ABSENT)).toEqual(["ours", "refused"]);
    expect(Math.min(...seen.values())).toBeGreaterThan(0);
  });

  test("nothing outside is ever written or deleted", async () => {
    // An effect takes as long as the disk does: without a rest none would ever come through.
    await swapForEver(prepareSwap(kind), 2);
    const outcomes = new Set<string>();
    for (let i = 0; i < EFFECTS || !outcomes.has("done"); i++) {
      const place = placeOf("sub/target.txt");
      const found = await systemConfinedFiles.look(place, 0).catch(refused);
      const before = typeof found === "object" && found.type === "file" ? found.sha256 : undefined;
      const change = { before, content: Buffer.from(`ours ${i}`), mode: 0o644, newFolders: [], mark: "0" };
      const isDeletion = i % 4 === 3 && before !== undefined;
      const effect = isDeletion
        ? systemConfinedFiles.remove(place, before)
        : systemConfinedFiles.replace(place, change);
      outcomes.add(await effect.catch(refused));
    }
    expect(outcomes).toContain("done");
    expect(readFileSync(join(workshop.outside, "target.txt"), "utf8")).toBe("secret");
    expect(readdirSync(workshop.outside).sort()).toEqual(["printargs", "secret.txt", "target.txt"]);
    rmSync(join(workshop.root, "instead"), { force: true, recursive: true });
  });
});
