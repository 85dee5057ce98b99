/**
 * What every store must do, as cases that any test runner can call: `for (const { name, run } of storeConformance)`.
 * Each case opens its own empty store.
 */
import assert from "node:assert/strict";
import { isFault } from "../errors.ts";
import type { Command } from "../task/command.ts";
import type { TaskEvent, TaskKey } from "../task/event.ts";
import { advanceLog, replay } from "../task/log.ts";
import type { Principal, RequestDraft, RequestId } from "../task/request.ts";
import { type Rows, rowsOf } from "../task/rows.ts";
import type { Task } from "../task/task.ts";
import { verifyAudit } from "./seal.ts";
import { type AppendResult, type Entry, type Lease, messageKey, type Store, toEntries } from "./store.ts";

export interface StoreCase {
  readonly name: string;
  run(store: Store): Promise<void>;
}

const owner: Principal = { name: "owner", issuer: "test", tenant: "default", via: "api" };
const keyOf = (id: string, tenant = "default"): TaskKey => ({ tenant, id });
const facts = { identity: "test", schemaHash: "s", policyVersion: "p", plan: {} };

function submit(messageId: string, contextId = "context-1"): Command {
  const message = { messageId, role: "user", parts: [{ text: "Refund order 7" }] } as const;
  return { type: "submit", agent: "assistant", contextId, principal: owner, message };
}

const reply: Command = { type: "reply", turn: 1, text: "", calls: [{ tool: "refund", args: { order: 7 } }] };

function ask(expiresAtMs: number | null = null): Command {
  const draft: RequestDraft = {
    kind: "approval",
    callId: "call-1-1",
    tool: "refund",
    args: { order: 7 },
    facts,
    editable: true,
    title: "refund",
    prompt: "Refund?",
    risk: "low",
    expiresAtMs,
    onTimeout: "deny",
  };
  return { type: "open", drafts: [draft] };
}

function choose(taskId: string, choice: "approve" | "deny", principal = owner): Command {
  const requestId: RequestId = `input-${taskId}-1`;
  return { type: "choose", choice: { requestId, choice }, principal };
}

const claim: Command = { type: "claim", callId: "call-1-1", token: "token-1", gated: true, facts, mayRetry: false };

interface Prepared {
  readonly expected: number;
  readonly entries: readonly Entry[];
  readonly rows: Rows;
  readonly task: Task;
}

/** Reads and decides, but does not append: two of these from the same state are a race. */
async function prepare(store: Store, key: TaskKey, ...commands: Command[]): Promise<Prepared> {
  const { events, head, nowMs } = await store.read(key);
  const before = replay(key, events);
  const result = advanceLog(before, commands, { key, nowMs, epoch: store.epoch });
  assert.ok(result.ok, `refused: ${JSON.stringify(result)}`);
  assert.ok(result.task);
  return {
    expected: before?.version ?? 0,
    entries: toEntries(key, head, result.events),
    rows: rowsOf(result.task, result.events, result.blobs),
    task: result.task,
  };
}

function append(
  store: Store,
  key: TaskKey,
  { expected, entries, rows }: Prepared,
  fence?: number,
): Promise<AppendResult> {
  return store.append(key, expected, entries, rows, fence);
}

async function commit(store: Store, key: TaskKey, ...commands: Command[]): Promise<void> {
  assert.equal(await append(store, key, await prepare(store, key, ...commands)), "appended");
}

async function pause(
  store: Store,
  id: string,
  expiresAtMs: number | null = null,
  contextId?: string,
): Promise<TaskKey> {
  const key = keyOf(id);
  await commit(store, key, submit(`message-${id}`, contextId), reply, ask(expiresAtMs));
  return key;
}

async function take(store: Store, leaseMs = 60_000): Promise<Lease> {
  const [lease] = await store.claimDue(1, leaseMs, []);
  assert.ok(lease, "nothing is due");
  return lease;
}

async function logOf(store: Store, key: TaskKey): Promise<readonly TaskEvent[]> {
  return (await store.read(key)).events;
}

export const storeConformance: readonly StoreCase[] = [
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
      await commit(store, keyOf("t1", "other"), submit("same"));
    },
  },
  {
    name: "tenants do not see each other, even with equal ids",
    async run(store) {
      await commit(store, keyOf("t1"), submit("a"), reply, ask());
      assert.deepEqual(await logOf(store, keyOf("t1", "other")), []);
      await commit(store, keyOf("t1", "other"), submit("b"));
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
      await store.release(first, 1_000_000);
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
      const prepared = await prepare(store, key, reply);
      assert.equal(await append(store, key, prepared, old.fence), "fenced");
      await store.release(old, 0);
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
  {
    name: "an append beyond the end of the log is a conflict, and no seq is written twice",
    async run(store) {
      const key = await pause(store, "t1");
      const ahead = await prepare(store, key, { type: "cancel", principal: owner });
      const quiet = { ...ahead.rows, closed: [] };
      assert.equal(await append(store, key, { ...ahead, rows: quiet, expected: 4 }), "conflict", "a gap");
      const entries = ahead.entries.map((entry) => ({ ...entry, event: { ...entry.event, seq: 3 } }));
      assert.equal(await append(store, key, { ...ahead, rows: quiet, entries }), "conflict", "a seq that is taken");
      assert.deepEqual(
        (await logOf(store, key)).map(({ type }) => type),
        ["task-submitted", "model-replied", "request-opened"],
      );
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

function firstDigest(events: readonly TaskEvent[]) {
  const opened = events.find((event) => event.type === "request-opened");
  assert.ok(opened?.type === "request-opened");
  return opened.request.digest;
}

function cursorOf({ nextCursor }: { nextCursor?: string }): { cursor?: string } {
  return nextCursor === undefined ? {} : { cursor: nextCursor };
}
