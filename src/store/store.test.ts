import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, test } from "vitest";
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { storeConformance } from "./conformance.ts";
import { MemoryStore } from "./memory.ts";
import { SqliteStore } from "./sqlite.ts";

describe("memory store", () => {
  for (const { name, run } of storeConformance) test(name, () => run(new MemoryStore(systemClock)));
});

describe("SQLite store", () => {
  let cleanUp = () => {};
  afterEach(() => cleanUp());

  for (const { name, run } of storeConformance) {
    test(name, async () => {
      const folder = mkdtempSync(join(tmpdir(), "holdpoint-"));
      const store = SqliteStore.open({ path: join(folder, "test.db"), clock: systemClock, ids: systemIds });
      cleanUp = () => {
        void store.close();
        rmSync(folder, { recursive: true });
      };
      await run(store);
    });
  }
});
