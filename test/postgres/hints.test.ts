import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { PostgresHints } from "../../src/store/postgres-hints.ts";
import { runSql } from "./server.ts";
import { describePostgres } from "./suite.ts";

describePostgres("PostgreSQL hints", (suite) => {
  let started: PostgresHints[] = [];
  afterEach(async () => {
    await Promise.all(started.map((hints) => hints.stop()));
    started = [];
  });

  async function start(url = suite.server.url): Promise<{ hints: PostgresHints; heard: string[] }> {
    const hints = new PostgresHints({ url, clock: systemClock });
    started.push(hints);
    const heard: string[] = [];
    await hints.listen(({ tenant, id }, isDue) => heard.push(`${tenant}/${id}${isDue ? "" : " (not due)"}`));
    return { hints, heard };
  }

  test("go to the other servers, each task once, and not back to who gave them", async () => {
    const [a, b] = [await start(), await start()];
    for (let i = 0; i < 20; i++) a.hints.hint({ tenant: "default", id: `t${i % 2}` }, true);
    await expect.poll(() => b.heard).toEqual(["default/t0", "default/t1"]);
    b.hints.hint({ tenant: "other", id: "äöü 😀" }, false);
    await expect.poll(() => a.heard).toEqual(["other/äöü 😀 (not due)"]);
  });

  test("are heard again after the server was away", async () => {
    const [a, b] = [await start(), await start()];
    await suite.server.stop("immediate");
    a.hints.hint({ tenant: "default", id: "lost" }, true);
    await suite.server.start();
    await expect
      .poll(
        () => {
          a.hints.hint({ tenant: "default", id: "t1" }, true);
          return b.heard;
        },
        { timeout: 10_000 },
      )
      .toContain("default/t1");
  });

  test("begin without a server, which comes later", async () => {
    await suite.server.stop("fast");
    const [a, b] = [await start(), await start()];
    await suite.server.start();
    await expect
      .poll(
        () => {
          a.hints.hint({ tenant: "default", id: "t1" }, true);
          return b.heard;
        },
        { timeout: 10_000 },
      )
      .toContain("default/t1");
  });

  test("ignore what is not a hint", async () => {
    const { hints, heard } = await start();
    await runSql(
      suite.server.url,
      `notify holdpoint, 'no json'; notify holdpoint, '[1,2]'; notify holdpoint; notify holdpoint, '["a","b"]'`,
    );
    await expect.poll(() => heard).toEqual(["a/b (not due)"]);
    hints.hint({ tenant: "default", id: "x".repeat(9000) }, true);
    hints.hint({ tenant: "default", id: "t1" }, true);
  });

  test("stop at once, also while they cannot connect, and leave no connection", async () => {
    const { hints } = await start(suite.server.url.replace(/:\d+\//, ":1/"));
    await hints.stop();
    hints.hint({ tenant: "default", id: "t1" }, true);
  });
});
