import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import { holdpoint, temporaryFolder } from "../scenarios/holdpoint-process.ts";

const folder = temporaryFolder();
afterEach(() => folder.remove());

// POSIX drops all locks of a process on a file when it closes any descriptor of that file.
test("the lock of a writer survives a second attempt in its own process", async () => {
  const options = { path: join(folder.path, "holdpoint.db"), clock: systemClock, ids: systemIds };
  const store = SqliteStore.open(options);
  expect(() => SqliteStore.open(options)).toThrow(`in use by another Holdpoint (process ${process.pid})`);
  const other = await holdpoint("serve", "--port", "0", "--data", folder.path);
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining("in use by another Holdpoint")]);
  await store.close();
});
