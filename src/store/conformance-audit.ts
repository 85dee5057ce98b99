/** Conformance of a store: seals and forgetting. */
import assert from "node:assert/strict";
import { isFault } from "../errors.ts";
import { choose, commit, keyOf, logOf, owner, pause, type StoreCase } from "./conformance-story.ts";
import { verifyAudit } from "./seal.ts";

export const auditConformance: readonly StoreCase[] = [
  {
    name: "seals cover every event once and verify",
    async run(store) {
      const key = await pause(store, "t1");
      const seal = await store.sealNext(2);
      assert.deepEqual([seal?.n, seal?.count, seal?.previous], [1, 2, ""]);
      await commit(store, key, choose("t1", "approve"));
      const next = await store.sealNext(100);
      assert.deepEqual([next?.n, next?.count, next?.previous], [2, 2, seal?.hash]);
      assert.equal(await store.sealNext(100), undefined);
      assert.deepEqual(await store.lastSeal(), next);
      const report = await verifyAudit(store, next);
      assert.deepEqual([report.ok, report.events, report.tasks, report.seals, report.unsealed], [true, 4, 1, 2, 0]);
      assert.equal((await verifyAudit(store, { n: 2, hash: "other" })).ok, false);
    },
  },
  {
    name: "purging forgets ended tasks, keeps hashes, and the audit still verifies",
    async run(store) {
      const key = await pause(store, "t1");
      await pause(store, "t2");
      await commit(store, key, { type: "cancel", principal: owner });
      await store.sealNext(100);
      const { nowMs } = await store.read(keyOf("t2"));
      assert.equal(await store.purge(nowMs + 1, 100), 1);
      assert.equal(await store.purge(nowMs + 1, 100), 0);
      await assert.rejects(store.read(key), (error) => isFault(error, "log-purged"));
      assert.equal((await logOf(store, keyOf("t2"))).length, 3);
      const report = await verifyAudit(store);
      assert.deepEqual([report.ok, report.purged > 0], [true, true]);
    },
  },
];
