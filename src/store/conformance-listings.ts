/** Conformance of a store: listings. */
import assert from "node:assert/strict";
import {
  choose,
  commit,
  cursorOf,
  firstDigest,
  keyOf,
  logOf,
  pause,
  type StoreCase,
  submit,
} from "./conformance-story.ts";

export const listingsConformance: readonly StoreCase[] = [
  {
    name: "a cursor that the store has not given out is refused in words",
    async run(store) {
      for (const cursor of ["", "x", "[1]", "e30", '{"a":1}']) {
        const query = { tenant: "default", cursor };
        const refused = { code: "usage-invalid" };
        await assert.rejects(store.listOpenRequests(query), refused);
        await assert.rejects(store.listByDeadline(query), refused);
        await assert.rejects(store.listTasks(query), refused);
      }
    },
  },
  {
    name: "open requests are listed oldest first, by agent and kind, in stable pages",
    async run(store) {
      for (let i = 0; i < 5; i++) await pause(store, `t${i}`);
      const first = await store.listOpenRequests({ tenant: "default", limit: 2 });
      assert.deepEqual(
        first.items.map(({ taskId }) => taskId),
        ["t0", "t1"],
      );
      await commit(store, keyOf("t0"), choose("t0", "deny"));
      const second = await store.listOpenRequests({ tenant: "default", limit: 2, ...cursorOf(first) });
      assert.deepEqual(
        second.items.map(({ taskId }) => taskId),
        ["t2", "t3"],
        "a row that went does not shift the page",
      );
      const third = await store.listOpenRequests({ tenant: "default", limit: 2, ...cursorOf(second) });
      assert.deepEqual([third.items.map(({ taskId }) => taskId), third.nextCursor], [["t4"], undefined]);
      assert.equal((await store.listOpenRequests({ tenant: "default", agent: "nobody" })).items.length, 0);
      assert.equal((await store.listOpenRequests({ tenant: "default", agent: "assistant" })).items.length, 4);
      assert.equal((await store.listOpenRequests({ tenant: "default", kind: "input" })).items.length, 0);
      const [row] = (await store.listOpenRequests({ tenant: "default", kind: "approval", limit: 1 })).items;
      assert.deepEqual([row?.taskId, row?.n, row?.digest], ["t1", 1, firstDigest(await logOf(store, keyOf("t1")))]);
    },
  },
  {
    name: "requests with a deadline are listed nearest first",
    async run(store) {
      const { nowMs } = await store.read(keyOf("x"));
      await pause(store, "far", nowMs + 9_000_000);
      await pause(store, "never");
      await pause(store, "near", nowMs + 5_000_000);
      const listed = await store.listByDeadline({ tenant: "default", limit: 1 });
      assert.deepEqual(
        listed.items.map(({ taskId }) => taskId),
        ["near"],
      );
      const rest = await store.listByDeadline({ tenant: "default", ...cursorOf(listed) });
      assert.deepEqual(
        rest.items.map(({ taskId }) => taskId),
        ["far"],
      );
    },
  },
  {
    name: "tasks are listed newest change first, by context and state",
    async run(store) {
      await pause(store, "t1", null, "c1");
      await pause(store, "t2", null, "c2");
      await commit(store, keyOf("t3"), submit("m3", "c1"));
      const ids = async (query: object) =>
        (await store.listTasks({ tenant: "default", ...query })).items.map(({ taskId }) => taskId).sort();
      assert.deepEqual(await ids({}), ["t1", "t2", "t3"]);
      assert.deepEqual(await ids({ contextId: "c1" }), ["t1", "t3"]);
      assert.deepEqual(await ids({ state: "input-required" }), ["t1", "t2"]);
      assert.deepEqual(await ids({ contextId: "c1", state: "working" }), ["t3"]);
      assert.deepEqual(await ids({ agent: "assistant" }), ["t1", "t2", "t3"]);
      assert.deepEqual(await ids({ agent: "nobody" }), []);
      const [newest] = (await store.listTasks({ tenant: "default", limit: 1 })).items;
      assert.ok(newest);
      const from = newest.updatedAtMs;
      assert.ok((await ids({ changedFromMs: from })).includes(newest.taskId), "at that very time counts");
      assert.deepEqual(await ids({ changedFromMs: from + 1 }), []);
      assert.equal(await store.countTasks({ tenant: "default" }, 10), 3);
      assert.equal(await store.countTasks({ tenant: "default" }, 2), 2);
      assert.equal(await store.countTasks({ tenant: "default", contextId: "c1", agent: "assistant" }, 10), 2);
      assert.equal(await store.countTasks({ tenant: "elsewhere" }, 10), 0);
      const seen: string[] = [];
      for (let cursor: { cursor?: string } = {}; ; ) {
        const page = await store.listTasks({ tenant: "default", limit: 1, ...cursor });
        seen.push(...page.items.map(({ taskId }) => taskId));
        if (!page.nextCursor) break;
        cursor = cursorOf(page);
      }
      assert.deepEqual(seen.sort(), ["t1", "t2", "t3"]);
    },
  },
];
