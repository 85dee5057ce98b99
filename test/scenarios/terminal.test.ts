/** A person at a real terminal: what is shown, which keys decide, and which must not. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Finished, HoldpointProcess, holdpointIn, LAUNCHER, temporaryFolder } from "./holdpoint-process.ts";

/** `script` of util-linux gives a command a terminal; elsewhere the keys are tested without one (`arming.test.ts`). */
const hasScript = (() => {
  try {
    return execFileSync("script", ["--version"], { encoding: "utf8" }).includes("util-linux");
  } catch {
    return false;
  }
})();

let folder: ReturnType<typeof temporaryFolder>;
let person: Person | undefined;

beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await person?.leave();
  person = undefined;
  folder.remove();
});

class Person {
  readonly process: HoldpointProcess;

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    const quoted = [process.execPath, LAUNCHER, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
    const surroundings = { cwd: folder.path, env: { TERM: "xterm-256color", ...env } };
    const command = `stty cols 100 rows 40; exec ${quoted}`;
    this.process = new HoldpointProcess(["-qefc", command, "/dev/null"], surroundings, ["script"]);
  }

  saw(pattern: RegExp) {
    return this.process.saw(pattern);
  }

  /** Waits until a request was shown and can be decided. */
  async isAsked(n: number): Promise<void> {
    await this.process.saw(new RegExp(`input-\\S+-${n}\\b[^]*Esc leaves it open`));
    await sleep(600);
  }

  type(keys: string): void {
    this.process.child.stdin?.write(keys);
  }

  /** As somebody who writes fast. */
  async typeWords(text: string): Promise<void> {
    for (const character of text) {
      this.type(character);
      await sleep(40);
    }
  }

  get exited(): Promise<Finished> {
    return this.process.exited;
  }

  async leave(): Promise<void> {
    await this.process.stop("SIGKILL");
  }
}

const report = (name: string) => existsSync(join(folder.path, ".holdpoint", "workspace", "reports", name));
const run = (message: string, env?: Record<string, string>) => {
  person = new Person(["run", "assistant", message], env);
  return person;
};
const ENTER = "\r";
const ESCAPE = "\u001b";

