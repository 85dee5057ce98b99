/**
 * A killed process proves nothing about power loss: the system writes its pages all the same. What counts is that
 * nothing is acknowledged before the disk has been asked to keep it, so the system calls are counted.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { Child } from "./line-protocol.ts";
import type { StoreOperations } from "./store-process.ts";

const APPENDS = 100;
const PROGRAM = fileURLToPath(new URL("./store-process.ts", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "holdpoint-fsync-"));
afterAll(() => rmSync(folder, { recursive: true }));

const whyNot = findObstacle();
if (whyNot) console.log(`skipped: fsync cannot be counted here: ${whyNot}`);

test.skipIf(whyNot)("every acknowledged append has been synced to the disk", async () => {
  const syncs = await countSyncs("full", { count: APPENDS, atOnce: false });
  expect(syncs).toBeGreaterThanOrEqual(APPENDS);
});

test.skipIf(whyNot)("appends that come together share their syncs", async () => {
  const syncs = await countSyncs("full", { count: APPENDS, atOnce: true });
  expect(syncs).toBeGreaterThan(0);
  expect(syncs).toBeLessThan(APPENDS / 5);
});

test.skipIf(whyNot)("the count would tell: with synchronous = normal hardly any append is synced", async () => {
  const syncs = await countSyncs("normal", { count: APPENDS, atOnce: false });
  expect(syncs).toBeLessThan(APPENDS / 5);
});

test("a database that cannot be in WAL mode is not taken for durable", async () => {
  // In its own folder: the name is SQLite's for a database in memory, and ours for a file.
  const child = new Child<StoreOperations>({ program: PROGRAM, options: { cwd: folder } });
  await expect(child.ask("open", { path: ":memory:" })).rejects.toMatchObject({
    code: "store-not-durable",
    message: expect.stringContaining("journal_mode is memory"),
  });
  await child.stop();
});

/** How often the write-ahead log was synced, from before the start of a process to after its end. */
async function countSyncs(
  synchronous: "full" | "normal",
  appends: { readonly count: number; readonly atOnce: boolean },
): Promise<number> {
  const name = `${synchronous}-${appends.atOnce}`;
  const trace = join(folder, `${name}.trace`);
  const under = ["strace", "-f", "-y", "-e", "trace=fsync,fdatasync", "-o", trace];
  const child = new Child<StoreOperations>({ program: PROGRAM, under });
  await child.ask("open", { path: join(folder, `${name}.db`), synchronous });
  await child.ask("submitMany", appends);
  await child.stop();
  const calls = readFileSync(trace, "utf8").split("\n");
  const syncs = calls.filter((line) => line.includes(`${name}.db-wal>`) && / = 0$/.test(line)).length;
  console.log(
    `synchronous = ${synchronous}, ${appends.count} ${appends.atOnce ? "at once" : "in a row"}: ${syncs} syncs`,
  );
  return syncs;
}

function findObstacle(): string | undefined {
  try {
    execFileSync("strace", ["-e", "trace=none", "true"], { stdio: "pipe" });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
