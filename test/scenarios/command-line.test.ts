import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HoldpointProcess, holdpoint, temporaryFolder } from "./holdpoint-process.ts";

let folder: ReturnType<typeof temporaryFolder>;
let started: HoldpointProcess[] = [];

beforeEach(() => {
  folder = temporaryFolder();
});

afterEach(async () => {
  await Promise.all(started.map((process) => process.stop("SIGKILL")));
  started = [];
  folder.remove();
});

function start(...args: string[]): HoldpointProcess {
  const process = new HoldpointProcess(...args, "--port", "0", "--data", folder.path);
  started.push(process);
  return process;
}

describe("holdpoint serve", () => {
  test("says when it is ready, answers health checks, and drains on SIGTERM", async () => {
    const server = start("serve");
    const url = await server.url();
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: "ready" });
    expect((await fetch(`${url}/nothing`)).status).toBe(404);
    expect(statSync(join(folder.path, "server.json")).mode & 0o777).toBe(0o600);
    const { code, stdout } = await server.stop();
    expect([code, stdout.split("\n").length]).toEqual([0, 2]);
    expect(existsSync(join(folder.path, "server.json"))).toBe(false);
  });

  test("a second server on the same data is told who has it, and changes nothing", async () => {
    const first = start("serve");
    await first.url();
    const second = await start("serve").exited;
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`in use by another Holdpoint (process ${first.child.pid})`);
    expect(second.stderr).toContain("--data");
  });

  test("a killed server leaves no lock behind", async () => {
    const first = start("serve");
    await first.url();
    await first.stop("SIGKILL");
    await start("serve").url();
  });

  test("a taken port is named, with what to do", async () => {
    const url = new URL(await start("serve").url());
    const other = temporaryFolder();
    const { code, stderr } = await holdpoint("serve", "--port", url.port, "--data", other.path);
    other.remove();
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${url.port} is taken. Choose another with --port`)]);
  });

  test.each([
    ["an impossible port", ["serve", "--port", "99999"], "0 to 65535"],
    ["an unknown flag", ["serve", "--prot", "1"], "--port"],
    ["an unknown command", ["sevre"], "serve"],
    ["a config, which is not read yet", ["serve", "--config", "x.yaml"], "Leave out --config"],
  ])("refuses %s with exit code 2", async (_what, args, hint) => {
    const { code, stderr } = await holdpoint(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(hint)]);
  });
});

describe("holdpoint dev", () => {
  test("plays a task that is paused, killed, decided and finished, and stays up", async () => {
    const server = start("dev", "--no-open");
    const url = await server.url();
    await server.saw(/The server stays up/);
    expect(server.stdout).toMatch(/worker \d+ is killed \(SIGKILL\)/);
    expect(server.stdout).toMatch(/finds the request: Run delete_files/);
    expect(server.stdout).toMatch(/completed: .*files: report-2026\.csv\n/);
    expect(server.stdout).toContain("already approved by ana");
    expect(server.stdout).toMatch(/✓ audit: \d+ events/);
    expect(server.stderr).toBe("");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await server.stop()).code).toBe(0);
  });
});

describe("holdpoint audit", () => {
  test("verifies what a play has left, and finds what was changed behind its back", async () => {
    const server = start("dev", "--no-open");
    await server.saw(/The server stays up/);
    await server.stop();
    const play = join(folder.path, "play");
    const database = join(play, "holdpoint.db");

    const head = await holdpoint("audit", "head", "--data", play);
    expect(head.code).toBe(0);
    const file = join(folder.path, "head.json");
    writeFileSync(file, head.stdout);
    const good = await holdpoint("audit", "verify", "--data", play, "--head", file);
    expect([good.code, good.stdout]).toEqual([
      0,
      expect.stringMatching(/^✓ \d+ events of 1 tasks under \d+ seals: nothing was changed/),
    ]);

    const db = new DatabaseSync(database);
    db.exec("update events set body = replace(body, '\"approved\"', '\"denied\"') where body like '%request-decided%'");
    const edited = await holdpoint("audit", "verify", "--data", play, "--json");
    expect([edited.code, JSON.parse(edited.stdout).ok]).toEqual([1, false]);

    db.exec("delete from seals where n = (select max(n) from seals)");
    db.close();
    const cut = await holdpoint("audit", "verify", "--data", play, "--head", file);
    expect([cut.code, cut.stdout]).toEqual([1, expect.stringContaining("exported head")]);
  });

  test("neither fills nor reads the database of another program", async () => {
    const path = join(folder.path, "holdpoint.db");
    const db = new DatabaseSync(path);
    db.exec("create table recipes (name text)");
    db.close();
    for (const command of ["serve", "audit verify"]) {
      const { code, stderr } = await holdpoint(...command.split(" "), "--data", folder.path);
      expect([code, stderr]).toEqual([1, expect.stringContaining("is the database of another program")]);
    }
    const after = new DatabaseSync(path);
    expect(after.prepare("select name from sqlite_schema").all()).toEqual([{ name: "recipes" }]);
    after.close();
  });

  test("says what is wrong when there is no database or no head", async () => {
    const none = await holdpoint("audit", "verify", "--data", join(folder.path, "none"));
    expect([none.code, none.stderr]).toEqual([1, expect.stringContaining("there is no such database")]);
    writeFileSync(join(folder.path, "holdpoint.db"), "");
    const empty = await holdpoint("audit", "verify", "--data", folder.path);
    expect([empty.code, empty.stderr]).toEqual([1, expect.stringContaining("is empty")]);
    const bad = await holdpoint("audit", "verify", "--data", folder.path, "--head", "/dev/null");
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining("is not a head")]);
  });
});
