/**
 * The race at its worst, always: the folder is exchanged for a link as soon as it was opened, and put back just before
 * it is looked at again. Only what goes through the open folder itself comes out right.
 */
import { readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemConfinedFiles } from "../../src/ports/confined-files.ts";
import { openWorkshop, type Workshop } from "./workshop.ts";

const swap = vi.hoisted(() => ({ away: () => {}, back: () => {} }));

// The real file system, with somebody who acts between two of its calls.
vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  const open: typeof real.open = async (path, ...rest) => {
    const handle = await real.open(path, ...rest);
    if (String(path).endsWith("/sub")) swap.away();
    return handle;
  };
  const readlink = async (path: string) => {
    swap.back();
    return real.readlink(path);
  };
  return { ...real, open, readlink };
});

let workshop: Workshop;
let swaps = 0;
beforeEach(() => {
  workshop = openWorkshop();
  const sub = join(workshop.root, "sub");
  writeFileSync(join(workshop.outside, "inner.txt"), "secret");
  let isAway = false;
  swaps = 0;
  swap.away = () => {
    renameSync(sub, `${sub}.away`);
    symlinkSync(workshop.outside, sub);
    isAway = true;
    swaps++;
  };
  swap.back = () => {
    if (!isAway) return;
    renameSync(sub, `${sub}.link-${swaps}`);
    renameSync(`${sub}.away`, sub);
    isAway = false;
  };
});
afterEach(() => workshop.close());

test("only what goes through the open folder is read, written and deleted", async () => {
  const place = { root: workshop.root, path: "sub/inner.txt", protectedPaths: [] };
  const first = await systemConfinedFiles.look(place, 1_000);
  expect(first).toMatchObject({ type: "file", content: Buffer.from("inner\n") });
  const before = first.type === "file" ? first.sha256 : "";
  const change = { before, content: Buffer.from("new"), mode: 0o644, newFolders: [], mark: "0" };
  expect(await systemConfinedFiles.replace(place, change)).toBe("done");
  const second = await systemConfinedFiles.look(place, 1_000);
  expect(second).toMatchObject({ content: Buffer.from("new") });
  expect(await systemConfinedFiles.remove(place, second.type === "file" ? second.sha256 : "")).toBe("done");
  expect(swaps).toBe(4);
  expect(readFileSync(join(workshop.outside, "inner.txt"), "utf8")).toBe("secret");
  expect(readdirSync(workshop.outside).sort()).toEqual(["inner.txt", "printargs", "secret.txt"]);
  expect(readdirSync(join(workshop.root, "sub"))).toEqual([]);
});
