import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HoldpointProcess, holdpoint, holdpointIn, temporaryFolder } from "./holdpoint-process.ts";

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
  const process = new HoldpointProcess([...args, "--port", "0", "--data", "."], { cwd: folder.path });
  started.push(process);
  return process;
}

describe("holdpoint serve", () => {
  test("says when it is ready, answers health checks, and drains on SIGTERM", async () => {
    const server = start("serve");
    const url = await server.url();
    expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
    expect(await (await fetch(`${url}/readyz`)).json()).toEqual({ status: "ready" });
    expect(statSync(join(folder.path, "server.json")).mode & 0o777).toBe(0o600);
    const { code, stdout } = await server.stop();
    expect([code, stdout.split("\n").length]).toEqual([0, 2]);
    expect(existsSync(join(folder.path, "server.json"))).toBe(false);
  });

  test("makes a token of 256 bits that only its owner can read, keeps it, and asks everybody for it", async () => {
    const url = await start("serve").url();
    const file = join(folder.path, "token");
    const token = readFileSync(file, "utf8").trim();
    expect([token.length, statSync(file).mode & 0o777]).toEqual([44, 0o600]);
    const ask = (authorization?: string) =>
      fetch(`${url}/api/agents`, authorization === undefined ? {} : { headers: { authorization } });
    expect((await ask()).status).toBe(401);
    expect((await ask(`Bearer ${token}`)).status).toBe(200);
    expect((await fetch(`${url}/nothing`)).status).toBe(401);
    expect((await fetch(`${url}/nothing`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(404);
    await started[0]?.stop();
    await start("serve").url();
    expect(readFileSync(file, "utf8").trim()).toBe(token);
  });

  test("takes the owner's token from the environment and writes none", async () => {
    const server = new HoldpointProcess(["serve", "--port", "0", "--data", "."], {
      cwd: folder.path,
      env: { HOLDPOINT_TOKEN: "from-outside" },
    });
    started.push(server);
    const url = await server.url();
    const headers = { authorization: "Bearer from-outside" };
    expect((await fetch(`${url}/api/agents`, { headers })).status).toBe(200);
    expect(existsSync(join(folder.path, "token"))).toBe(false);
  });

  test("ends streams when it drains", async () => {
    const server = start("serve");
    const url = await server.url();
    const token = readFileSync(join(folder.path, "token"), "utf8").trim();
    const stream = await fetch(`${url}/api/requests:watch`, { headers: { authorization: `Bearer ${token}` } });
    const text = stream.text();
    const { code } = await server.stop();
    expect([code, await text]).toEqual([0, expect.stringContaining("event: snapshot")]);
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

  test("does not listen where tokens would travel in the clear", async () => {
    const { code, stderr } = await holdpointIn({ cwd: folder.path }, "serve", "--host", "0.0.0.0", "--port", "0");
    expect([code, stderr]).toEqual([2, expect.stringContaining("trusted_proxy: true")]);
    writeFileSync(join(folder.path, "holdpoint.yaml"), `${MINIMAL}server: { trusted_proxy: true }\n`);
    writeFileSync(join(folder.path, "s.yaml"), "scenarios: []\n");
    await start("serve", "--host", "0.0.0.0").url();
  });

  test.each([
    ["an impossible port", ["serve", "--port", "99999"], 2, "0 to 65535"],
    ["an unknown flag", ["serve", "--prot", "1"], 2, "--port"],
    ["an unknown command", ["sevre"], 2, "serve"],
    ["a config that is not there", ["serve", "--config", "x.yaml"], 3, "x.yaml"],
  ])("refuses %s", async (_what, args, exit, hint) => {
    const { code, stderr } = await holdpointIn({ cwd: folder.path }, ...args);
    expect([code, stderr]).toEqual([exit, expect.stringContaining(hint)]);
  });

  test("refuses a config with a mistake, saying where", async () => {
    writeFileSync(
      join(folder.path, "holdpoint.yaml"),
      `${MINIMAL}tools:\n  t: { type: read_file, need_approval: true }\n`,
    );
    writeFileSync(join(folder.path, "s.yaml"), "scenarios: []\n");
    const { code, stderr } = await holdpointIn({ cwd: folder.path }, "serve", "--port", "0");
    expect([code, stderr]).toEqual([3, expect.stringMatching(/holdpoint\.yaml:4:\d+ {2}error/)]);
  });
});

const MINIMAL = "llms: { demo: { type: scripted, script: ./s.yaml } }\nagents: { a: { llm: demo, instruction: x } }\n";

describe("holdpoint audit", () => {
  test("verifies what a run has left, and finds what was changed behind its back", async () => {
    const here = { cwd: folder.path };
    const run = await holdpointIn(here, "run", "assistant", "Tidy up", "--json", "--data", "data");
    expect(run.code).toBe(10);
    for (const { id } of JSON.parse(run.stdout).requests) {
      expect((await holdpointIn(here, "deny", id, "--reason", "no", "--data", "data")).code).toBe(0);
    }

    const head = await holdpointIn(here, "audit", "head", "--data", "data");
    expect(head.code).toBe(0);
    const file = join(folder.path, "head.json");
    writeFileSync(file, head.stdout);
    const good = await holdpointIn(here, "audit", "verify", "--data", "data", "--head", file);
    expect([good.code, good.stdout]).toEqual([
      0,
      expect.stringMatching(/^✓ \d+ events of 1 tasks under \d+ seals: nothing was changed/),
    ]);

    const db = new DatabaseSync(join(folder.path, "data", "holdpoint.db"));
    db.exec("update events set body = replace(body, '\"denied\"', '\"approved\"') where body like '%request-decided%'");
    const edited = await holdpointIn(here, "audit", "verify", "--data", "data", "--json");
    expect([edited.code, JSON.parse(edited.stdout).ok]).toEqual([1, false]);

    db.exec("delete from seals where n = (select max(n) from seals)");
    db.close();
    const cut = await holdpointIn(here, "audit", "verify", "--data", "data", "--head", file);
    expect([cut.code, cut.stdout]).toEqual([1, expect.stringContaining("exported head")]);
  });

  test("neither fills nor reads the database of another program", async () => {
    const path = join(folder.path, "holdpoint.db");
    const db = new DatabaseSync(path);
    db.exec("create table recipes (name text)");
    db.close();
    for (const command of ["serve --port 0", "audit verify"]) {
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
