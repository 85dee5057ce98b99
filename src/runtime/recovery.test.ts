import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { commit, keyOf, reply, submit } from "../store/conformance-story.ts";
import { MemoryStore } from "../store/memory.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { replay } from "../task/log.ts";
import type { RequestRecord, Task } from "../task/task.ts";
import { createScriptedAgent } from "../testing/scripted-agent.ts";
import type { Recovery } from "./agent.ts";
import { findLoss } from "./recovery.ts";

function openStore(path: string): SqliteStore {
  return SqliteStore.open({ path, clock: systemClock, ids: systemIds });
}

test("SQLite knows what its last server was working on when it went", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "test.db");
  const before = openStore(path);
  await commit(before, keyOf("begun"), submit("a"), reply);
  await commit(before, keyOf("fresh"), submit("b"));
  await before.close();
  await systemClock.sleep(2);
  const after = openStore(path);
  await commit(after, keyOf("new"), submit("c"), reply);
  const leases = await after.claimDue(10, 60_000, []);
  expect(Object.fromEntries(leases.map(({ key, abandoned }) => [key.id, abandoned]))).toEqual({
    begun: true,
    fresh: false,
    new: false,
  });
  await after.close();
});

async function workingTask(): Promise<Task> {
  const store = new MemoryStore(systemClock);
  await commit(store, keyOf("t1"), submit("a"), reply);
  const task = replay(keyOf("t1"), (await store.read(keyOf("t1"))).events);
  if (!task) throw new Error("no task");
  return task;
}

const NOW = 1_000_000;
const open = { openedAtMs: 1, request: { id: "input-t1-1" } } as unknown as RequestRecord;
const decided = { ...open, decision: { atMs: NOW - 60_000 } } as unknown as RequestRecord;
const always: Recovery = { autoResume: true, resumeTimeoutMs: null };

test.each<[string, Partial<Task>, Recovery, boolean, string | undefined]>([
  ["was cut off, and is resumed", {}, always, true, undefined],
  ["was not cut off", {}, { autoResume: false, resumeTimeoutMs: null }, false, undefined],
  [
    "was cut off, and its agent does not resume",
    {},
    { autoResume: false, resumeTimeoutMs: null },
    true,
    "lost: the server stopped while this task was working, and it is not resumed (task.checkpoint)",
  ],
  ["had only been submitted", { version: 1 }, { autoResume: false, resumeTimeoutMs: null }, true, undefined],
  ["waits for a person", { requests: [open] }, { autoResume: false, resumeTimeoutMs: 1 }, true, undefined],
  ["was decided just then", { requests: [decided] }, { autoResume: false, resumeTimeoutMs: 1 }, true, undefined],
  ["was cut off just within the time", {}, { autoResume: true, resumeTimeoutMs: 60_000 }, true, undefined],
  [
    "was cut off too long ago",
    {},
    { autoResume: true, resumeTimeoutMs: 59_999 },
    true,
    "lost: the server stopped while this task was working, longer ago than 59.999 s (task.checkpoint.recovery.resume_timeout)",
  ],
])("a task that %s", async (_what, changes, recovery, abandoned, message) => {
  const task = { ...(await workingTask()), updatedAtMs: NOW - 60_000, ...changes };
  const agent = createScriptedAgent("assistant", [], [], { recovery });
  expect(findLoss(task, agent, { abandoned }, NOW)?.message).toBe(message);
});
