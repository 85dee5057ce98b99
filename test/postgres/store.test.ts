import { describe, expect, test } from "vitest";
import { storeConformance } from "../../src/store/conformance.ts";
import { verifyAudit } from "../../src/store/seal.ts";
import { runSql } from "./server.ts";
import { describePostgres } from "./suite.ts";
import { asRole, choose, commit, connect, nameOf, pause, person, prepare, submit } from "./tasks.ts";

describePostgres("PostgreSQL store", (suite) => {
  describe("does what every store does", () => {
    for (const { name, run } of storeConformance) test(name, async () => run(await suite.open()));
  });

  describe("many servers on one database", () => {
    test("start at once on an empty database, and one of them migrates it", async () => {
      const url = await suite.server.createDatabase();
      const stores = await Promise.all(Array.from({ length: 4 }, () => suite.open(url)));
      expect(new Set(stores.map(({ epoch }) => epoch)).size).toBe(1);
      await Promise.all(stores.map((store) => store.ping()));
    });

    test("of 50 appends at one version exactly one wins, and only it is in the log", async () => {
      const url = await suite.server.createDatabase();
      const stores = await Promise.all([suite.open(url), suite.open(url)]);
      const key = await pause(stores[0], "t1");
      const rivals = await Promise.all(
        Array.from({ length: 50 }, async (_, i) => {
          const store = i % 2 ? stores[0] : stores[1];
          return prepare(store, key, choose(key, { ...person, name: `p${i}` }));
        }),
      );
      const results = await Promise.all(rivals.map((rival) => rival()));
      expect(results.filter((result) => result === "appended")).toHaveLength(1);
      expect(results.filter((result) => result === "conflict")).toHaveLength(49);
      const { events } = await stores[0].read(key);
      expect(events).toHaveLength(4);
      expect(events.at(-1)).toMatchObject({ principal: { name: `p${results.indexOf("appended")}` } });
    });

    test("a new task is made by one of them", async () => {
      const url = await suite.server.createDatabase();
      const stores = await Promise.all([suite.open(url), suite.open(url)]);
      const key = { tenant: "default", id: "t1" };
      const rivals = await Promise.all(
        Array.from({ length: 20 }, (_, i) => prepare(stores[i % 2] ?? stores[0], key, submit(`message-${i}`))),
      );
      const results = await Promise.all(rivals.map((rival) => rival()));
      expect(results.filter((result) => result === "appended")).toHaveLength(1);
    });

    test("no due task is leased twice", async () => {
      const url = await suite.server.createDatabase();
      const stores = await Promise.all([suite.open(url), suite.open(url)]);
      const ids = Array.from({ length: 60 }, (_, i) => `t${i}`);
      await Promise.all(ids.map((id) => commit(stores[0], { tenant: "default", id }, submit(id))));
      const batches = await Promise.all(
        Array.from({ length: 12 }, (_, i) => (stores[i % 2] ?? stores[0]).claimDue(7, 60_000, [])),
      );
      const leased = batches.flat().map(({ key }) => key.id);
      expect(new Set(leased).size).toBe(leased.length);
      expect(leased.length).toBe(60);
    });

    test("one seals at a time, and the chain holds", async () => {
      const url = await suite.server.createDatabase();
      const stores = await Promise.all([suite.open(url), suite.open(url)]);
      for (let i = 0; i < 10; i++) await pause(stores[0], `t${i}`);
      await Promise.all(Array.from({ length: 12 }, (_, i) => (stores[i % 2] ?? stores[0]).sealNext(7)));
      while (await stores[0].sealNext(7));
      expect(await verifyAudit(stores[1])).toMatchObject({ ok: true, events: 30, unsealed: 0, problems: [] });
    });

    test("a deadline that passes while the append waits for its turn has passed", async () => {
      const url = await suite.server.createDatabase();
      const store = await suite.open(url);
      const { nowMs } = await store.read({ tenant: "default", id: "x" });
      const key = await pause(store, "t1", nowMs + 600);
      const decide = await prepare(store, key, choose(key));
      const other = await connect(url);
      await other.query("begin; select 1 from holdpoint.tasks for update");
      const result = decide();
      await other.query("select pg_sleep(0.8)");
      await other.query("commit");
      await other.end();
      expect(await result).toBe("conflict");
      expect(await store.readRequestRow(key, 1)).toBe("open");
    });
  });

  describe("keeps what it was given", () => {
    test("without gaps: an append that would leave one is a conflict", async () => {
      const store = await suite.open();
      const key = await pause(store, "t1");
      const append = await prepare(store, key, choose(key));
      expect(await append(1)).toBe("conflict");
      expect(await append()).toBe("appended");
    });

    test("in byte order, whatever the database's collation", async () => {
      const store = await suite.open();
      const ids = ["a", "B", "b", "A", "ä", "z", "Z", "a-b", "ab", "a b", "😀", "￿"];
      for (const id of ids) await commit(store, { tenant: "default", id }, submit(id));
      const seen: string[] = [];
      await store.readTrail(async (trail) => {
        for await (const { key } of trail.scanTasks()) seen.push(key.id);
      });
      expect(seen).toEqual(ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
      while (await store.sealNext(5));
      expect(await verifyAudit(store)).toMatchObject({ ok: true, problems: [], tasks: ids.length });
    });

    test("a message id of any length", async () => {
      const store = await suite.open();
      const key = { tenant: "default", id: "t1" };
      await commit(store, key, submit("m".repeat(50_000)));
      const again = await prepare(store, { tenant: "default", id: "t2" }, submit("m".repeat(50_000)));
      expect(await again()).toBe("conflict");
    });

    test("but not a NUL character, and says so", async () => {
      const store = await suite.open();
      const append = await prepare(store, { tenant: "default", id: "t1" }, submit("m", "a\u0000b"));
      await expect(append()).rejects.toMatchObject({ code: "usage-invalid" });
    });
  });

  describe("refuses a database that cannot keep the promise", () => {
    test("one that takes no writes", async () => {
      const url = await suite.server.createDatabase();
      await runSql(url, `alter database ${nameOf(url)} set default_transaction_read_only = on`);
      await expect(suite.open(url)).rejects.toMatchObject({ code: "store-read-only" });
    });

    test("one that acknowledges before it is on disk, by database or by role", async () => {
      const url = await suite.server.createDatabase();
      await runSql(url, `alter database ${nameOf(url)} set synchronous_commit = off`);
      await expect(suite.open(url)).rejects.toMatchObject({
        code: "store-not-durable",
        message: expect.stringContaining("synchronous_commit is off"),
      });
      await runSql(url, `alter database ${nameOf(url)} set synchronous_commit = local`);
      await (await suite.open(url)).ping();
      await runSql(url, "create role hasty login superuser password 'hasty'");
      await runSql(url, "alter role hasty set synchronous_commit = off");
      await expect(suite.open(asRole(url, "hasty"))).rejects.toMatchObject({
        code: "store-not-durable",
      });
    });

    test.each(["fsync", "full_page_writes"])("one whose %s is off", async (setting) => {
      const url = await suite.server.createDatabase();
      try {
        await changeServer(`alter system set ${setting} = off`, setting, "off");
        await expect(suite.open(url)).rejects.toMatchObject({
          code: "store-not-durable",
          message: expect.stringContaining(`${setting} is off`),
        });
      } finally {
        await changeServer(`alter system reset ${setting}`, setting, "on");
      }
    });

    test("one whose encoding loses text", async () => {
      await runSql(suite.server.url, "create database latin encoding 'LATIN1' template template0 locale_provider libc");
      await expect(suite.open(suite.server.url.replace(/\/postgres$/, "/latin"))).rejects.toMatchObject({
        code: "store-not-durable",
        message: expect.stringContaining("LATIN1"),
      });
    });

    test("one that a newer Holdpoint has written, and leaves it as it is", async () => {
      const url = await suite.server.createDatabase();
      await (await suite.open(url)).close();
      await runSql(url, "update holdpoint.meta set value = '99' where key in ('schema', 'min_reader')");
      const before = await contentOf(url);
      await expect(suite.open(url)).rejects.toMatchObject({ code: "store-newer", retry: false });
      expect(await contentOf(url)).toEqual(before);
    });

    test("but works on a newer schema that still admits it", async () => {
      const url = await suite.server.createDatabase();
      await (await suite.open(url)).close();
      await runSql(url, "update holdpoint.meta set value = '99' where key = 'schema'");
      await (await suite.open(url)).ping();
    });

    async function changeServer(change: string, setting: string, value: string): Promise<void> {
      const client = await connect(suite.server.url);
      await client.query(change);
      await client.query("select pg_reload_conf()");
      for (;;) {
        const { rows } = await client.query(`select current_setting('${setting}') as value`);
        if (rows[0]?.value === value) break;
        await client.query("select pg_sleep(0.02)");
      }
      await client.end();
    }
  });
});

async function contentOf(url: string): Promise<unknown> {
  const client = await connect(url);
  const meta = await client.query("select * from holdpoint.meta order by key");
  const tables = await client.query(
    "select oid, relname, relfilenode from pg_class where relnamespace = 'holdpoint'::regnamespace order by oid",
  );
  await client.end();
  return [meta.rows, tables.rows];
}
