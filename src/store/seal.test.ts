/** Somebody who can write to the database changes one thing: does `verifyAudit` find it? */
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import type { Command } from "../task/command.ts";
import { chainHash } from "../task/digest.ts";
import type { TaskKey } from "../task/event.ts";
import { advanceLog, replay } from "../task/log.ts";
import { rowsOf } from "../task/rows.ts";
import { MemoryStore } from "./memory.ts";
import { compareText, type Head, nextSeal, sealHash, verifyAudit, verifyTrail } from "./seal.ts";
import { type AuditEntry, type AuditTrail, type Seal, toEntries } from "./store.ts";

/** The tables of an audit, as rows that can be edited. */
interface Tables {
  readonly events: readonly AuditEntry[];
  readonly seals: readonly Seal[];
  readonly tasks: readonly { readonly key: TaskKey; readonly version: number; readonly ended: boolean }[];
}

const ana = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };
const TASKS: readonly TaskKey[] = [
  { tenant: "default", id: "T1" },
  { tenant: "default", id: "T2" },
  { tenant: "other", id: "T1" },
  { tenant: "other", id: "T3" },
];

/** Four tasks, sealed in several seals that cut through them. */
async function fill(): Promise<{ tables: Tables; store: MemoryStore }> {
  let nowMs = 1_000;
  const store = new MemoryStore({ nowMs: () => nowMs++ }, "epoch");
  const commit = async (key: TaskKey, ...commands: Command[]) => {
    const { events, head } = await store.read(key);
    const result = advanceLog(replay(key, events), commands, { key, nowMs: nowMs++, epoch: store.epoch });
    if (!result.ok || !result.task) throw new Error(JSON.stringify(result));
    const rows = rowsOf(result.task, result.events);
    expect(await store.append(key, events.length, toEntries(key, head, result.events), rows)).toBe("appended");
  };
  for (const key of TASKS) {
    const message = { messageId: `${key.id}-1`, role: "user", parts: [{ text: "hello" }] } as const;
    const principal = { ...ana, tenant: key.tenant };
    await commit(key, { type: "submit", agent: "assistant", contextId: "c", principal, message });
  }
  await store.sealNext(3);
  for (let turn = 1; turn <= 3; turn++) {
    for (const key of TASKS) await commit(key, { type: "reply", turn, text: `turn ${turn}`, calls: [] });
    await store.sealNext(5);
  }
  for (const key of TASKS.slice(0, 2)) await commit(key, { type: "complete", message: "Done." });
  while (await store.sealNext(4)) {
    // until everything is sealed
  }
  return { store, tables: await dump(store) };
}

