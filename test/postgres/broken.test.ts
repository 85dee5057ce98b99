import { expect, test } from "vitest";
import { isFault } from "../../src/errors.ts";
import type { AppendResult } from "../../src/store/store.ts";
import { runSql } from "./server.ts";
import { describePostgres } from "./suite.ts";
import { asRole, commit, nameOf, prepare, submit } from "./tasks.ts";

describePostgres("PostgreSQL store in a broken world", (suite) => {
  test.each([
    ["the password is wrong", (url: string) => url.replace(/:[^:@]*@/, ":wrong-secret@"), "login"],
    ["nothing listens there", (url: string) => url.replace(/:\d+\//, ":1/"), "127.0.0.1:1/"],
    ["the host is unknown", (url: string) => url.replace("127.0.0.1", "nowhere.invalid"), "nowhere.invalid"],
    ["the database is missing", (url: string) => url.replace(/\/[^/]*$/, "/missing"), "missing"],
  ])("says that %s, and never the password", async (_, breakUrl, hint) => {
    const url = breakUrl(suite.server.url);
    const fault = await suite.open(url).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(fault).toMatchObject({ code: "store-unavailable", retry: true, message: expect.stringContaining(hint) });
    expect(`${fault}`).not.toContain(new URL(url).password);
  });

  test.each(["postgres://me:secret@[nowhere", "mysql://me:secret@host/name", "me:secret@host/name"])(
    "says that a url is none, without repeating it (%#)",
    async (url) => {
      const fault = await suite.open(url).catch((error: unknown) => error);
      expect(fault).toMatchObject({ code: "usage-invalid" });
      expect(JSON.stringify(fault) + String(fault)).not.toContain("secret");
    },
  );

  test("a crash of the server loses nothing that was acknowledged, and what is not known is a fault", async () => {
    const store = await suite.open();
    const keys = Array.from({ length: 400 }, (_, i) => ({ tenant: "default", id: `t${i}` }));
    const appends = await Promise.all(keys.map((key) => prepare(store, key, submit(key.id))));
    const outcomes: Promise<AppendResult | "fault">[] = [];
    for (const append of appends) {
      outcomes.push(
        append().catch((error: unknown) => {
          expect(isFault(error, "store-unavailable"), String(error)).toBe(true);
          return "fault" as const;
        }),
      );
    }
    await Promise.race([...outcomes.slice(40)]);
    await suite.server.stop("immediate");
    const results = await Promise.all(outcomes);
    await suite.server.start();
    await expect.poll(() => store.ping().then(() => "works", String)).toBe("works");

    expect(results).toContain("appended");
    expect(results).toContain("fault");
    for (const [i, key] of keys.entries()) {
      if (results[i] === "appended") expect((await store.read(key)).events).toHaveLength(1);
    }
  });

  test("a connection that is ended while idle ends no process, and the next call has a new one", async () => {
    const url = await suite.server.createDatabase();
    const store = await suite.open(url);
    await Promise.all([store.ping(), store.ping(), store.ping()]);
    await runSql(
      suite.server.url,
      `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = '${nameOf(url)}' and application_name = 'holdpoint'`,
    );
    await expect.poll(() => store.ping().then(() => "works", String)).toBe("works");
  });

  test("a schema that was dropped is damage, not a new database", async () => {
    const url = await suite.server.createDatabase();
    const store = await suite.open(url);
    await runSql(url, "drop schema holdpoint cascade");
    await expect(store.ping()).rejects.toMatchObject({ code: "store-corrupt" });
  });

  test("a role without rights is told so, and one with rights to the data works without owning it", async () => {
    const url = await suite.server.createDatabase();
    await runSql(url, "create role plain login password 'plain'");
    const asPlain = asRole(url, "plain");
    await expect(suite.open(asPlain)).rejects.toMatchObject({ code: "store-read-only" });
    await (await suite.open(url)).close();
    await runSql(
      url,
      `grant usage on schema holdpoint to plain;
         grant select, insert, update, delete on all tables in schema holdpoint to plain`,
    );
    const store = await suite.open(asPlain);
    await commit(store, { tenant: "default", id: "t1" }, submit("m1"));
  });

  test("refuses a replica", async () => {
    const url = await suite.server.createDatabase();
    await (await suite.open(url)).ping();
    const replica = await suite.server.startReplica();
    try {
      const path = new URL(url).pathname;
      await expect(suite.open(replica.url.replace(/\/postgres$/, path))).rejects.toMatchObject({
        code: "store-read-only",
        message: expect.stringContaining("is a replica; authority reads and writes go to the primary"),
      });
    } finally {
      await replica.remove();
    }
  });
});
