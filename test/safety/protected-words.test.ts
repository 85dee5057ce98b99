/** No word of a command leads to the token, the data, or the configuration: not bare, not in an option, not by a link. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { partsOf } from "../../src/tools/command-paths.ts";
import { allow, call, openWorkshop, refusalOf, type Workshop } from "./workshop.ts";

let workshop: Workshop;
let data: string;
beforeAll(() => {
  workshop = openWorkshop();
  data = join(dirname(workshop.root), "data");
  mkdirSync(data);
  writeFileSync(join(data, "token"), "the-owner-token");
  writeFileSync(join(dirname(workshop.root), "holdpoint.yaml"), "agents: {}");
  symlinkSync(data, join(workshop.root, "link"));
  symlinkSync("link/token", join(workshop.root, "second"));
  symlinkSync("/proc/self/cwd", join(workshop.root, "here"));
  symlinkSync("loop", join(workshop.root, "loop"));
});
afterAll(() => workshop.close());

const PROGRAMS = allow("cat", "grep", "ls", "sort", "wc", "echo");
const toolFor = (requiresApproval: boolean) =>
  workshop.command({
    requiresApproval,
    allowedCommands: PROGRAMS,
    protect: [data, join(dirname(workshop.root), "holdpoint.yaml")],
  });

describe.each([true, false])("with somebody who is asked: %s", (gated) => {
  test.each([
    "cat ../data/token",
    "cat ../data/not-there-yet",
    "ls ../data",
    "ls ../data/",
    "cat ./sub/../../data/token",
    "cat DATA/token",
    "cat //DATA//token",
    "cat link/token",
    "cat second",
    "cat ../ws/link/../data/token",
    "cat ../holdpoint.yaml",
    "grep -f../data/token x",
    "grep -rnf../data/token x",
    "grep -rnfsecond x",
    "grep --file=../data/token x",
    "grep --file=second x",
    "sort --files0-from=DATA/token",
    "echo @../data/token",
    "echo file://DATA/token",
    "echo file://localhostDATA/token",
    "echo file://DATA/%74oken",
    "echo a:../data:/mnt",
    "echo x=1,y=../data/token",
    "cat here/../data/token",
    "cat /proc/self/cwd/../data/token",
    "cat /proc/self/root/etc/hostname",
    "cat /proc/1/environ",
    "cat /proc/thread-self/fd/3",
    "cat /dev/fd/3",
  ])("%s is refused", async (line) => {
    const command = line.replaceAll("DATA", data);
    expect(await refusalOf(toolFor(gated), { command })).toBe("not-allowed");
    await expect(toolFor(gated).prepare({ command })).rejects.toThrow(/is protected|belongs to a running process/);
  });

  test.each([
    "cat file.txt",
    "ls sub",
    "ls -la",
    "grep -rn data .",
    "cat /etc/hostname",
    "echo a:b=c@d",
    "cat loop",
    "echo 100%",
  ])("%s is taken", async (command) => {
    expect(await refusalOf(toolFor(gated), { command })).toBe("taken");
  });

  test("from another folder the same word may mean another place", async () => {
    const tool = toolFor(gated);
    expect(await refusalOf(tool, { command: "ls ../../data", working_directory: "sub" })).toBe("not-allowed");
    expect(await refusalOf(tool, { command: "ls ../data", working_directory: "sub" })).toBe("taken");
  });

  test("a link that was put there after the approval leads nowhere either", async () => {
    const tool = toolFor(gated);
    const args = { command: "cat later" };
    const facts = await tool.prepare(args);
    symlinkSync("../data/token", join(workshop.root, "later"));
    const work = { args, facts, idempotencyKey: "k", signal: new AbortController().signal };
    expect(await tool.run(work)).toMatchObject({
      outcome: "failed",
      result: expect.stringMatching(/^not run: .*protected/),
    });
    rmSync(join(workshop.root, "later"));
  });
});

test.each(["grep -r x ..", "ls /", "grep -r x --exclude=y ../", "cat ../ws/.."])(
  "a folder that holds them is for people to judge: %s",
  async (command) => {
    expect(await refusalOf(toolFor(false), { command })).toBe("not-allowed");
    expect(await refusalOf(toolFor(true), { command })).toBe("taken");
  },
);

test("a folder that an operator put inside of a protected one can be worked in, and not left", async () => {
  const tool = workshop.command({ protect: [dirname(workshop.root)] });
  expect(await call(tool, { command: "cat file.txt" })).toMatchObject({ outcome: "done" });
  expect(await refusalOf(tool, { command: "cat ../data/token" })).toBe("not-allowed");
});

test("a word of very many parts is not run unlooked at", async () => {
  const command = `echo ${"a:".repeat(100)}../data/token`;
  await expect(toolFor(false).prepare({ command })).rejects.toThrow(/too many parts/);
});

test("every part of a word that may be a path is known", () => {
  expect(partsOf("--a=b@c:d")).toEqual(expect.arrayContaining(["--a=b@c:d", "b@c:d", "c:d", "d", "b", "c"]));
  expect(partsOf("-xf/a")).toContain("/a");
  expect(partsOf(`-${"x".repeat(40)}./a`)).toContain("./a");
});
