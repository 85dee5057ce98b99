/** A disk with no space left, and a file that may not grow: real limits of the operating system, around a child. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Child } from "./line-protocol.ts";
import type { StoreOperations } from "./store-process.ts";

const PROGRAM = fileURLToPath(new URL("./store-process.ts", import.meta.url));
/** More than fits into what is left of the last page. */
const BYTES = 20_000;
const KEPT = { state: "working", events: ["task-submitted"] };

let folder = "";
let child: Child<StoreOperations>;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-full-"));
});
afterEach(async () => {
  await child.kill();
  rmSync(folder, { recursive: true });
});

/** A small disk of its own over `$0`, seen only by this child. */
const SMALL_DISK = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"';
const onSmallDisk = (place: string) => [
  "unshare",
  "--user",
  "--map-root-user",
  "--mount",
  "sh",
  "-c",
  SMALL_DISK,
  place,
];
const noSmallDisk = findObstacle(onSmallDisk(tmpdir()));
if (noSmallDisk) console.log(`skipped: no small disk can be made here: ${noSmallDisk}`);

describe.skipIf(noSmallDisk)("when the disk is full", () => {
  beforeEach(async () => {
    child = new Child({ program: PROGRAM, under: onSmallDisk(folder) });
  });

  test("an append changes nothing and says so; what was kept is still read; it succeeds when there is space", async () => {
    await child.ask("open", { path: join(folder, "test.db") });
    const kept = await child.ask("submit", { messageId: "kept", bytes: BYTES });
    expect(await child.ask("fill", join(folder, "ballast"))).toBeGreaterThan(0);

    const again = { messageId: "too much", bytes: BYTES };
    await expect(child.ask("submit", again)).rejects.toMatchObject({
      code: "store-full",
      message: expect.stringContaining("nothing was changed"),
    });
    await expect(child.ask("submitMany", { count: 50, atOnce: true })).rejects.toMatchObject({ code: "store-full" });
    expect(await child.ask("read", kept)).toEqual(KEPT);
    expect(await child.ask("count")).toBe(1);

    await child.ask("free", join(folder, "ballast"));
    const task = await child.ask("submit", again);
    expect(await child.ask("read", task)).toEqual(KEPT);
    await reopen();
    expect(await child.ask("count")).toBe(2);
    expect(await child.ask("verify")).toEqual([]);
  });

  test("a decision is not acknowledged, and the task goes on when there is space", async () => {
    await child.ask("open", { path: join(folder, "test.db"), works: true });
    const task = await child.ask("submit", { messageId: "please" });
    await waitFor(task, "input-required");
    await child.ask("fill", join(folder, "ballast"));
    await expect(child.ask("approve", task)).rejects.toMatchObject({ code: "store-full" });
    expect(await child.ask("read", task)).toMatchObject({ state: "input-required" });

    await child.ask("free", join(folder, "ballast"));
    await child.ask("approve", task);
    await waitFor(task, "completed");
    await reopen();
    expect(await child.ask("read", task)).toMatchObject({ state: "completed" });
    expect(await child.ask("verify")).toEqual([]);
  });

  test("the outcome of a tool is written down as soon as there is space", async () => {
    await child.ask("open", { path: join(folder, "test.db"), works: true });
    const task = await child.ask("submit", { messageId: "please" });
    await waitFor(task, "input-required");
    await child.ask("fillWhenToolRuns", join(folder, "ballast"));
    await child.ask("approve", task);
    await child.hear("filled");
    expect((await child.ask("read", task))?.events.at(-1)).toBe("effect-claimed");
    await child.ask("free", join(folder, "ballast"));
    await waitFor(task, "completed");
    expect((await child.ask("read", task))?.events.filter((type) => type.startsWith("effect-"))).toEqual([
      "effect-claimed",
      "effect-finished",
    ]);
    await reopen();
    expect(await child.ask("verify")).toEqual([]);
  });

  test("a server that starts says that the disk is full, and not that somebody else is running", async () => {
    await child.ask("open", { path: join(folder, "test.db") });
    const kept = await child.ask("submit", { messageId: "kept", bytes: BYTES });
    await child.ask("close");
    await child.ask("fill", join(folder, "ballast"));
    await expect(child.ask("open", { path: join(folder, "test.db") })).rejects.toMatchObject({ code: "store-full" });
    await child.ask("free", join(folder, "ballast"));
    await child.ask("open", { path: join(folder, "test.db") });
    expect(await child.ask("read", kept)).toEqual(KEPT);
  });
});

/** Soft, so that it can be lifted from outside; in blocks of 512 bytes. */
const withLimit = ["sh", "-c", 'ulimit -S -f 1000; exec "$@"', "sh"];
const noLimit = findObstacle([...withLimit, "prlimit"]);
if (noLimit) console.log(`skipped: no limit can be set and lifted here: ${noLimit}`);

describe.skipIf(noLimit)("when a file may not grow", () => {
  test("an append fails as a disk error, changes nothing, and succeeds when the limit is lifted", async () => {
    child = new Child({ program: PROGRAM, under: withLimit });
    await child.ask("open", { path: join(folder, "test.db") });
    const kept: string[] = [];
    const submit = async () => kept.push(await child.ask("submit", { messageId: `m${kept.length}`, bytes: BYTES }));
    const fault = { code: "store-unavailable", message: expect.stringContaining("the disk reported an error") };
    await expect(repeat(submit)).rejects.toMatchObject(fault);
    await expect(submit()).rejects.toMatchObject(fault);
    expect(kept.length).toBeGreaterThan(3);
    expect(await child.ask("count")).toBe(kept.length);

    execFileSync("prlimit", ["--fsize=unlimited", "--pid", String(child.pid)]);
    await submit();
    await reopen();
    expect(await child.ask("count")).toBe(kept.length);
    expect(await child.ask("verify")).toEqual([]);
  });
});

async function repeat(work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < 200; i++) await work();
}

async function reopen(): Promise<void> {
  await child.ask("close");
  await child.ask("open", { path: join(folder, "test.db") });
}

async function waitFor(task: string, state: string): Promise<void> {
  await vi.waitFor(async () => expect(await child.ask("read", task)).toMatchObject({ state }), 10_000);
}

function findObstacle(under: readonly string[]): string | undefined {
  try {
    execFileSync(under[0] ?? "", [...under.slice(1), "true"], { stdio: "pipe" });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
