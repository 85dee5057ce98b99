/** What a program finds when it runs, and how it ends: alone, bounded, with everything that it started. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { sha256 } from "../../src/task/digest.ts";
import type { JsonObject } from "../../src/task/json.ts";
import { allow, call, openWorkshop, refusalOf, type Workshop } from "./workshop.ts";

let workshop: Workshop;
beforeAll(() => {
  workshop = openWorkshop();
});
afterAll(() => workshop.close());
afterEach(() => vi.unstubAllEnvs());

const MIB = 1024 * 1024;

/** Runs a line with the result as an object. */
async function run(command: string, rule: Parameters<Workshop["command"]>[0] = {}, signal?: AbortSignal) {
  const allowedCommands = allow(command.split(" ")[0] ?? "");
  const finished = await call(workshop.command({ allowedCommands, ...rule }), { command }, signal);
  if (finished.outcome === "unknown") throw new Error(finished.why);
  return { outcome: finished.outcome, result: finished.result as JsonObject };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie still answers; it does nothing any more.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

async function eventually(isSo: () => boolean): Promise<boolean> {
  for (let i = 0; i < 100; i++) {
    if (isSo()) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return isSo();
}

describe("the environment", () => {
  const POISON = {
    HOLDPOINT_TOKEN: "canary",
    HOLDPOINT_URL: "http://127.0.0.1:1",
    LD_PRELOAD_X: "canary",
    LD_LIBRARY_PATH: "/canary",
    LD_AUDIT: "/canary.so",
    GIT_DIR: "/canary",
    GIT_SSH_COMMAND: "canary",
    GIT_CONFIG_COUNT: "1",
    GIT_EXTERNAL_DIFF: "canary",
    NODE_OPTIONS: "--no-warnings",
    NODE_V8_COVERAGE: "/tmp/holdpoint-canary-coverage",
    NODE_EXTRA_CA_CERTS: "/canary",
    BASH_ENV: "/canary",
    ENV: "/canary",
    PAGER: "canary",
    EDITOR: "canary",
    PYTHONPATH: "/canary",
    PERL5OPT: "-Mcanary",
    RUBYOPT: "-rcanary",
    IFS: "x",
    SHELL: "/canary",
    OPENAI_API_KEY: "sk-canary",
    http_proxy: "http://canary",
    SSH_AUTH_SOCK: "/canary",
  };

  test("is made from nothing: four names, whatever ours holds", async () => {
    for (const [name, value] of Object.entries(POISON)) vi.stubEnv(name, value);
    const { result } = await run("printenv -0");
    // NUL between the variables is no text, and is shown as such.
    const variables = String(result.stdout).split("\ufffd").slice(0, -1).sort();
    expect(variables.map((each) => each.split("=")[0])).toEqual(["HOME", "LANG", "PATH", "TMPDIR"]);
    expect(variables.join("\n")).not.toMatch(/canary/);
    const { plan } = await workshop.command().prepare({ command: "ls" });
    expect(plan).toMatchObject({ env: ["HOME", "LANG", "PATH", "TMPDIR"] });
    expect(plan.searchPath).toBe(`/usr/local/bin:/usr/bin:/bin:${dirname(process.execPath)}`);
    expect(variables).toContain(`PATH=${plan.searchPath}`);
  });

  test("a program of the same name on our PATH, or in the folder, is not taken", async () => {
    for (const folder of [workshop.root, workshop.outside]) {
      writeFileSync(join(folder, "ls"), "#!/bin/sh\necho shim\n");
      chmodSync(join(folder, "ls"), 0o755);
    }
    vi.stubEnv("PATH", `${workshop.outside}:.:${workshop.root}`);
    const { plan } = await workshop.command().prepare({ command: "ls" });
    expect(plan.executable).toMatch(/^\/(usr\/)?bin\//);
    expect((await run("ls -d .")).result.stdout).toBe(".\n");
  });

  test("home and temporary folder are private, empty, and gone afterwards", async () => {
    vi.stubEnv("HOME", workshop.outside);
    const script = join(workshop.outside, "homes");
    writeFileSync(
      script,
      '#!/bin/sh\nls -A "$HOME" "$TMPDIR"; echo x > "$HOME/x"; echo "$HOME"; stat -c %a "$HOME/.."\n',
    );
    chmodSync(script, 0o755);
    const { result } = await run(script);
    const lines = String(result.stdout).trim().split("\n");
    const [home = "", mode] = lines.slice(-2);
    expect(lines).toHaveLength(5);
    expect([mode, existsSync(home)]).toEqual(["700", false]);
    expect(home.startsWith(tmpdir())).toBe(true);
  });

  test("standard input is empty: nothing waits for it", async () => {
    expect(await run("cat")).toMatchObject({ outcome: "done", result: { stdout: "" } });
  });

  test("there is no terminal to write to", async () => {
    const script = join(workshop.outside, "terminal");
    writeFileSync(script, "#!/bin/sh\necho hello > /dev/tty\n");
    chmodSync(script, 0o755);
    expect((await run(script)).outcome).toBe("failed");
  });
});

describe("what it prints", () => {
  test("comes back, with how it ended", async () => {
    expect(await run("ls -d sub")).toEqual({
      outcome: "done",
      result: { exitCode: 0, stdout: "sub\n", stderr: "" },
    });
    expect(await run("ls missing")).toMatchObject({ outcome: "failed", result: { exitCode: 2, stdout: "" } });
  });

  test("is cut after one MiB, which is told, and the program is ended", async () => {
    const { outcome, result } = await run("yes", { timeoutMs: 30_000 });
    expect(outcome).toBe("failed");
    expect(result).toMatchObject({ exitCode: null, signal: "SIGTERM" });
    expect(String(result.stdout)).toHaveLength(MIB);
    expect(result.truncated).toMatch(/^[1-9]\d* more bytes/);
  });

  test("is bounded also when it is no text", async () => {
    const { result } = await run("cat /dev/zero");
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThan(3.5 * MIB);
    expect(JSON.stringify(result).isWellFormed()).toBe(true);
  });

  test("exactly one MiB is not too much", async () => {
    expect(await run(`head -c ${MIB} /dev/zero`)).toMatchObject({ outcome: "done" });
    expect(await run(`head -c ${MIB + 1} /dev/zero`)).toMatchObject({
      outcome: "failed",
      result: { truncated: "1 more bytes were printed; the program was ended" },
    });
  });
});

describe("it ends", () => {
  const script = (name: string, text: string) => {
    const path = join(workshop.outside, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`);
    chmodSync(path, 0o755);
    return path;
  };
  const pidsIn = (file: string) => readFileSync(join(workshop.root, file), "utf8").trim().split("\n").map(Number);

  test("when its time is over", async () => {
    const { outcome, result } = await run("sleep 60", { timeoutMs: 100 });
    expect([outcome, result]).toEqual([
      "failed",
      { exitCode: null, signal: "SIGTERM", stdout: "", stderr: "", timedOut: "ended after 100 ms" },
    ]);
  });

  test("also when it does not want to", async () => {
    const path = script("stubborn", "trap '' TERM\necho $$ > stubborn.pid\nwhile :; do sleep 0.1; done");
    const { result } = await run(path, { timeoutMs: 300 });
    expect(result).toMatchObject({ signal: "SIGKILL", timedOut: "ended after 300 ms" });
    expect(pidsIn("stubborn.pid").map(isAlive)).toEqual([false]);
  });

  test("with all that it started", async () => {
    const path = script(
      "tree",
      "rm -f tree.pid\n(trap '' TERM; (trap '' TERM; echo $$ >> tree.pid; sh -c 'echo $$ >> tree.pid; exec sleep 60') & sleep 60) &\n" +
        "sh -c 'echo $$ >> tree.pid; exec sleep 60' &\necho $$ >> tree.pid\nwait",
    );
    const { result } = await run(path, { timeoutMs: 400 });
    expect(result.timedOut).toBeDefined();
    const pids = pidsIn("tree.pid");
    expect(pids.length).toBeGreaterThanOrEqual(3);
    expect(await eventually(() => !pids.some(isAlive))).toBe(true);
  });

  test("with what it left in the background", async () => {
    const path = script(
      "leaver",
      "sh -c 'echo $$ > left.pid; exec sleep 60' &\nwhile ! [ -s left.pid ]; do :; done\necho gone",
    );
    const { outcome, result } = await run(path);
    expect([outcome, result.stdout]).toEqual(["done", "gone\n"]);
    expect(await eventually(() => !pidsIn("left.pid").some(isAlive))).toBe(true);
  });

  // Only a container could hold what starts a session of its own; but nobody waits for it.
  test("also when something that left its group keeps the pipes open", async () => {
    const path = script(
      "escaper",
      "setsid sh -c 'echo $$ > escaped.pid; exec sleep 20' &\nwhile ! [ -s escaped.pid ]; do :; done",
    );
    const started = Date.now();
    expect((await run(path)).outcome).toBe("done");
    expect(Date.now() - started).toBeLessThan(10_000);
    for (const pid of pidsIn("escaped.pid")) process.kill(pid, "SIGKILL");
  });

  test("when it is canceled", async () => {
    const abort = new AbortController();
    const path = script("canceled", "echo $$ > canceled.pid\nexec sleep 60");
    const running = run(path, {}, abort.signal);
    expect(await eventually(() => existsSync(join(workshop.root, "canceled.pid")))).toBe(true);
    abort.abort();
    expect(await running).toMatchObject({ outcome: "failed", result: { canceled: true, signal: "SIGTERM" } });
    expect(pidsIn("canceled.pid").map(isAlive)).toEqual([false]);
  });

  test("before it begins, when it was canceled before", async () => {
    const finished = await call(workshop.command(), { command: "touch begun" }, AbortSignal.abort());
    expect(finished).toEqual({ outcome: "failed", result: "not run: it was canceled before it began" });
    expect(existsSync(join(workshop.root, "begun"))).toBe(false);
  });
});

describe("the executor takes the plan that was approved", () => {
  const signal = new AbortController().signal;

  test("and not the arguments", async () => {
    const tool = workshop.command();
    const facts = await tool.prepare({ command: `${workshop.printargs} approved` });
    await tool.run({ args: { command: `${workshop.printargs} swapped` }, facts, idempotencyKey: "k", signal });
    expect(workshop.recordedArgs()).toEqual(["approved"]);
  });

  test("and nothing that only resembles one", async () => {
    const tool = workshop.command();
    const { plan, ...rest } = await tool.prepare({ command: "ls" });
    const bents = [{}, { ...plan, shell: true }, { ...plan, argv: [] }, { ...plan, argv: "ls" }, { ...plan, cwd: "." }];
    for (const bent of bents) {
      const work = { args: {}, facts: { ...rest, plan: bent }, idempotencyKey: "k", signal };
      await expect(tool.run(work)).rejects.toThrow(/not one of this tool/);
    }
  });

  test.each(["sub", "sub/deep"])("and not in a folder %s that was exchanged meanwhile", async (working_directory) => {
    const other = openWorkshop();
    const tool = other.command();
    for (const folder of [join(other.root, "sub"), other.outside]) mkdirSync(join(folder, "deep"));
    const args = { command: "touch made", working_directory };
    const facts = await tool.prepare(args);
    renameSync(join(other.root, "sub"), join(other.root, "away"));
    symlinkSync(other.outside, join(other.root, "sub"));
    expect((await tool.run({ args, facts, idempotencyKey: "k", signal })).outcome).toBe("failed");
    expect(await refusalOf(tool, args)).toBe("not-allowed");
    expect(["made", "deep/made"].map((name) => existsSync(join(other.outside, name)))).toEqual([false, false]);
    other.close();
  });

  test("and not a program whose bytes are others by now", async () => {
    const program = join(workshop.root, "run.sh");
    writeFileSync(program, "#!/bin/sh\necho harmless\n");
    chmodSync(program, 0o755);
    const tool = workshop.command({ allowedCommands: allow(program) });
    const args = { command: program };
    const facts = await tool.prepare(args);
    expect(facts.plan.executableSha256).toBe(sha256("#!/bin/sh\necho harmless\n"));
    const { atime, mtime } = statSync(program);
    writeFileSync(program, "#!/bin/sh\necho EVIL!!!!\n");
    // As long as before, and as old: neither says that it is the same.
    utimesSync(program, atime, mtime);
    expect(await tool.run({ args, facts, idempotencyKey: "k", signal })).toEqual({
      outcome: "failed",
      result: `not run: the program ${program} is not the one that was approved`,
    });
    expect((await tool.prepare(args)).plan).not.toEqual(facts.plan);
  });

  test("and no program that nobody can read, for nobody could tell one from another", async () => {
    const program = join(workshop.root, "large");
    writeFileSync(program, "");
    chmodSync(program, 0o755);
    truncateSync(program, 1024 * 1024 * 1024 + 1);
    await expect(workshop.command({ allowedCommands: allow(program) }).prepare({ command: program })).rejects.toThrow(
      /cannot be read, so nobody could tell/,
    );
    rmSync(program);
  });

  test("and not a program that became a link meanwhile", async () => {
    const tool = workshop.command({ allowedCommands: allow(workshop.printargs) });
    const args = { command: workshop.printargs };
    const facts = await tool.prepare(args);
    renameSync(workshop.printargs, `${workshop.printargs}.away`);
    symlinkSync("/bin/true", workshop.printargs);
    expect((await tool.run({ args, facts, idempotencyKey: "k", signal })).outcome).toBe("failed");
    renameSync(`${workshop.printargs}.away`, workshop.printargs);
  });
});

describe("the facts", () => {
  test("change with every part of the rule, and with nothing else", async () => {
    const versionOf = async (rule: Parameters<Workshop["command"]>[0]) =>
      (await workshop.command(rule).prepare({ command: "ls" })).policyVersion;
    const versions = await Promise.all(
      [
        {},
        { requiresApproval: false },
        { allowedCommands: allow("ls") },
        { allowedCommands: [{ command: "ls", args: [] }] },
        { workingDirectory: workshop.outside },
        { timeoutMs: 1 },
        { onAmbiguous: "fail" as const },
        { editable: false },
        { risk: "low" as const },
        { approvalPrompt: "other words" },
      ].map(versionOf),
    );
    expect(new Set(versions).size).toBe(versions.length);
    expect(await versionOf({ place: { file: "other.yaml", line: 9 } })).toBe(versions[0]);
  });

  test("are the same when they are worked out again", async () => {
    for (const tool of [workshop.command(), workshop.file("write_file")]) {
      const args = tool.name === "write_file" ? { path: "file.txt", content: "x" } : { command: "find . -delete" };
      expect(await tool.prepare(args)).toEqual(await tool.prepare(args));
    }
  });
});
