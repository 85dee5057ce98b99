/** Nothing runs but the words that were shown. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { splitCommandLine } from "../../src/tools/command-line.ts";
import { createCommandRule, findUnwatched } from "../../src/tools/command-rules.ts";
import { findWarnings } from "../../src/tools/command-warnings.ts";
import { LITERAL, MALFORMED, NEED_A_SHELL, NOT_LISTED } from "./hostile-commands.ts";
import { HARMLESS, RUN_OTHERS } from "./hostile-programs.ts";
import { allow, call, openWorkshop, refusalOf, type Workshop } from "./workshop.ts";

let workshop: Workshop;
beforeAll(() => {
  workshop = openWorkshop();
});
afterAll(() => workshop.close());

const withProgram = (line: string) => line.replaceAll(/\bP\b/g, workshop.printargs);
const wordsOf = (line: string) => {
  const split = splitCommandLine(line);
  return split.ok ? split.words : [];
};

test("the corpus is large enough to mean something", () => {
  const lines = [NEED_A_SHELL, MALFORMED, LITERAL.map(([line]) => line), NOT_LISTED, RUN_OTHERS].flat();
  expect(new Set(lines).size).toBe(lines.length);
  expect(lines.length).toBeGreaterThanOrEqual(300);
});

test.each(NEED_A_SHELL)("needs a shell, so it is refused: %j", async (line) => {
  const anything = workshop.command();
  expect(await refusalOf(anything, { command: withProgram(line) })).toBe("not-allowed");
  await expect(anything.prepare({ command: withProgram(line) })).rejects.toThrow(/would need a shell/);
});

test.each(MALFORMED)("is no command line: %j", async (line) => {
  expect(await refusalOf(workshop.command(), { command: withProgram(line) })).toBe("arguments-invalid");
});

test.each(NOT_LISTED)("is not the program that is allowed: %j", async (line) => {
  const tool = workshop.command({ allowedCommands: allow("ls", workshop.printargs) });
  expect(await refusalOf(tool, { command: withProgram(line) })).toBe("not-allowed");
});

test.each(LITERAL)("runs exactly what is shown: %j", async (line, ...args) => {
  const tool = workshop.command({ allowedCommands: allow(workshop.printargs) });
  const { plan } = await tool.prepare({ command: withProgram(line) });
  expect(plan.argv).toEqual([workshop.printargs, ...args]);
  writeFileSync(join(workshop.root, "argv.bin"), "not run\0");
  expect(await call(tool, { command: withProgram(line) })).toMatchObject({ outcome: "done", result: { exitCode: 0 } });
  expect(workshop.recordedArgs()).toEqual(args);
});

describe("a program that runs others", () => {
  test.each(RUN_OTHERS)("is not run unwatched, and is named to whoever watches: %s", (line) => {
    const argv = wordsOf(line);
    const warnings = findWarnings(argv, `/usr/bin/${argv[0]}`).filter(({ about }) => about !== "look");
    expect(warnings).not.toEqual([]);
    const bare = createCommandRule(false, allow(argv[0] ?? ""));
    expect(findUnwatched(bare, argv, warnings)).toMatch(/asks nobody/);
    expect(findUnwatched({ ...bare, gated: true }, argv, warnings)).toBeUndefined();
  });

  test.each(HARMLESS)("is told from one that does not: %s", (line) => {
    const argv = wordsOf(line);
    expect(findWarnings(argv, `/usr/bin/${argv[0]}`)).toEqual([]);
  });

  test("is recognised behind another name", () => {
    expect(findWarnings(["tool"], "/usr/bin/dash")).toMatchObject([{ about: "program" }]);
    expect(findWarnings(["awk", "x"], "/usr/bin/mawk")).toMatchObject([{ about: "program" }]);
  });

  test("may be named with every argument, and then without options that run one more", () => {
    const rule = createCommandRule(false, [
      { command: "npm", args: ["test"] },
      { command: "python3", args: ["-?\\w+", ".*"] },
      { command: "find", args: [".*", ".*", ".*", ".*"] },
    ]);
    const judge = (...argv: string[]) => findUnwatched(rule, argv, findWarnings(argv, `/usr/bin/${argv[0]}`));
    expect(judge("npm", "test")).toBeUndefined();
    expect(judge("npm", "exec")).toMatch(/asks nobody/);
    expect(judge("python3", "build", "x")).toBeUndefined();
    expect(judge("python3", "-c", "x")).toMatch(/python3 -c/);
    expect(judge("find", ".", "-exec", "id", ";")).toMatch(/find -exec/);
  });

  test("through the whole tool: refused where nobody is asked, told where somebody is", async () => {
    for (const command of ["env id", "find . -exec id ';'", "sh -c id"]) {
      const allowedCommands = allow("env", "find", "sh");
      const unwatched = workshop.command({ requiresApproval: false, allowedCommands });
      expect(await refusalOf(unwatched, { command })).toBe("not-allowed");
      const { plan } = await workshop.command({ allowedCommands }).prepare({ command });
      expect(plan.warnings).not.toEqual([]);
    }
  });
});

describe("the closed set", () => {
  test.each([true, false])("nothing is listed: nothing runs, whoever is asked (%s)", async (requiresApproval) => {
    const tool = workshop.command({ requiresApproval, allowedCommands: [] });
    expect(await refusalOf(tool, { command: "ls" })).toBe("not-allowed");
    await expect(tool.prepare({ command: "ls" })).rejects.toThrow(
      /nothing is listed in "allowed_commands"; name there/,
    );
  });

  test.each([
    [["ok"], "P ok", "taken"],
    [["ok"], "P ok more", "not-allowed"],
    [["ok"], "P", "not-allowed"],
    [[], "P", "taken"],
    [[], "P x", "not-allowed"],
    [["ok"], "P notok", "not-allowed"],
    [["ok"], "P okay", "not-allowed"],
    [["ok"], "P 'ok\n'", "not-allowed"],
    [["ok"], "P '\nok'", "not-allowed"],
    [["a|b"], "P ax", "not-allowed"],
    [["a|b"], "P xb", "not-allowed"],
    [["a|b"], "P b", "taken"],
    [["^a$"], "P a", "taken"],
    [["\\d+", "x.*"], "P 12 'x y'", "taken"],
    [["\\d+", "x.*"], "P 12 'x\ny'", "not-allowed"],
    [["(a+)+b"], `P ${"a".repeat(60)}`, "not-allowed"],
  ] as const)("patterns %j match whole arguments: %s is %s", async (args, line, outcome) => {
    const tool = workshop.command({ allowedCommands: [{ command: workshop.printargs, args }] });
    expect(await refusalOf(tool, { command: withProgram(line) })).toBe(outcome);
  });

  test("a pattern cannot climb out of its anchors", () => {
    expect(() => createCommandRule(true, [{ command: "ls", args: ["a)|(b"] }])).toThrow(SyntaxError);
  });

  test("one entry's arguments do not open another's", async () => {
    const tool = workshop.command({ allowedCommands: [{ command: "ls", args: ["-l"] }, ...allow("cat")] });
    expect(await refusalOf(tool, { command: "ls -a" })).toBe("not-allowed");
    expect(await refusalOf(tool, { command: "cat -a" })).toBe("taken");
  });
});

describe("arguments", () => {
  test.each([
    [{}, /\/command: is missing/],
    [{ command: "" }, /\/command/],
    [{ command: 1 }, /\/command/],
    [{ command: ["ls"] }, /\/command/],
    [{ command: "ls", shell: true }, /\/shell: is not known/],
    [{ command: "ls", env: { LD_PRELOAD: "x" } }, /\/env: is not known/],
    [{ command: "ls", working_directory: 1 }, /\/working_directory/],
    [{ command: "ls", working_directory: "" }, /\/working_directory/],
    [{ command: "ls", working_directory: "a\u202eb" }, /control characters/],
  ])("that do not fit are told with their place: %j", async (args, text) => {
    await expect(workshop.command().prepare(args)).rejects.toThrow(text);
    expect(await refusalOf(workshop.command(), args)).toBe("arguments-invalid");
  });

  test.each([
    "..",
    "../outside",
    "/",
    "/tmp",
    "sub/../..",
    "../ws-evil",
    "missing",
    "file.txt",
    "~",
    "sub/../../outside",
  ])("the folder %j is not inside the configured one", async (working_directory) => {
    expect(await refusalOf(workshop.command(), { command: "ls", working_directory })).toBe("not-allowed");
  });

  test("a folder inside is shown by its real path", async () => {
    for (const working_directory of ["sub", "./sub/", "sub/../sub", join(workshop.root, "sub")]) {
      const { plan } = await workshop.command().prepare({ command: "ls", working_directory });
      expect(plan.cwd).toBe(join(workshop.root, "sub"));
    }
  });
});
