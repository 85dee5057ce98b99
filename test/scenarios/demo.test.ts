/** What a newcomer does with two terminals: the demo in one, and the decisions in the other. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HoldpointProcess, holdpointIn, temporaryFolder } from "./holdpoint-process.ts";

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

function dev(): HoldpointProcess {
  const process = new HoldpointProcess(["dev", "--port", "0", "--no-open"], { cwd: folder.path });
  started.push(process);
  return process;
}

const holdpoint = (...args: string[]) => holdpointIn({ cwd: folder.path }, ...args);
const report = (name: string) => existsSync(join(folder.path, ".holdpoint", "workspace", "reports", name));
const open = async (): Promise<{ id: string; digest: string }[]> =>
  JSON.parse((await holdpoint("inbox", "--json")).stdout).requests;

describe("holdpoint dev", () => {
  test("says what is here, begins the demo, and announces what waits with its follow-up commands", async () => {
    const server = dev();
    const url = await server.url();
    const [, id = ""] = await server.saw(/◷ (input-\S+-1) {2}delete_file \{"path":"reports\/2023-q1\.md"\} {2}HIGH/);
    expect(server.stdout).toMatch(/^Holdpoint ready on /);
    expect(server.stdout).toContain("this is the built-in demo");
    expect(server.stdout).toContain("scripted: no key, no network");
    // Nobody is at a terminal: without the digest it would be refused.
    expect(server.stdout).toMatch(new RegExp(`npx holdpoint approve ${id} --hash sha256:[0-9a-f]{64}\\n`));
    expect(server.stdout).toContain(`npx holdpoint deny ${id} --reason`);
    expect(server.stdout).toContain('npx holdpoint run assistant "Tidy up the reports"');
    const [, token = ""] = server.stdout.match(/curl -H "Authorization: Bearer \$\(cat (\S+)\)"/) ?? [];
    const headers = { authorization: `Bearer ${readFileSync(join(folder.path, token), "utf8").trim()}` };
    expect((await fetch(`${url}/api/requests/${id}`, { headers })).status).toBe(200);
    expect((await server.stop()).code).toBe(0);
  });

  test("approve in the other terminal runs it; deny makes the agent offer something else", async () => {
    const server = dev();
    await server.saw(/-2 {2}delete_file/);
    const inbox = await holdpoint("inbox");
    const [first, second] = await open();
    const [head, row = ""] = inbox.stdout.split("\n");
    expect(head).toMatch(/^ID +RISK +WHAT +AGENT +AGE +EXPIRES$/);
    expect(row).toMatch(/^[0-9a-f]{5,}-1 +high +delete_file \{"path":"reports\/2023-q1\.\S*… +assistant +\d+s +-$/);
    expect(first?.id.endsWith(row.split(" ")[0] ?? "none")).toBe(true);
    expect(row.length).toBeLessThan(80);
    const shown = await holdpoint("show", first?.id ?? "");
    expect(shown.stdout).toContain("The agent says (its own words, checked by nobody):\n  │ Two reports are from 2023");
    expect(shown.stdout).toContain('Exactly this will run:\n  path: "reports/2023-q1.md"');
    expect(shown.stdout).toContain(first?.digest);
    expect(shown.stderr).toContain(`approve ${first?.id} --hash ${first?.digest}`);

    // High risk, and nobody at a terminal: only with proof of having seen it.
    const blind = await holdpoint("approve", first?.id ?? "");
    expect([blind.code, blind.stderr]).toEqual([2, expect.stringContaining("--hash")]);
    const stale = await holdpoint("approve", first?.id ?? "", "--hash", `sha256:${"0".repeat(64)}`);
    expect([stale.code, stale.stderr]).toEqual([5, expect.stringContaining("look at it again")]);
    expect(report("2023-q1.md")).toBe(true);

    const approved = await holdpoint("approve", first?.id ?? "", "--hash", first?.digest ?? "", "--note", "old");
    expect([approved.code, approved.stderr]).toEqual([0, expect.stringContaining("approved by owner: old")]);
    expect(approved.stderr).toContain("Waiting for 1 more decision in this task.");
    const denied = await holdpoint("deny", second?.id ?? "", "--reason", "we still need it");
    expect([denied.code, denied.stderr]).toEqual([0, expect.stringContaining("denied by owner: we still need it")]);
    await server.saw(/✓ completed\n +│ Understood, I did not delete what you denied\./);
    expect([report("2023-q1.md"), report("2023-q2.md")]).toEqual([false, true]);
    expect((await holdpoint("inbox")).stdout).toBe("Nothing needs you.\n");

    // The same again is a retry; anything else lost.
    expect((await holdpoint("approve", first?.id ?? "", "--hash", first?.digest ?? "")).code).toBe(0);
    const late = await holdpoint("deny", first?.id ?? "", "--reason", "too late");
    expect([late.code, late.stderr]).toEqual([
      5,
      expect.stringMatching(/was approved by owner: old \(.*\)\. Nothing changed\./),
    ]);
  });

  test("a pause survives SIGKILL: the next start finds it, and what was approved before runs once", async () => {
    const first = dev();
    await first.saw(/-2 {2}delete_file/);
    const [one, two] = await open();
    await holdpoint("approve", one?.id ?? "", "--hash", one?.digest ?? "");
    await first.stop("SIGKILL");
    // Its note is still there, but nobody is behind it.
    expect(existsSync(join(folder.path, ".holdpoint", "server.json"))).toBe(true);
    expect((await open()).map(({ id }) => id)).toEqual([two?.id]);
    expect(report("2023-q1.md")).toBe(true);

    const second = dev();
    await second.saw(/◷ input-\S+-2 {2}delete_file/);
    expect(second.stdout).not.toContain("The demo begins");
    await holdpoint("approve", two?.id ?? "", "--hash", two?.digest ?? "");
    await second.saw(/✓ completed\n +│ The reports are tidy/);
    expect([report("2023-q1.md"), report("2023-q2.md"), report("2024-q4.md")]).toEqual([false, false, true]);
    await second.stop();
    const audit = await holdpoint("audit", "verify");
    expect([audit.code, audit.stdout]).toEqual([0, expect.stringContaining("of 1 tasks")]);
  });
});

describe("holdpoint init", () => {
  test("writes a config that works, and never over anything", async () => {
    const written = await holdpoint("init");
    expect([written.code, written.stdout]).toEqual([0, expect.stringContaining("wrote holdpoint.yaml\n")]);
    expect(readFileSync(join(folder.path, ".gitignore"), "utf8")).toContain(".holdpoint");
    const before = readFileSync(join(folder.path, "holdpoint.yaml"), "utf8");
    expect((await holdpoint("init")).code).toBe(5);
    expect(readFileSync(join(folder.path, "holdpoint.yaml"), "utf8")).toBe(before);
    const check = await holdpoint("check");
    expect([check.code, check.stdout]).toEqual([
      0,
      expect.stringMatching(/assistant {2}delete_file +delete_file {2}asks {2}high +holdpoint\.yaml:17/),
    ]);
    const run = await holdpoint("run", "assistant", "Tidy up the reports", "--json");
    expect([run.code, JSON.parse(run.stdout).state]).toEqual([10, "input-required"]);
  });
});