function dump(store: MemoryStore): Promise<Tables> {
  return store.readTrail(async (trail) => ({
    events: await collect(trail.scanEvents()),
    seals: await collect(trail.scanSeals()),
    tasks: await collect(trail.scanTasks()),
  }));
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Edited tables, each read in the order that the contract says, as a database would. */
function trailOf({ events, seals, tasks }: Tables): AuditTrail {
  const byKey = (a: { key: TaskKey }, b: { key: TaskKey }) =>
    compareText(a.key.tenant, b.key.tenant) || compareText(a.key.id, b.key.id);
  const inOrder = events.toSorted((a, b) => byKey(a, b) || a.seq - b.seq);
  return {
    async *scanEvents() {
      yield* inOrder;
    },
    async *scanSealed() {
      yield* inOrder.filter(({ seal }) => seal !== null).toSorted((a, b) => (a.seal ?? 0) - (b.seal ?? 0));
    },
    async *scanSeals() {
      yield* seals.toSorted((a, b) => a.n - b.n);
    },
    async *scanTasks() {
      yield* tasks.toSorted(byKey);
    },
  };
}

const verify = (tables: Tables, exported?: Head) => verifyTrail(trailOf(tables), exported);

let clean: Tables;
let head: Head;
beforeAll(async () => {
  const { tables, store } = await fill();
  const last = await store.lastSeal();
  if (!last) throw new Error("nothing was sealed");
  [clean, head] = [tables, last];
});

const sameTask = (a: TaskKey, b: TaskKey) => a.tenant === b.tenant && a.id === b.id;
const replaceAt = <T>(items: readonly T[], i: number, item: T) => items.map((old, at) => (at === i ? item : old));
const at = <T>(items: readonly T[], i: number): T => items[i % items.length] as T;

/** One act of tampering; `i` and `j` choose what it hits. Undefined when that would change nothing. */
type Tampering = (tables: Tables, i: number, j: number) => Tables | undefined;

function editEvent(edit: (event: AuditEntry, other: AuditEntry, j: number) => Partial<AuditEntry>): Tampering {
  return (tables, i, j) => {
    const event = at(tables.events, i);
    const changed = { ...event, ...edit(event, at(tables.events, j), j) };
    if (JSON.stringify(changed) === JSON.stringify(event)) return undefined;
    return { ...tables, events: replaceAt(tables.events, i % tables.events.length, changed) };
  };
}

function editSeal(edit: (seal: Seal, other: Seal, j: number) => Partial<Seal>): Tampering {
  return (tables, i, j) => {
    const seal = at(tables.seals, i);
    const changed = { ...seal, ...edit(seal, at(tables.seals, j), j) };
    if (JSON.stringify(changed) === JSON.stringify(seal)) return undefined;
    return { ...tables, seals: replaceAt(tables.seals, i % tables.seals.length, changed) };
  };
}

/** One character of a text becomes another. */
function flip(text: string, j: number): string {
  const i = j % text.length;
  return `${text.slice(0, i)}${text[i] === "0" ? "1" : "0"}${text.slice(i + 1)}`;
}

/** Writes the hashes of a task anew from its events, as its forger would. */
function rechain(events: readonly AuditEntry[], key: TaskKey): AuditEntry[] {
  let previous = "";
  return events.map((event) => {
    if (!sameTask(event.key, key)) return event;
    previous = event.body === null ? event.hash : chainHash(previous, key, event.seq, event.at, event.body);
    return { ...event, hash: previous };
  });
}

/** Writes seals anew under their numbers, each after the one before it in the list. */
function forgeSeals(events: readonly AuditEntry[], seals: readonly Seal[], first = ""): Seal[] {
  let previous = first;
  return seals.map((seal) => {
    const covered = events.filter((event) => event.seal === seal.n);
    const hash = sealHash(seal.n, previous, seal.atMs, covered);
    const forged = { ...seal, previous, hash };
    previous = hash;
    return forged;
  });
}

/** Writes all seals anew over what is there now: the same events under each, a chain without a flaw. */
function reseal({ events, seals, tasks }: Tables): Tables {
  const chain: Seal[] = [];
  for (const { n, atMs } of seals)
    chain.push(
      nextSeal(
        chain.at(-1),
        events.filter(({ seal }) => seal === n),
        atMs,
      ),
    );
  return { events, seals: chain, tasks };
}

const TAMPERINGS: Readonly<Record<string, Tampering>> = {
  "a changed body": editEvent(({ body }, _other, j) => ({ body: flip(body ?? "", j) })),
  "a changed time": editEvent(({ at: time }, _other, j) => ({ at: time + (j % 3) - 1 })),
  "a changed hash": editEvent(({ hash }, _other, j) => ({ hash: flip(hash, j) })),
  "a changed body with a hash that fits it": (tables, i, j) => {
    const event = at(tables.events, i);
    const body = flip(event.body ?? "", j);
    if (body === event.body) return undefined;
    const before = tables.events.find(({ key, seq }) => sameTask(key, event.key) && seq === event.seq - 1);
    const forged = { ...event, body, hash: chainHash(before?.hash ?? "", event.key, event.seq, event.at, body) };
    return { ...tables, events: replaceAt(tables.events, i % tables.events.length, forged) };
  },
  "a changed body with all later hashes written anew": (tables, i, j) => {
    const event = at(tables.events, i);
    const events = replaceAt(tables.events, i % tables.events.length, { ...event, body: flip(event.body ?? "", j) });
    const chained = rechain(events, event.key);
    return JSON.stringify(chained) === JSON.stringify(tables.events) ? undefined : { ...tables, events: chained };
  },
  "a body of another event": editEvent((_event, { body }) => ({ body })),
  "two events exchanged": (tables, i, j) => {
    const [a, b] = [at(tables.events, i), at(tables.events, j)];
    if (a === b) return undefined;
    const swap = (event: AuditEntry): AuditEntry => {
      if (event === a) return { ...b, key: a.key, seq: a.seq, seal: a.seal };
      return event === b ? { ...a, key: b.key, seq: b.seq, seal: b.seal } : event;
    };
    return { ...tables, events: tables.events.map(swap) };
  },
  "a deleted event": (tables, i) => ({ ...tables, events: tables.events.toSpliced(i % tables.events.length, 1) }),
  "a deleted event, with the later ones moved up and the row corrected": (tables, i) => {
    const gone = at(tables.events, i);
    const events = tables.events
      .filter((event) => event !== gone)
      .map((event) =>
        sameTask(event.key, gone.key) && event.seq > gone.seq ? { ...event, seq: event.seq - 1 } : event,
      );
    const tasks = tables.tasks.map((row) => (sameTask(row.key, gone.key) ? { ...row, version: row.version - 1 } : row));
    return { ...tables, events: rechain(events, gone.key), tasks };
  },
  "a cut log": (tables, i) => {
    const first = at(tables.events, i);
    return { ...tables, events: tables.events.filter(({ key, seq }) => !sameTask(key, first.key) || seq < first.seq) };
  },
  "a cut log with its row corrected": (tables, i) => {
    const first = at(tables.events, i);
    const events = tables.events.filter(({ key, seq }) => !sameTask(key, first.key) || seq < first.seq);
    const tasks = tables.tasks.map((row) => (sameTask(row.key, first.key) ? { ...row, version: first.seq - 1 } : row));
    return { ...tables, events, tasks };
  },
  "a log of which only the row is left": (tables, i) => {
    const { key } = at(tables.tasks, i);
    return { ...tables, events: tables.events.filter((event) => !sameTask(event.key, key)) };
  },
  "a deleted task": (tables, i) => {
    const { key } = at(tables.tasks, i);
    return {
      ...tables,
      events: tables.events.filter((event) => !sameTask(event.key, key)),
      tasks: tables.tasks.filter((row) => !sameTask(row.key, key)),
    };
  },
  "a deleted row": (tables, i) => ({ ...tables, tasks: tables.tasks.toSpliced(i % tables.tasks.length, 1) }),
  "a row with another version": (tables, i, j) => {
    const row = at(tables.tasks, i);
    const version = row.version + (j % 2 ? 1 : -1);
    return { ...tables, tasks: replaceAt(tables.tasks, i % tables.tasks.length, { ...row, version }) };
  },
  "an added row": (tables, i) => ({
    ...tables,
    tasks: [...tables.tasks, { key: { tenant: "default", id: `${i}` }, version: 1, ended: false }],
  }),
  "a task moved to another tenant": (tables, i) => {
    const { key } = at(tables.tasks, i);
    const moved = { ...key, tenant: "third" };
    const move = <T extends { key: TaskKey }>(item: T): T => (sameTask(item.key, key) ? { ...item, key: moved } : item);
    return { ...tables, events: rechain(tables.events.map(move), moved), tasks: tables.tasks.map(move) };
  },
  "an event taken out of its seal": editEvent(() => ({ seal: null })),
  "an event put under another seal": editEvent((_event, { seal }) => ({ seal })),
  "an event under a seal that is not there": editEvent((_event, _other, j) => ({ seal: 1_000 + j })),
  "an added event under an old seal": (tables, i, j) => {
    const { key, version } = at(tables.tasks, i);
    const last = tables.events.find((event) => sameTask(event.key, key) && event.seq === version);
    if (!last) return undefined;
    const body = '{"type":"task-completed","message":"forged","v":1,"path":["assistant"]}';
    const hash = chainHash(last.hash, key, version + 1, last.at, body);
    const forged = { key, seq: version + 1, at: last.at, body, hash, seal: at(tables.seals, j).n };
    const tasks = tables.tasks.map((row) => (sameTask(row.key, key) ? { ...row, version: version + 1 } : row));
    return { ...tables, events: [...tables.events, forged], tasks };
  },
  "a deleted seal": (tables, i) => ({ ...tables, seals: tables.seals.toSpliced(i % tables.seals.length, 1) }),
  "a deleted seal, with its events taken out and the later seals moved up": (tables, i) => {
    const n = (i % (tables.seals.length - 1)) + 1;
    const events = tables.events.map((event) => {
      const seal = event.seal === n ? null : event.seal !== null && event.seal > n ? event.seal - 1 : event.seal;
      return { ...event, seal };
    });
    const seals = tables.seals
      .filter((seal) => seal.n !== n)
      .map((seal) => (seal.n > n ? { ...seal, n: seal.n - 1 } : seal));
    return { ...tables, events, seals };
  },
  "a seal taken out of the chain, with the later ones written anew under their old numbers": (tables, i) => {
    const n = (i % (tables.seals.length - 1)) + 1;
    const events = tables.events.map((event) => (event.seal === n ? { ...event, seal: null } : event));
    return {
      ...tables,
      events,
      seals: forgeSeals(
        events,
        tables.seals.filter((seal) => seal.n !== n),
      ),
    };
  },
  "a chain written anew that does not begin where the old one did": (tables, i) => {
    const [before, after] = [
      tables.seals.slice(0, i % tables.seals.length),
      tables.seals.slice(i % tables.seals.length),
    ];
    return { ...tables, seals: [...before, ...forgeSeals(tables.events, after, "00")] };
  },
  "a seal with another number": editSeal((_seal, _other, j) => ({ n: 1_000 + j })),
  "a seal at another time": editSeal(({ atMs }, _other, j) => ({ atMs: atMs + (j % 3) - 1 })),
  "a seal that counts otherwise": editSeal(({ count }, _other, j) => ({ count: count + (j % 3) - 1 })),
  "a seal after another one": editSeal((_seal, { previous }) => ({ previous })),
  "a seal with another hash": editSeal(({ hash }, _other, j) => ({ hash: flip(hash, j) })),
  "two seals exchanged": (tables, i, j) => {
    const [a, b] = [at(tables.seals, i), at(tables.seals, j)];
    if (a === b) return undefined;
    return {
      ...tables,
      seals: tables.seals.map((seal) => (seal === a ? { ...b, n: a.n } : seal === b ? { ...a, n: b.n } : seal)),
    };
  },
};

test("what nobody touched verifies, with and without an exported head", async () => {
  expect(await verify(clean)).toEqual({
    ok: true,
    events: 18,
    tasks: 4,
    seals: head.n,
    purged: 0,
    unsealed: 0,
    problems: [],
  });
  expect(await verify(clean, head)).toMatchObject({ ok: true });
  expect(head.n).toBeGreaterThan(4);
});

describe("finds", () => {
  test.each(Object.entries(TAMPERINGS))("%s", async (_name, tamper) => {
    let tried = 0;
    for (let i = 0; i < clean.events.length; i++) {
      for (const j of [0, 1, 7, 40]) {
        const tampered = tamper(clean, i, j);
        if (!tampered) continue;
        tried++;
        const report = await verify(tampered);
        expect(report.ok, `at ${i}, ${j}`).toBe(false);
        expect(report.problems.length).toBeGreaterThan(0);
      }
    }
    expect(tried).toBeGreaterThan(3);
  });

  test("any tampering anywhere, and nothing where there was none", async () => {
    const names = fc.constantFrom(...Object.keys(TAMPERINGS));
    await fc.assert(
      fc.asyncProperty(names, fc.nat(10_000), fc.nat(10_000), async (name, i, j) => {
        const tampered = TAMPERINGS[name]?.(clean, i, j);
        expect((await verify(tampered ?? clean)).ok).toBe(tampered === undefined);
      }),
      { numRuns: 500 },
    );
  });

  test("names the task, the event or the seal", async () => {
    const edited = TAMPERINGS["a changed body"]?.(clean, 1, 5) ?? clean;
    expect((await verify(edited)).problems).toEqual([
      "task T1: event 2 was changed, or does not follow the one before it",
    ]);
    const cut = TAMPERINGS["a cut log"]?.(clean, 3, 0) ?? clean;
    expect((await verify(cut)).problems).toContainEqual("task T1: ends at event 3, but had 5");
    const gap = TAMPERINGS["a deleted event"]?.(clean, 2, 0) ?? clean;
    expect((await verify(gap)).problems).toContainEqual("task T1: event 3 is missing");
    const lost = TAMPERINGS["a log of which only the row is left"]?.(clean, 3, 0) ?? clean;
    expect((await verify(lost)).problems).toContainEqual("task T3: all 4 events are missing");
  });

  test("much at once without drowning its reader", async () => {
    const events = clean.events.map((event) => ({ ...event, at: event.at + 1 }));
    const seals = clean.seals.map((seal) => ({ ...seal, atMs: seal.atMs + 1 }));
    const report = await verify({ ...clean, events, seals });
    expect([report.ok, report.problems.length]).toEqual([false, 20]);
  });
});

describe("with the exported head it also finds", () => {
  const rewritten = (): Tables => {
    const event = at(clean.events, 1);
    const events = replaceAt(clean.events, 1, { ...event, body: flip(event.body ?? "", 3) });
    return reseal({ ...clean, events: rechain(events, event.key) });
  };
  const cut = (): Tables => ({
    ...clean,
    events: clean.events.map((event) => (event.seal === head.n ? { ...event, seal: null } : event)),
    seals: clean.seals.filter(({ n }) => n < head.n),
  });

  test.each([
    ["a chain that was written anew from end to end", rewritten],
    ["a chain that lost its newest seal", cut],
    ["a chain that is gone", (): Tables => ({ events: [], seals: [], tasks: [] })],
  ])("%s, which is without a flaw in itself", async (_name, forge) => {
    expect(await verify(forge())).toMatchObject({ ok: true });
    const report = await verify(forge(), head);
    expect(report.problems).toEqual([
      `the exported head (seal ${head.n}) is not in this chain: it was cut or written anew since then`,
    ]);
  });

  test("and an older head still verifies a chain that has grown", async () => {
    for (const { n, hash } of clean.seals) expect(await verify(clean, { n, hash })).toMatchObject({ ok: true });
  });
});

describe("an honest audit", () => {
  test("counts what no seal covers yet, and what was purged", async () => {
    const { store } = await fill();
    const key = { tenant: "default", id: "T9" };
    const message = { messageId: "m", role: "user", parts: [] } as const;
    const submit: Command = { type: "submit", agent: "assistant", contextId: "c", principal: ana, message };
    const result = advanceLog(undefined, [submit], { key, nowMs: 9_000, epoch: "epoch" });
    if (!result.ok || !result.task) throw new Error();
    await store.append(key, 0, toEntries(key, undefined, result.events), rowsOf(result.task, result.events));
    expect(await store.purge(8_000, 100)).toBe(2);
    expect(await verifyAudit(store)).toMatchObject({ ok: true, unsealed: 1, purged: 10 });
  });

  test("of a purged task still finds a changed hash, a deleted event and a changed number of them", async () => {
    const { store } = await fill();
    await store.purge(8_000, 100);
    const purged = await dump(store);
    expect(purged.events.slice(0, 5).map(({ body }) => body)).toEqual([null, null, null, null, null]);
    for (const name of ["a changed hash", "a deleted event", "a cut log with its row corrected", "a deleted task"]) {
      const tampered = TAMPERINGS[name]?.(purged, 2, 0) ?? purged;
      expect((await verify(tampered)).ok, name).toBe(false);
    }
  });
});

// An empty body counts as purged wherever it stands, and nothing but the body's own hash covers the time.
describe("does not find yet", () => {
  test("the erased body of one event in a task that nobody purged", async () => {
    const erased = replaceAt(clean.events, 1, { ...at(clean.events, 1), body: null });
    expect((await verify({ ...clean, events: erased })).ok).toBe(false);
  });

  test("a changed time in a purged task", async () => {
    const { store } = await fill();
    await store.purge(8_000, 100);
    const purged = await dump(store);
    const moved = replaceAt(purged.events, 1, { ...at(purged.events, 1), at: 1 });
    expect((await verify({ ...purged, events: moved })).ok).toBe(false);
  });
});

describe("text is compared as the databases compare it", () => {
  test("by the bytes of UTF-8, where an emoji comes after every other letter", () => {
    expect(compareText("😀", "\uff5e")).toBeGreaterThan(0);
    expect("😀" > "\uff5e").toBe(false);
    expect(
      [compareText("a", "a"), compareText("a", "b"), compareText("b", "a"), compareText("a", "ab")].map(Math.sign),
    ).toEqual([0, -1, 1, -1]);
  });

  test("and that is an order", () => {
    const text = fc.string({ unit: "grapheme-composite", maxLength: 4 });
    fc.assert(
      fc.property(text, text, text, (a, b, c) => {
        expect(Math.sign(compareText(a, b))).toBe(-Math.sign(compareText(b, a)) + 0);
        expect(compareText(a, b) === 0).toBe(a === b);
        if (compareText(a, b) <= 0 && compareText(b, c) <= 0) expect(compareText(a, c)).toBeLessThanOrEqual(0);
      }),
      { numRuns: 300 },
    );
  });
});
