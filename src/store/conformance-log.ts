/** Conformance of a store: the log and its rows. */
import assert from "node:assert/strict";
import type { Command } from "../task/command.ts";
import {
  append,
  ask,
  choose,
  claim,
  commit,
  firstDigest,
  keyOf,
  logOf,
  owner,
  pause,
  prepare,
  reply,
  type StoreCase,
  stranger,
  submit,
} from "./conformance-story.ts";
import { messageKey } from "./store.ts";

export const logConformance: readonly StoreCase[] = [
  {
    name: "an unknown task has no events and the clock runs",
    async run(store) {
      const { events, head, nowMs } = await store.read(keyOf("nobody"));
      assert.deepEqual([events, head], [[], undefined]);
      assert.ok(nowMs > 0);
    },
  },
  {
    name: "what was appended is read back, in order, without gaps, from any version",
    async run(store) {
      const key = await pause(store, "t1");
      const events = await logOf(store, key);
      assert.deepEqual(
        events.map(({ seq, type }) => [seq, type]),
        [
          [1, "task-submitted"],
          [2, "model-replied"],
          [3, "request-opened"],
        ],
      );
      const rest = await store.read(key, 2);
      assert.deepEqual(rest.events, events.slice(2));
      assert.equal((await store.read(key, 3)).head, undefined);
    },
  },
  {
    name: "how long many logs are is read at once, in the order asked",
    async run(store) {
      await pause(store, "t1");
      await commit(store, keyOf("t2"), submit("m2", "c"));
      assert.deepEqual(
        await store.readVersions([keyOf("t2"), keyOf("nobody"), keyOf("t1"), keyOf("t2")]),
        [1, 0, 3, 1],
      );
      assert.deepEqual(await store.readVersions([{ ...keyOf("t1"), tenant: "elsewhere" }]), [0]);
      assert.deepEqual(await store.readVersions([]), []);
    },
  },
  {
    name: "an append at a stale version is a conflict and changes nothing",
    async run(store) {
      const key = await pause(store, "t1");
      const [first, second] = [
        await prepare(store, key, choose("t1", "approve")),
        await prepare(store, key, choose("t1", "deny")),
      ];
      assert.equal(await append(store, key, first), "appended");
      assert.equal(await append(store, key, second), "conflict");
      assert.equal((await logOf(store, key)).length, 4);
      assert.equal(await store.readRequestRow(key, 1), "approved");
    },
  },
  {
    name: "the log's gate holds alone: a stale append whose rows close nothing is still a conflict",
    async run(store) {
      const key = await pause(store, "t1");
      const receive = (id: string): Command => ({
        type: "receive",
        message: { messageId: id, role: "user", parts: [] },
        principal: owner,
        choices: [],
      });
      const [first, second] = [await prepare(store, key, receive("m1")), await prepare(store, key, receive("m2"))];
      assert.equal(await append(store, key, first), "appended");
      assert.equal(await append(store, key, second), "conflict");
      assert.equal((await logOf(store, key)).length, 4);
    },
  },
  {
    name: "the row's gate holds alone: a closed request is not closed again, even at the right version",
    async run(store) {
      const key = await pause(store, "t1");
      await commit(store, key, choose("t1", "approve"));
      const stale = await prepare(store, key, { type: "cancel", principal: owner });
      const closed = [
        { n: 1, digest: firstDigest(await logOf(store, key)), outcome: "denied", deadline: "any" },
      ] as const;
      assert.equal(await append(store, key, { ...stale, rows: { ...stale.rows, closed } }), "conflict");
      assert.equal(await store.readRequestRow(key, 1), "approved");
      assert.equal((await logOf(store, key)).length, 4, "nothing of the append is left behind");
    },
  },
  {
    name: "the row's gate compares the digest",
    async run(store) {
      const key = await pause(store, "t1");
      const prepared = await prepare(store, key, choose("t1", "approve"));
      const closed = prepared.rows.closed.map((row) => ({ ...row, digest: `sha256:${"0".repeat(64)}` as const }));
      assert.equal(await append(store, key, { ...prepared, rows: { ...prepared.rows, closed } }), "conflict");
      assert.equal(await store.readRequestRow(key, 1), "open");
    },
  },
  {
    name: "the row's gate judges the deadline by the database's clock, both ways",
    async run(store) {
      const { nowMs } = await store.read(keyOf("x"));
      const late = await pause(store, "t1", nowMs + 1_000_000);
      const early = await prepare(store, late, choose("t1", "approve"));
      const passed = early.rows.closed.map((row) => ({ ...row, deadline: "passed" as const }));
      assert.equal(
        await append(store, late, { ...early, rows: { ...early.rows, closed: passed } }),
        "conflict",
        "not yet due",
      );

      const due = await pause(store, "t2", nowMs - 1);
      const tooLate = await prepare(store, due, { type: "expire" });
      const ahead = tooLate.rows.closed.map((row) => ({ ...row, deadline: "ahead" as const }));
      assert.equal(
        await append(store, due, { ...tooLate, rows: { ...tooLate.rows, closed: ahead } }),
        "conflict",
        "past its deadline",
      );
      assert.equal(await append(store, due, tooLate), "appended");
      assert.equal(await store.readRequestRow(due, 1), "expired");
    },
  },
  {
    name: "of many appends at once exactly one wins",
    async run(store) {
      const key = await pause(store, "t1");
      const rivals = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          prepare(store, key, choose("t1", i % 2 ? "approve" : "deny", { ...owner, name: `p${i}` })),
        ),
      );
      const results = await Promise.all(rivals.map((rival) => append(store, key, rival)));
      assert.equal(results.filter((result) => result === "appended").length, 1);
      assert.equal((await logOf(store, key)).length, 4);
    },
  },
  {
    name: "an effect is claimed once and ended once, under its token",
    async run(store) {
      const key = await pause(store, "t1");
      await commit(store, key, choose("t1", "approve"));
      const [first, second] = [await prepare(store, key, claim), await prepare(store, key, claim)];
      assert.equal(await append(store, key, first), "appended");
      const again = {
        ...second,
        expected: 5,
        entries: second.entries.map((entry) => ({ ...entry, event: { ...entry.event, seq: 6 } })),
      };
      assert.equal(await append(store, key, again), "conflict", "the effect's own row holds too");
      const finish = await prepare(store, key, {
        type: "finish",
        effectId: "call-1-1-1",
        token: "token-1",
        outcome: "done",
        result: "ok",
      });
      const foreign = finish.rows.effects.map((effect) => ({ ...effect, token: "another" }));
      assert.equal(await append(store, key, { ...finish, rows: { ...finish.rows, effects: foreign } }), "conflict");
      assert.equal(await append(store, key, finish), "appended");
    },
  },
  {
    name: "a message of a principal stands once in a tenant, over all tasks",
    async run(store) {
      await commit(store, keyOf("t1"), submit("same"));
      assert.equal(await store.findMessage("default", messageKey(owner, "same")), "t1");
      assert.equal(await append(store, keyOf("t2"), await prepare(store, keyOf("t2"), submit("same"))), "conflict");
      assert.equal((await logOf(store, keyOf("t2"))).length, 0);
      assert.equal((await store.listTasks({ tenant: "default" })).items.length, 1, "no row is left behind");
      await commit(store, keyOf("t1", "other"), submit("same", "context-1", stranger));
    },
  },
  {
    name: "tenants do not see each other, even with equal ids",
    async run(store) {
      await commit(store, keyOf("t1"), submit("a"), reply, ask());
      assert.deepEqual(await logOf(store, keyOf("t1", "other")), []);
      await commit(store, keyOf("t1", "other"), submit("b", "context-1", stranger));
      assert.equal((await logOf(store, keyOf("t1"))).length, 3);
      assert.equal((await store.listOpenRequests({ tenant: "other" })).items.length, 0);
      assert.equal((await store.listTasks({ tenant: "other" })).items.length, 1);
    },
  },
  {
    name: "a large result is kept beside the log and read back whole",
    async run(store) {
      const key = await pause(store, "t1");
      await commit(store, key, choose("t1", "approve"));
      await commit(store, key, claim);
      const result = "x".repeat(20_000);
      await commit(store, key, { type: "finish", effectId: "call-1-1-1", token: "token-1", outcome: "done", result });
      const last = (await logOf(store, key)).at(-1);
      assert.ok(last?.type === "effect-finished" && "blob" in last.result);
      assert.equal(await store.readBlob(key, last.result.blob), JSON.stringify(result));
      assert.equal(await store.readBlob(keyOf("t1", "other"), last.result.blob), undefined);
    },
  },
  {
    name: "an append beyond the end of the log is a conflict, and no seq is written twice",
    async run(store) {
      const key = await pause(store, "t1");
      const ahead = await prepare(store, key, { type: "cancel", principal: owner });
      const quiet = { ...ahead.rows, closed: [] };
      const shifted = ahead.entries.map((entry) => ({ ...entry, event: { ...entry.event, seq: entry.event.seq + 1 } }));
      const gap = { ...ahead, rows: quiet, entries: shifted, expected: 4 };
      assert.equal(await append(store, key, gap), "conflict", "a gap");
      const entries = ahead.entries.map((entry) => ({ ...entry, event: { ...entry.event, seq: 3 } }));
      assert.equal(await append(store, key, { ...ahead, rows: quiet, entries }), "conflict", "a seq that is taken");
      assert.deepEqual(
        (await logOf(store, key)).map(({ type }) => type),
        ["task-submitted", "model-replied", "request-opened"],
      );
    },
  },
  {
    name: "the clock does not go back behind what was committed",
    async run(store) {
      const key = keyOf("t1");
      const { nowMs } = await store.read(key);
      await commit(store, key, submit("a"));
      assert.ok((await store.read(key)).nowMs >= nowMs);
      assert.ok((await logOf(store, key)).every(({ at }) => at >= nowMs));
    },
  },
  {
    name: "answers a ping",
    run: (store) => store.ping(),
  },
];
