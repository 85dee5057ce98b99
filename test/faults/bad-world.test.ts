/** A database that is damaged, too new, in use, not ours to write, or tampered with: each is named, none is guessed at. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { startNode } from "../../src/runtime/node.ts";
import { Runtime } from "../../src/runtime/runtime.ts";
import { verifyAudit } from "../../src/store/seal.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import type { Seal } from "../../src/store/store.ts";
import type { Command } from "../../src/task/command.ts";
import { chainHash } from "../../src/task/digest.ts";
import { stateOf } from "../../src/task/task.ts";
import { Child } from "./line-protocol.ts";
import type { StoreOperations } from "./store-process.ts";
import { AGENT, createAgent, createPrincipal, TENANT } from "./story.ts";

const PROGRAM = fileURLToPath(new URL("./store-process.ts", import.meta.url));
const ME = createPrincipal("ana");
const agents = new Map([[AGENT, createAgent({ messageIds: [], turns: [] }, () => {})]]);

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-bad-"));
  path = join(folder, "test.db");
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("a damaged file", () => {
  const fault = {
    code: "store-corrupt",
    retry: false,
    message: expect.stringMatching(/test\.db: the file is damaged .* restore a backup or move it away/),
  };

  test("that is no database at all is not taken for an empty one", () => {
    writeFileSync(path, "This is a letter to my aunt.\n".repeat(1000));
    expect(() => openStore()).toThrow(expect.objectContaining(fault));
    expect(readFileSync(path, "utf8")).toContain("my aunt");
  });

  test("that was cut off in the middle is noticed, at the latest when the missing part is read", async () => {
    const { ids } = await fill();
    truncateSync(path, Math.floor(statSync(path).size / 8192) * 4096);
    await expect(readEverything(ids)).rejects.toMatchObject(fault);
  });

  test("of which any one page is overwritten is named as damaged, or it is not read, or the audit tells", async () => {
    const { ids } = await fill();
    const whole = readFileSync(path);
    const seen = { "store-corrupt": 0, "audit problem": 0, "not read": 0 };
    for (let at = 0; at < whole.length; at += 4096) {
      const damaged = Buffer.from(whole);
      damaged.fill(0xa5, at, at + 4096);
      path = join(mkdtempSync(join(folder, "page-")), "test.db");
      writeFileSync(path, damaged);
      const what = await readEverything(ids).then(
        ({ ok }) => (ok ? "not read" : "audit problem"),
        (error: unknown) => {
          expect(error, `page ${at / 4096 + 1}`).toMatchObject(fault);
          return "store-corrupt" as const;
        },
      );
      seen[what]++;
    }
    // What is not read are indexes that a log does not need.
    expect(seen["store-corrupt"]).toBeGreaterThan(seen["not read"]);
  });

  test("with one other letter in an event is read, and the audit tells", async () => {
    const { ids } = await fill();
    const text = readFileSync(path, "latin1");
    expect(text).toContain("mark of task 7");
    writeFileSync(path, text.replaceAll("mark of task 7", "Mark of task 7"), "latin1");
    const { problems } = await readEverything(ids);
    expect(problems).toEqual([expect.stringMatching(/event 1 was changed/)]);
  });
});

test("a database of a newer Holdpoint is refused, and not one byte of it is changed", async () => {
  await fill();
  change("update meta set value = '99' where key in ('schema', 'min_reader')");
  const before = hashOf(path);
  const fault = { code: "store-newer", message: expect.stringMatching(/schema 99.*Upgrade Holdpoint/) };
  expect(() => openStore()).toThrow(expect.objectContaining(fault));
  expect(() => openStore({ readOnly: true })).toThrow(expect.objectContaining(fault));
  expect(hashOf(path)).toBe(before);
});

describe("a database that another process is writing", () => {
  test("is refused with the number of that process, may be read, and is free as soon as it is killed", async () => {
    const child = new Child<StoreOperations>({ program: PROGRAM });
    const pid = await child.ask("open", { path });
    const id = await child.ask("submit", { messageId: "theirs" });
    expect(() => openStore()).toThrow(
      expect.objectContaining({ code: "store-locked", message: expect.stringContaining(`process ${pid})`) }),
    );
    const reader = openStore({ readOnly: true });
    expect((await reader.read({ tenant: TENANT, id })).events).toHaveLength(1);
    await reader.close();

    await child.kill();
    const store = openStore();
    expect((await store.read({ tenant: TENANT, id })).events).toHaveLength(1);
    await store.close();
  });

  test("goes to exactly one of several that start at the same moment", async () => {
    const children = Array.from({ length: 4 }, () => new Child<StoreOperations>({ program: PROGRAM }));
    for (let round = 1; round <= 60; round++) {
      const race = { path: join(folder, `race-${round}.db`) };
      const results = await Promise.allSettled(children.map((child) => child.ask("open", race)));
      const faults = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
      expect(faults, `round ${round}`).toHaveLength(3);
      for (const fault of faults) expect(fault).toMatchObject({ code: "store-locked" });
      await children[results.findIndex(({ status }) => status === "fulfilled")]?.ask("close");
    }
    await Promise.all(children.map((child) => child.kill()));
  });
});

test("a damaged lock file is named, and not taken for another process", () => {
  writeFileSync(`${path}.lock`, "This is a letter to my aunt.\n".repeat(1000));
  expect(() => openStore()).toThrow(
    expect.objectContaining({ code: "store-corrupt", message: expect.stringContaining("test.db.lock") }),
  );
});

test("only its owner can read the database and the files beside it", async () => {
  writeFileSync(path, "", { mode: 0o666 });
  chmodSync(path, 0o666);
  const store = openStore();
  await submit(store, "secret");
  for (const name of ["test.db", "test.db-wal", "test.db-shm", "test.db.lock"]) {
    expect([name, (statSync(join(folder, name)).mode & 0o777).toString(8)]).toEqual([name, "600"]);
  }
  await store.close();
});

// Root may write everywhere; then somebody else tries.
const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
const somebody = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
const whyNot = findObstacle();
if (whyNot) console.log(`skipped: nobody else can run this program here: ${whyNot}`);

describe.skipIf(whyNot)("a place where nothing may be written", () => {
  let child: Child<StoreOperations>;
  beforeEach(() => {
    child = new Child({ program: PROGRAM, options: { ...somebody, cwd: "/" } });
    if (isRoot) chownSync(folder, NOBODY, NOBODY);
  });
  afterEach(async () => {
    await child.kill();
    chmodSync(folder, 0o700);
  });
  const fault = { code: "store-read-only", message: expect.stringContaining("test.db") };

  test("is refused when the database is to be made there", async () => {
    chmodSync(folder, 0o500);
    await expect(child.ask("open", { path })).rejects.toMatchObject(fault);
  });

  test("is refused when the database is there", async () => {
    await child.ask("open", { path });
    await child.ask("close");
    rmSync(`${path}.lock`);
    chmodSync(folder, 0o500);
    await expect(child.ask("open", { path })).rejects.toMatchObject(fault);
  });

  test("is refused when only the file is not ours to write", async () => {
    await child.ask("open", { path });
    await child.ask("close");
    chmodSync(path, 0o400);
    if (isRoot) chownSync(path, 0, 0);
    await expect(child.ask("open", { path })).rejects.toMatchObject(fault);
  });

  test("is named when the folder is not there at all", async () => {
    const missing = join(folder, "nowhere", "test.db");
    await expect(child.ask("open", { path: missing })).rejects.toMatchObject({
      code: "store-unavailable",
      message: expect.stringContaining(missing),
    });
  });
});

describe("an event that this release does not know", () => {
  test.each([
    ["of a later type", "json_set(body, '$.type', 'task-teleported')", "task-teleported"],
    ["of a later version", "json_set(body, '$.v', 2)", "version 2"],
    ["that is not even JSON", "'{'", "event 1"],
  ])("%s: its task is left alone, and the others go on", async (_, body, text) => {
    const first = openStore();
    const strange = await submit(first, "strange");
    await first.close();
    change(`update events set body = ${body} where task = (select pk from tasks where id = '${strange}')`);

    const store = openStore();
    const failures: unknown[] = [];
    const waker = { pollMs: 10, onFailure: (_key: unknown, error: unknown) => failures.push(error) };
    const node = startNode({ store, clock: systemClock, ids: systemIds, agents, waker });
    const other = await submit(store, "ordinary");
    await vi.waitFor(async () => {
      const { task } = await node.runtime.load({ tenant: TENANT, id: other });
      expect(task && stateOf(task)).toBe("completed");
      expect(failures.length).toBeGreaterThan(0);
    }, 10_000);
    const unreadable = { code: "log-unreadable", message: expect.stringContaining(text) };
    expect(failures[0]).toMatchObject(unreadable);
    await expect(node.runtime.load({ tenant: TENANT, id: strange })).rejects.toMatchObject(unreadable);
    await expect(node.runtime.cancel({ tenant: TENANT, id: strange }, ME)).rejects.toMatchObject(unreadable);
    await node.stop();
    await store.close();
    expect(query(`select count(*) as n from events join tasks on tasks.pk = task where id = '${strange}'`)).toEqual([
      { n: 1 },
    ]);
  });
});

describe("tampering", () => {
  const A = "where task = (select pk from tasks order by id limit 1)";
  const TASK_A = "where id = (select min(id) from tasks)";

  test.each<[string, string[], RegExp]>([
    [
      "an event's text is edited",
      [`update events set body = replace(body, 'mark', 'fake') ${A} and seq = 1`],
      /event 1 was changed/,
    ],
    ["an event's time is edited", [`update events set at = at + 1 ${A} and seq = 2`], /event 2 was changed/],
    ["an event is deleted", [`delete from events ${A} and seq = 2`], /event 2 is missing/],
    [
      "two events are swapped",
      [
        `update events set seq = -2 ${A} and seq = 2`,
        `update events set seq = 2 ${A} and seq = 3`,
        `update events set seq = 3 ${A} and seq = -2`,
      ],
      /event 2 was changed, or does not follow/,
    ],
    ["a log is cut off at its end", [`delete from events ${A} and seq = 3`], /ends at event 2, but had 3/],
    [
      "a log is cut off at its end, and its row made to agree",
      [`delete from events ${A} and seq = 3`, `update tasks set version = 2 ${TASK_A}`],
      /seal 2: covered 60 events, 59 are there/,
    ],
    [
      "a task is deleted with all that belongs to it",
      [`delete from events ${A}`, `delete from tasks ${TASK_A}`],
      /seal 1: covered 30 events, 29 are there/,
    ],
    ["only the log of a task is deleted", [`delete from events ${A}`], /all 3 events are missing/],
    ["only the row of a task is deleted", [`delete from tasks ${TASK_A}`], /has events but no row/],
    [
      "an event is moved under another seal",
      ["update seals set last_event = last_event + 1 where n = 1"],
      /seal 1: covered 30 events, 31/,
    ],
    [
      "an event is taken out from under its seal",
      [`update events set pk = (select max(pk) + 1 from events) ${A} and seq = 3`],
      /seal 2: covered 60 events, 59/,
    ],
    ["the last seal is deleted", ["delete from seals where n = 2"], /names seal 2, which is missing/],
    ["the first seal is deleted", ["delete from seals where n = 1"], /seal 2: does not follow seal 0/],
    ["a seal's time is edited", ["update seals set at = at + 1 where n = 1"], /seal 1: an event under it was changed/],
  ])("is found when %s", async (_, statements, problem) => {
    const { head } = await fill();
    expect(await audit(head)).toMatchObject({ ok: true, problems: [] });
    for (const sql of statements) change(sql);
    expect((await audit()).problems).toEqual(expect.arrayContaining([expect.stringMatching(problem)]));
    expect((await audit(head)).ok).toBe(false);
  });

  test("is found against the exported head when the last seal is undone and all that it covers with it", async () => {
    const { head } = await fill();
    change("delete from seals where n = 2");
    change("delete from events where pk > (select last_event from seals)");
    change("update tasks set version = 1");
    expect((await audit()).ok).toBe(true);
    expect((await audit(head)).problems).toEqual([
      expect.stringMatching(/exported head \(seal 2\) is not in this chain/),
    ]);
  });

  test("is found against the exported head when a log is rewritten and everything is hashed and sealed anew", async () => {
    const { head } = await fill();
    change("delete from seals");
    change(`update events set body = replace(body, 'mark', 'fake') ${A}`);
    rehash();
    const store = openStore();
    while (await store.sealNext(1000));
    await store.close();
    expect((await audit()).ok).toBe(true);
    expect((await audit(head)).problems).toEqual([
      expect.stringMatching(/exported head \(seal 2\) is not in this chain/),
    ]);
  });
});

function findObstacle(): string | undefined {
  try {
    const look = `require("node:fs").accessSync(${JSON.stringify(PROGRAM)})`;
    execFileSync(process.execPath, ["-e", look], { ...somebody, cwd: "/", stdio: "pipe" });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function openStore(options: { readOnly?: boolean } = {}): SqliteStore {
  return SqliteStore.open({ path, clock: systemClock, ids: systemIds, ...options });
}

async function submit(store: SqliteStore, messageId: string, text = "go"): Promise<string> {
  const runtime = new Runtime({ store, clock: systemClock, ids: systemIds, agents });
  const message = { messageId, role: "user", parts: [{ text }] } as const;
  const result = await runtime.submit({ tenant: TENANT, agent: AGENT, principal: ME, message });
  if (!result.ok) throw new Error(result.refusal.code);
  return result.task.key.id;
}

/** Thirty tasks of three events each, under two seals: made once, and copied. */
async function fill(): Promise<{ ids: readonly string[]; head: Seal }> {
  filled ??= await makeFilled();
  writeFileSync(path, filled.bytes, { mode: 0o600 });
  return filled;
}

