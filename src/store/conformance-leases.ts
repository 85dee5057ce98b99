/** Conformance of a store: leases and being due. */
import assert from "node:assert/strict";
import { append, commit, keyOf, pause, prepare, reply, type StoreCase, submit, take } from "./conformance-story.ts";

export const leasesConformance: readonly StoreCase[] = [
  {
    name: "a due task is leased to one owner, and again after it was given back",
    async run(store) {
      const key = keyOf("t1");
      await commit(store, key, submit("a"));
      const lease = await take(store);
      assert.deepEqual(lease.key, key);
      assert.deepEqual(await store.claimDue(10, 60_000, []), []);
      await store.release(lease);
      assert.deepEqual((await take(store)).key, key);
    },
  },
  {
    name: "the longest due come first, and no more than asked for",
    async run(store) {
      for (const id of ["t1", "t2", "t3"]) await commit(store, keyOf(id), submit(id));
      const leases = await store.claimDue(2, 60_000, []);
      assert.equal(leases.length, 2);
      const rest = await store.claimDue(10, 60_000, []);
      assert.deepEqual([...leases, ...rest].map(({ key }) => key.id).sort(), ["t1", "t2", "t3"]);
    },
  },
  {
    name: "a paused task is not due before its deadline, an ended one never",
    async run(store) {
      const { nowMs } = await store.read(keyOf("x"));
      await pause(store, "waits");
      await pause(store, "later", nowMs + 1_000_000);
      const due = await pause(store, "due", nowMs - 5);
      const lease = await take(store);
      assert.deepEqual(lease.key, due);
      await commit(store, due, { type: "expire" }, { type: "fail", message: "no", code: "test" });
      await store.release(lease);
      assert.deepEqual(await store.claimDue(10, 60_000, []), []);
    },
  },
  {
    name: "a failed attempt is counted and waits, a good one resets the count",
    async run(store) {
      const key = keyOf("t1");
      await commit(store, key, submit("a"));
      const first = await take(store);
      assert.equal(first.attempts, 0);
      await store.release(first, { afterMs: 1_000_000, attempts: 1 });
      assert.deepEqual(await store.claimDue(10, 60_000, []), [], "not due before its retry");
      await commit(store, key, reply);
      const second = await take(store);
      assert.equal(second.attempts, 1);
      await store.release(second);
      assert.equal((await take(store)).attempts, 0);
    },
  },
  {
    name: "an expired lease is taken over and its holder is fenced off",
    async run(store) {
      const key = keyOf("t1");
      await commit(store, key, submit("a"));
      const old = await take(store, 0);
      const taken = await take(store);
      assert.ok(taken.fence > old.fence);
      assert.deepEqual([old.abandoned, taken.abandoned], [false, true]);
      const prepared = await prepare(store, key, reply);
      assert.equal(await append(store, key, prepared, old.fence), "fenced");
      await store.release(old, { afterMs: 0, attempts: 1 });
      assert.deepEqual(await store.claimDue(10, 60_000, []), [], "a lost lease gives nothing back");
      assert.equal(await append(store, key, prepared, taken.fence), "appended");
    },
  },
  {
    name: "a renewed lease is kept, even if it had run out, and nobody takes over from himself",
    async run(store) {
      await commit(store, keyOf("t1"), submit("a"));
      const lease = await take(store, 0);
      assert.deepEqual(await store.claimDue(10, 60_000, [lease]), [], "still working on it");
      await store.renew([lease], 120_000);
      assert.deepEqual(await store.claimDue(10, 60_000, []), []);
      assert.equal(await append(store, keyOf("t1"), await prepare(store, keyOf("t1"), reply), lease.fence), "appended");
    },
  },
  {
    name: "a lease that another has taken over is not renewed",
    async run(store) {
      await commit(store, keyOf("t1"), submit("a"));
      const lost = await take(store, 0);
      await take(store, 0);
      await store.renew([lost], 60_000);
      assert.equal((await take(store)).key.id, "t1");
    },
  },
];