describe.skipIf(!hasScript)("at a terminal", () => {
  test("high risk takes two keys, a denial one and a reason, and the agent goes on", async () => {
    const ana = run("Tidy up the reports");
    await ana.isAsked(1);
    expect(ana.process.stdout).toContain("HIGH RISK");
    expect(ana.process.stdout).toContain("The agent says (its own words, checked by nobody):");
    expect(ana.process.stdout).toMatch(/Exactly this will run:\S*\r\n {2}path: "reports\/2023-q1\.md"/);
    ana.type("a");
    await sleep(700);
    expect(ana.process.stdout).toContain("Enter decides");
    expect(ana.process.stdout).not.toContain("approved by");
    ana.type(ENTER);
    await ana.isAsked(2);
    ana.type("d");
    await ana.saw(/Tell the agent why/);
    await sleep(200);
    ana.type(`keep it${ENTER}`);
    const { code, stdout } = await ana.exited;
    expect([code, stdout]).toEqual([0, expect.stringContaining("delete_file denied by owner: keep it")]);
    expect(stdout).toMatch(/I did not delete what you denied/);
    expect([report("2023-q1.md"), report("2023-q2.md")]).toEqual([false, true]);
  });

  test("what is typed for something else decides nothing, before and after the request appears", async () => {
    const ana = run("Tidy up the reports");
    // She goes on writing while the request comes up under her hands.
    for (let i = 0; i < 8; i++) await ana.typeWords(`add approve${ENTER} deny it a${ENTER}`);
    await ana.isAsked(1);
    await ana.typeWords(`a${ENTER}aa${ENTER} da ${ENTER}approve all of it${ENTER}`);
    // A paste comes at once.
    await sleep(1200);
    expect(ana.process.stdout).not.toContain("too quick");
    ana.type(`a${ENTER}`);
    await ana.saw(/That was too quick to count: press a, look, then Enter\.\r\n/);
    await sleep(600);
    ana.type(`dd${ENTER}`);
    await sleep(600);
    expect(ana.process.stdout).not.toMatch(/approved by|denied by|Tell the agent why/);
    expect([report("2023-q1.md"), report("2023-q2.md")]).toEqual([true, true]);
    await sleep(1100);
    ana.type(ESCAPE);
    const { code, stdout } = await ana.exited;
    expect([code, stdout]).toEqual([10, expect.stringContaining("npx holdpoint approve input-")]);
  });

  test("changed arguments are shown whole before they can be approved, and then run", async () => {
    const editor = join(folder.path, "editor.sh");
    writeFileSync(editor, '#!/bin/sh\nsed -i s/2023-q1/2024-q4/ "$1"\n', { mode: 0o755 });
    const ana = run("Tidy up the reports", { EDITOR: editor });
    await ana.isAsked(1);
    ana.type("e");
    await ana.saw(/Exactly this will run instead:\S*\r\n {2}path: "reports\/2024-q4\.md"/);
    await ana.saw(/What it comes to is worked out and checked when it runs/);
    await ana.saw(/Approve with changes/);
    await sleep(600);
    ana.type("a");
    await sleep(600);
    ana.type(ENTER);
    await ana.isAsked(2);
    ana.type("d");
    await ana.saw(/Tell the agent why/);
    await sleep(200);
    ana.type(ENTER);
    const { stdout } = await ana.exited;
    expect(stdout).toContain("(no reason given)");
    expect(stdout).toContain("approved by owner with changed arguments");
    expect([report("2023-q1.md"), report("2024-q4.md")]).toEqual([true, false]);
  });

  test("a question is answered by its number or its words, and a wrong answer is asked again", async () => {
    const ana = run("Which reports may go?");
    await ana.saw(/The agent asks \(its own words\):/);
    await ana.saw(/3 none of them/);
    await sleep(200);
    ana.type(`9${ENTER}`);
    await ana.saw(/Pick one: 2023, 2024, none of them/);
    ana.type(`\u007f2${ENTER}`);
    const { code, stdout } = await ana.exited;
    expect([code, stdout]).toEqual([0, expect.stringContaining("You chose: 2024.")]);
  });

  test("what is typed for something else answers no question", async () => {
    const ana = run("Which reports may go?");
    for (let i = 0; i < 30; i++) await ana.typeWords(`1${ENTER}`);
    await ana.saw(/The agent asks/);
    for (let i = 0; i < 15; i++) await ana.typeWords(`2${ENTER}`);
    await ana.saw(/3 none of them/);
    await sleep(300);
    expect(ana.process.stdout).not.toContain("answered by");
    ana.type(ESCAPE);
    expect((await ana.exited).code).toBe(10);
  });

  test("when somebody else decides, the question goes away by itself", async () => {
    const server = new HoldpointProcess(["serve", "--port", "0"], { cwd: folder.path });
    await server.url();
    const ana = run("Tidy up the reports");
    await ana.isAsked(1);
    const [, id = ""] = ana.process.stdout.match(/(input-\S+-1)\b/) ?? [];
    await holdpointIn({ cwd: folder.path }, "deny", id, "--reason", "not now");
    await ana.saw(/Somebody else was quicker/);
    await ana.isAsked(2);
    expect(readFileSync(join(folder.path, ".holdpoint", "token"), "utf8")).not.toBe("");
    ana.type("\u0003");
    const { code, stdout } = await ana.exited;
    expect([code, stdout]).toEqual([130, expect.stringContaining("is not canceled; it waits for a person")]);
    // At a terminal she is shown everything before she decides: no digest is needed.
    expect(stdout).toMatch(/npx holdpoint approve input-\S+-2\r\n/);
    await server.stop();
  });

  test("approve shows all of a high risk before it asks", async () => {
    const { stdout } = await holdpointIn({ cwd: folder.path }, "run", "assistant", "Tidy up", "--json");
    const [{ id, digest }] = JSON.parse(stdout).requests;
    person = new Person(["approve", id]);
    await person.isAsked(1);
    expect(person.process.stdout).toContain(digest);
    person.type("a");
    await sleep(600);
    person.type(ENTER);
    const ended = await person.exited;
    expect([ended.code, ended.stdout]).toEqual([0, expect.stringContaining("approved by owner")]);
  });

  test("approve --args shows what will run instead, and says of the agent's own that it will not", async () => {
    const { stdout } = await holdpointIn({ cwd: folder.path }, "run", "assistant", "Tidy up", "--json");
    const [{ id }] = JSON.parse(stdout).requests;
    writeFileSync(join(folder.path, "args.json"), '{"path":"reports/2024-q4.md"}');
    person = new Person(["approve", id, "--args", "args.json"]);
    await person.isAsked(1);
    const shown = person.process.stdout;
    expect(shown).toMatch(/it will not run:\S*\r\n {2}path: "reports\/2023-q1\.md"/);
    expect(shown).not.toContain("Exactly this will run:");
    const last = shown.slice(shown.lastIndexOf("Exactly this will run instead:"));
    expect(last).toMatch(/^[^\r]*\r\n {2}path: "reports\/2024-q4\.md"\r\n/);
    expect(last).toContain("Approve with changes");
    person.type("a");
    await sleep(600);
    person.type(ENTER);
    const ended = await person.exited;
    expect([ended.code, ended.stdout]).toEqual([0, expect.stringContaining("with changed arguments")]);
    expect((await holdpointIn({ cwd: folder.path }, "show", id)).stdout).toContain("Changed arguments:");
  });

  test("a task that waits in this command says so when it is left, and names no command that can only fail", async () => {
    const words = `Which?\\n✓ approved by owner ${"and so on ".repeat(40)}`;
    const script = `scenarios: [{ match: ".", turns: [{ say: "${words}", ask: { question: "${words}" } }] }]`;
    writeFileSync(join(folder.path, "script.yaml"), script);
    const config = `llms: { demo: { type: scripted, script: ./script.yaml } }
tools: { ask_user: { type: ask_user } }
agents: { assistant: { llm: demo, instruction: x, tools: [ask_user], task: { hitl: { mode: blocking } } } }\n`;
    writeFileSync(join(folder.path, "holdpoint.yaml"), config);
    const ana = run("ask");
    await ana.saw(/The agent asks: Which/);
    await sleep(300);
    // Whatever the agent says or asks, painted or not, stands behind a mark.
    for (const line of stripVTControlCharacters(ana.process.stdout).split(/\r?\n/)) {
      if (/and so on|✓ approved/.test(line)) expect(line).toMatch(/^ *[│┆◆] /);
      expect(line.length).toBeLessThanOrEqual(100);
    }
    ana.type(ESCAPE);
    const { code, stdout } = await ana.exited;
    expect([code, stdout]).toEqual([1, expect.stringContaining("waited in this command and is lost with it")]);
    expect(stdout).not.toContain("npx holdpoint answer");
  });

  test("NO_COLOR is honoured, and long words of an agent never begin a line of their own", async () => {
    const ana = run("Tidy up the reports", { NO_COLOR: "1" });
    await ana.isAsked(1);
    expect(ana.process.stdout).not.toContain("\u001b[1m");
    expect(ana.process.stdout).not.toContain("\u001b[31m");
    const said =
      ana.process.stdout
        .split(/checked by nobody\):\r\n/)[1]
        ?.split("\r\n\r\n")[0]
        ?.split("\r\n") ?? [];
    expect(said.length).toBeGreaterThan(1);
    for (const line of said) expect(line).toMatch(/^ {2}[│┆] .{0,96}$/);
  });
});