let filled: Awaited<ReturnType<typeof makeFilled>> | undefined;

async function makeFilled() {
  const store = openStore();
  const runtime = new Runtime({ store, clock: systemClock, ids: systemIds, agents });
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) ids.push(await submit(store, `message ${i}`, `mark of task ${i}`));
  await store.sealNext(1000);
  const rest: Command[] = [
    { type: "reply", turn: 1, text: "", calls: [] },
    { type: "complete", message: "done" },
  ];
  for (const id of ids) await runtime.execute({ tenant: TENANT, id }, rest);
  const head = await store.sealNext(1000);
  if (!head) throw new Error("nothing was sealed");
  await store.close();
  return { ids, head, bytes: readFileSync(path) };
}

async function readEverything(ids: readonly string[]) {
  const store = openStore();
  try {
    for (const id of ids) await store.read({ tenant: TENANT, id });
    for (const id of ids) await store.readRequestRow({ tenant: TENANT, id }, 1);
    await store.listTasks({ tenant: TENANT });
    return await verifyAudit(store);
  } finally {
    await store.close();
  }
}

async function audit(head?: Seal) {
  const store = openStore({ readOnly: true });
  try {
    return await verifyAudit(store, head);
  } finally {
    await store.close();
  }
}

/** As somebody does it who has the file and any tool for SQLite. */
function change(sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

function query(sql: string): Record<string, unknown>[] {
  const db = new DatabaseSync(path, { readOnly: true });
  const rows = db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }));
  db.close();
  return rows;
}

/** A careful forger: every hash fits again, and nothing is sealed. */
function rehash(): void {
  const db = new DatabaseSync(path);
  const put = db.prepare("update events set hash = ? where pk = ?");
  db.exec("update newest_seal set n = 0, last_event = 0");
  let previous = { task: "", hash: "" };
  const events = "select events.*, id from events join tasks on tasks.pk = task order by id, seq";
  for (const { pk, id, seq, at, body } of db.prepare(events).all()) {
    const before = previous.task === id ? previous.hash : "";
    const hash = chainHash(before, { tenant: TENANT, id: String(id) }, Number(seq), Number(at), String(body));
    put.run(Buffer.from(hash, "hex"), pk ?? null);
    previous = { task: String(id), hash };
  }
  db.close();
}

function hashOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}
