/**
 * The structure of `src/`, read from the source itself: who imports whom, who may reach for time, chance and the world
 * outside, and how large and how named a file is. Lint says much of this too; here it cannot be switched off silently.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "vite";
import { describe, expect, test } from "vitest";

/** A folder imports only from itself and from folders above it in this list. */
const LAYERS = [
  "ports",
  "task",
  "dialects",
  "a2a",
  "ag-ui",
  "store",
  "config",
  "models",
  "tools",
  "runtime",
  "server",
  "client",
  "cli",
  "testing",
] as const;

/** These know nothing but data: no clock, no database, no network, and no package but those named below. */
const PURE: ReadonlySet<string> = new Set(["task", "dialects", "a2a", "ag-ui"]);

/** Runs in a browser, so it takes only what is pure. */
const CLIENT = "client";

/** Everybody may import the faults; the entry of the package imports everybody. */
const FAULTS_FILE = "errors.ts";
const ENTRY_FILE = "index.ts";

const PURE_PACKAGES: readonly { readonly file: string; readonly name: string; readonly reason: string }[] = [
  { file: "task/digest.ts", name: "node:crypto", reason: "SHA-256 is a function of its input" },
  { file: "task/json.ts", name: "canonicalize", reason: "RFC 8785, as a function of its input" },
  ...[
    "shape",
    "fields",
    "asked-shape",
    "form-request",
    "form-answer",
    "hector-v1",
    "hitl-v1",
    "holdpoint",
    "kagent-a",
  ].map((name) => ({
    file: `dialects/${name}.ts`,
    name: "zod",
    reason: "validates shapes, as a function of its input",
  })),
];

/** Known breaches. One that is no longer needed fails the test, so that the list only holds what is true. */
const EXCEPTIONS: readonly { readonly file: string; readonly rule: Rule; readonly reason: string }[] = [
  {
    file: "ports/modules.ts",
    rule: "reach",
    reason: "which module an operator names, only its configuration tells",
  },
  {
    file: "client/index.ts",
    rule: "layer",
    reason: "the entry of holdpoint/client brings the platform's fetch, and nothing else of the ports",
  },
];

const LINES_MAX = 500;
const EMPTY_NAMES = /^(utils?|helpers?|commons?|types?|managers?|defaults?|impl)$/;

type Rule = "layer" | "pure" | "reach" | "size" | "name" | "switched-off";

interface SourceFile {
  /** From `src/` on, with slashes. */
  readonly path: string;
  readonly text: string;
}

interface Problem {
  readonly rule: Rule;
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

function findProblems(files: readonly SourceFile[]): Problem[] {
  return files.filter(({ path }) => path.endsWith(".ts") || path.endsWith(".tsx")).flatMap(inspect);
}

function inspect({ path, text }: SourceFile): Problem[] {
  const problems: Problem[] = [];
  const report = (rule: Rule, start: number, what: string) =>
    problems.push({ rule, file: path, line: text.slice(0, start).split("\n").length, text: what });

  for (const name of path.replace(/(\.test)?\.tsx?$/, "").split("/")) {
    if (EMPTY_NAMES.test(name)) report("name", 0, `"${name}" says nothing`);
  }
  // Tests may look at everything and do everything; what they test may not.
  if (isTest(path)) return problems;

  const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
  if (lines > LINES_MAX) report("size", 0, `${lines} lines; ${LINES_MAX} is the end`);

  const { program, comments, errors } = parseSync(path, text);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  for (const { value, start } of comments) {
    const [off] = /biome-ignore|@ts-(ignore|expect-error|nocheck)/.exec(value) ?? [];
    if (off) report("switched-off", start, `${off} needs a reason in the list of exceptions`);
  }
  for (const { specifier, start, typeOnly } of findImports(program)) {
    for (const breach of judgeImport(path, specifier, typeOnly)) report(breach.rule, start, breach.text);
  }
  const folder = folderOf(path);
  for (const { start, text: what, pureOnly } of findReaches(program)) {
    if (pureOnly ? PURE.has(folder) : folder !== "ports") report(pureOnly ? "pure" : "reach", start, what);
  }
  return problems;
}

function isTest(path: string): boolean {
  return /\.test\.tsx?$/.test(path);
}

function folderOf(path: string): string {
  return path.includes("/") ? (path.split("/")[0] ?? "") : "";
}

// Imports

interface Import {
  readonly specifier: string;
  readonly start: number;
  readonly typeOnly: boolean;
}

/** What a program imports, whichever way; a computed `import()` is reported as "?". */
function findImports(program: object): Import[] {
  const found: Import[] = [];
  visit(program, (node) => {
    const source = isNode(node.source) ? node.source.value : undefined;
    if (/^(Import|ExportNamed|ExportAll)Declaration$/.test(node.type) && typeof source === "string") {
      const kinds = [node.importKind, node.exportKind];
      const members = Array.isArray(node.specifiers) ? (node.specifiers as Node[]) : [];
      const allTypes =
        members.length > 0 &&
        members.every(({ importKind, exportKind }) => importKind === "type" || exportKind === "type");
      found.push({ specifier: source, start: node.start, typeOnly: kinds.includes("type") || allTypes });
    }
    if (node.type === "ImportExpression") {
      found.push({ specifier: typeof source === "string" ? source : "?", start: node.start, typeOnly: false });
    }
    if (node.type === "TSImportType") {
      const argument = isNode(node.source) ? node.source : isNode(node.argument) ? node.argument : undefined;
      found.push({ specifier: String(argument?.value ?? "?"), start: node.start, typeOnly: true });
    }
  });
  return found;
}

/** Packages and modules that reach the world by themselves. */
const WORLD =
  /^(node:)?(fs|fs\/promises|child_process|net|tls|dgram|dns|dns\/promises|http|https|http2|timers|timers\/promises|worker_threads|cluster)$|^undici$/;

function judgeImport(file: string, specifier: string, typeOnly: boolean): { rule: Rule; text: string }[] {
  const folder = folderOf(file);
  if (!specifier.startsWith(".")) {
    if (specifier === "?") return [{ rule: "reach", text: "imports what only running it can tell" }];
    if (/^(\/|file:|holdpoint($|\/)|src\/)/.test(specifier)) {
      return [{ rule: "layer", text: `imports "${specifier}": inside src/ paths are relative` }];
    }
    const known = PURE_PACKAGES.some((entry) => entry.file === file && entry.name === specifier);
    if (PURE.has(folder) && !known) return [{ rule: "pure", text: `imports the package "${specifier}"` }];
    const reaches = WORLD.test(specifier) && !typeOnly && folder !== "ports";
    return reaches ? [{ rule: "reach", text: `imports "${specifier}": that comes through ports/` }] : [];
  }
  const target = posix.normalize(posix.join(posix.dirname(file), specifier));
  if (target.startsWith("..")) return [{ rule: "layer", text: `imports "${specifier}" from outside src/` }];
  if (file === ENTRY_FILE || target === FAULTS_FILE) return [];
  const to = folderOf(target);
  if (to === folder && folder !== "") return [];
  const [from, upTo] = [LAYERS.indexOf(folder as never), LAYERS.indexOf(to as never)];
  if (file === FAULTS_FILE) return [{ rule: "layer", text: `imports ${target}, but stands above everything` }];
  if (from < 0) return [{ rule: "layer", text: `"${folder || file}" is not a layer` }];
  if (upTo < 0) return [{ rule: "layer", text: `imports ${target}, which is in no layer` }];
  if (folder === "testing") return [];
  if (folder === CLIENT && !PURE.has(to)) {
    return [{ rule: "layer", text: `imports ${target}, but client/ takes only what is pure` }];
  }
  if (PURE.has(folder) && !PURE.has(to)) return [{ rule: "pure", text: `imports ${target}, which is not pure` }];
  return upTo > from ? [{ rule: "layer", text: `imports ${target}, which stands below ${folder}/` }] : [];
}

// Reaching for time, chance and the world

interface Reach {
  readonly start: number;
  readonly text: string;
  readonly pureOnly?: boolean;
}

const WORLD_GLOBALS: ReadonlySet<string> = new Set([
  "setTimeout",
  "setInterval",
  "setImmediate",
  "performance",
  "fetch",
  "WebSocket",
  "EventSource",
  "require",
]);
const CHANCE: ReadonlySet<string> = new Set([
  "randomUUID",
  "randomBytes",
  "randomInt",
  "randomFill",
  "randomFillSync",
  "getRandomValues",
]);
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Math: ["random"],
  process: ["hrtime", "getBuiltinModule", "binding"],
  AbortSignal: ["timeout"],
  Atomics: ["wait", "waitAsync"],
};
const DATE_FUNCTIONS: ReadonlySet<unknown> = new Set(["parse", "UTC"]);

function findReaches(program: object): Reach[] {
  const found: Reach[] = [];
  visit(program, (node, parent, key) => {
    if (node.type !== "Identifier") return;
    const name = String(node.name);
    const { start } = node;
    const member = parent && isMember(parent) && key === "object" ? memberName(parent) : undefined;
    if (CHANCE.has(name)) found.push({ start, text: `"${name}" comes through ports/ids.ts` });
    if (isNameOnly(parent, key)) return;
    if (WORLD_GLOBALS.has(name)) found.push({ start, text: `"${name}" comes through ports/` });
    if (name === "Date" && !isTimelessDate(parent, key))
      found.push({ start, text: "time comes through ports/clock.ts" });
    // Taking the whole object along, or a member that is computed, could hide any of its members.
    const banned = MEMBERS[name];
    if (banned && (member === undefined || banned.includes(member))) {
      if (member !== undefined || name === "Math" || name === "process") {
        found.push({ start, text: `"${name}.${member ?? "?"}" comes through ports/` });
      }
    }
    if (name === "globalThis") found.push({ start, text: '"globalThis" hides what is reached for' });
    if (name === "process" || name === "console") found.push({ start, text: `"${name}" is not pure`, pureOnly: true });
  });
  return found;
}

/** `new Date(value)`, `Date.parse`, `Date.UTC` and `instanceof Date` know no "now". */
function isTimelessDate(parent: Node | undefined, key: string): boolean {
  if (!parent) return false;
  if (parent.type === "NewExpression" && key === "callee")
    return Array.isArray(parent.arguments) && parent.arguments.length > 0;
  if (isMember(parent) && key === "object") return DATE_FUNCTIONS.has(memberName(parent));
  return parent.type === "BinaryExpression" && parent.operator === "instanceof" && key === "right";
}

/** An identifier that is only a name: of a member, a key, an import. */
function isNameOnly(parent: Node | undefined, key: string): boolean {
  if (!parent) return false;
  if (isMember(parent)) return key === "property" && parent.computed !== true;
  if (/^(Property|MethodDefinition|PropertyDefinition|AccessorProperty)$/.test(parent.type)) {
    return key === "key" && parent.computed !== true && parent.shorthand !== true;
  }
  return (
    /^(Import|Export)\w*Specifier$/.test(parent.type) ||
    /^(LabeledStatement|BreakStatement|ContinueStatement)$/.test(parent.type)
  );
}

function isMember(node: Node): boolean {
  return node.type === "MemberExpression";
}

/** The name of a member, also when it is written as a text; undefined when it is computed. */
function memberName({ property, computed }: Node): string | undefined {
  if (!isNode(property)) return undefined;
  if (computed !== true) return String(property.name);
  return typeof property.value === "string" ? property.value : undefined;
}

type Node = { readonly type: string; readonly start: number; readonly [key: string]: unknown };

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** Types are erased and do nothing; these only wrap an expression. */
const WRAPPERS = /^TS(As|Satisfies|NonNull|Instantiation|TypeAssertion)/;

function visit(root: object, look: (node: Node, parent: Node | undefined, key: string) => void): void {
  const go = (value: unknown, parent: Node | undefined, key: string): void => {
    if (Array.isArray(value)) {
      for (const item of value) go(item, parent, key);
      return;
    }
    if (!isNode(value)) return;
    look(value, parent, key);
    if (value.type.startsWith("TS") && value.type !== "TSImportType") {
      if (WRAPPERS.test(value.type)) go(value.expression, value, "expression");
      else for (const inner of findImportTypes(value)) look(inner, undefined, "");
      return;
    }
    for (const [name, inner] of Object.entries(value)) if (name !== "parent") go(inner, value, name);
  };
  go(root, undefined, "");
}

function findImportTypes(value: unknown): Node[] {
  if (Array.isArray(value)) return value.flatMap(findImportTypes);
  if (!isNode(value)) return [];
  const inside = Object.entries(value).flatMap(([name, inner]) => (name === "parent" ? [] : findImportTypes(inner)));
  return value.type === "TSImportType" ? [value, ...inside] : inside;
}

/** What is left when the known breaches are taken away, and which of those are not there any more. */
function judge(problems: readonly Problem[], exceptions: typeof EXCEPTIONS): string[] {
  const covers = (problem: Problem) => (exception: { file: string; rule: Rule }) =>
    exception.file === problem.file && exception.rule === problem.rule;
  const unexpected = problems.filter((problem) => !exceptions.some(covers(problem)));
  const stale = exceptions.filter((exception) => !problems.some((problem) => covers(problem)(exception)));
  return [
    ...unexpected.map(({ file, line, rule, text }) => `src/${file}:${line}  ${rule}  ${text}`),
    ...stale.map(({ file, rule }) => `src/${file}  the exception from "${rule}" is stale: take it off the list`),
  ];
}

const root = fileURLToPath(new URL("../../", import.meta.url));

function readTree(folder: string): SourceFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path: relative(folder, path).split(sep).join("/"), text: readFileSync(path, "utf8") };
    });
}

describe("the source", () => {
  const files = readTree(join(root, "src"));

  test("keeps its layers, its purity, its ports, its sizes and its names", () => {
    expect(files.length).toBeGreaterThan(30);
    expect(judge(findProblems(files), EXCEPTIONS)).toEqual([]);
  });

  test("uses every package that pure code may use", () => {
    const stale = PURE_PACKAGES.filter(({ file, name }) => {
      const text = files.find(({ path }) => path === file)?.text;
      return !text || !findImports(parseSync(file, text).program).some(({ specifier }) => specifier === name);
    });
    expect(stale).toEqual([]);
  });

  test("has a reason for every exception", () => {
    for (const { reason } of [...EXCEPTIONS, ...PURE_PACKAGES]) expect(reason.length).toBeGreaterThan(10);
  });
});

describe("the checker finds", () => {
  const inFile = (path: string, text: string) => findProblems([{ path, text }]).map(({ rule }) => rule);

  test.each([
    ["a layer that looks down", "task/a.ts", 'import { b } from "../store/b.ts";', "pure"],
    ["a layer that looks down, for a type", "store/a.ts", 'import type { B } from "../runtime/b.ts";', "layer"],
    [
      "a layer that looks down, for one type of two",
      "store/a.ts",
      'import { type B, c } from "../server/b.ts";',
      "layer",
    ],
    ["a layer that looks down, passing it on", "config/a.ts", 'export { b } from "../cli/b.ts";', "layer"],
    ["a layer that looks down, passing all on", "config/a.ts", 'export * from "../cli/b.ts";', "layer"],
    ["a layer that looks down, for its effect", "config/a.ts", 'import "../cli/b.ts";', "layer"],
    ["a layer that looks down, at run time", "config/a.ts", 'await import("../cli/b.ts");', "layer"],
    ["a layer that looks down, inside a type", "config/a.ts", 'let a: import("../cli/b.ts").B;', "layer"],
    ["a pure layer that looks at a later pure one", "task/a.ts", 'import { b } from "../dialects/b.ts";', "layer"],
    ["a pure layer that looks at the ports", "a2a/a.ts", 'import type { Clock } from "../ports/clock.ts";', "pure"],
    ["a client that looks at the store", "client/a.ts", 'import type { B } from "../store/b.ts";', "layer"],
    ["a client that looks at the ports", "client/a.ts", 'import { b } from "../ports/b.ts";', "layer"],
    ["somebody who needs testing", "cli/a.ts", 'import { b } from "../testing/b.ts";', "layer"],
    ["faults that need somebody", "errors.ts", 'import { b } from "./ports/b.ts";', "layer"],
    ["a folder that is no layer", "stuff/a.ts", 'import { b } from "../task/b.ts";', "layer"],
    ["a file beside the layers", "loose.ts", 'import { b } from "./task/b.ts";', "layer"],
    ["an import of what is in no layer", "server/a.ts", 'import { b } from "../stuff/b.ts";', "layer"],
    ["an import from outside", "server/a.ts", 'import { b } from "../../bench/b.ts";', "layer"],
    ["an import of oneself by name", "server/a.ts", 'import { b } from "holdpoint/testing";', "layer"],
    ["a package in a pure layer", "dialects/a.ts", 'import { z } from "zod";', "pure"],
    ["a package that another pure file may use", "task/a.ts", 'import { hash } from "node:crypto";', "pure"],
    ["a process in a pure layer", "ag-ui/a.ts", "export const a = process.env.HOME;", "pure"],
    ["a log in a pure layer", "task/a.ts", "console.log(1);", "pure"],
    ["files", "store/a.ts", 'import { readFileSync } from "node:fs";', "reach"],
    ["files, by their short name", "store/a.ts", 'import { readFile } from "fs/promises";', "reach"],
    ["files, at run time", "store/a.ts", 'await import("node:fs");', "reach"],
    ["files, through require", "store/a.ts", 'require("node:fs");', "reach"],
    ["files, through the process", "store/a.ts", 'process.getBuiltinModule("node:fs");', "reach"],
    ["something only running it can tell", "store/a.ts", "await import(name);", "reach"],
    ["processes", "tools/a.ts", 'import { spawn } from "node:child_process";', "reach"],
    ["the network", "server/a.ts", 'import { connect } from "node:net";', "reach"],
    ["fetch", "models/a.ts", 'await fetch("https://example.com");', "reach"],
    ["fetch, passed on", "models/a.ts", "const client = create({ fetch });", "reach"],
    ["fetch, through the global object", "models/a.ts", "globalThis.fetch(url);", "reach"],
    ["the time", "runtime/a.ts", "const a = Date.now();", "reach"],
    ["the time, as a text", "runtime/a.ts", 'const a = Date["now"]();', "reach"],
    ["the time, taken apart", "runtime/a.ts", "const { now } = Date;", "reach"],
    ["the time, as a function", "runtime/a.ts", "const clock = Date.now;", "reach"],
    ["the time, as a date", "runtime/a.ts", "const a = new Date();", "reach"],
    ["the time, called", "runtime/a.ts", "const a = Date();", "reach"],
    ["the time, behind a cast", "runtime/a.ts", "const a = (Date as unknown as Clock).now();", "reach"],
    ["the time since the start", "runtime/a.ts", "const a = performance.now();", "reach"],
    ["the time of the process", "runtime/a.ts", "const a = process.hrtime.bigint();", "reach"],
    ["the time of the process, taken apart", "runtime/a.ts", "const { hrtime } = process;", "reach"],
    ["chance", "runtime/a.ts", "const a = Math.random();", "reach"],
    ["chance, as a text", "runtime/a.ts", 'const a = Math["random"]();', "reach"],
    ["chance, taken apart", "runtime/a.ts", "const { random } = Math;", "reach"],
    ["an id", "runtime/a.ts", "const a = crypto.randomUUID();", "reach"],
    ["an id, imported", "server/a.ts", 'import { randomUUID } from "node:crypto";', "reach"],
    ["random bytes", "server/a.ts", 'import { randomBytes as bytes } from "node:crypto";', "reach"],
    ["a timer", "runtime/a.ts", "setTimeout(() => {}, 1);", "reach"],
    ["a timer, given another name", "runtime/a.ts", "const wait = setInterval;", "reach"],
    ["a timer, put away", "runtime/a.ts", "const later = [setImmediate];", "reach"],
    ["a timer in disguise", "runtime/a.ts", "const a = AbortSignal.timeout(1);", "reach"],
    ["a module of timers", "runtime/a.ts", 'import { setTimeout as sleep } from "node:timers/promises";', "reach"],
    ["lint switched off", "runtime/a.ts", "// biome-ignore lint/style/noEnum: no reason\nlet a = 1;", "switched-off"],
    ["the compiler switched off", "runtime/a.ts", "// @ts-expect-error\nlet a = 1;", "switched-off"],
    ["a file that is too long", "runtime/a.ts", "let a = 1;\n".repeat(LINES_MAX + 1), "size"],
    ["a name that says nothing", "runtime/utils.ts", "", "name"],
    ["a folder that says nothing", "runtime/helpers/a.ts", "", "name"],
    ["a test whose name says nothing", "runtime/types.test.ts", "", "name"],
  ])("%s", (_what, path, text, rule) => {
    expect(inFile(path, text)).toContain(rule);
  });

  test.each([
    ["a look up", "server/a.ts", 'import { b } from "../task/b.ts";\nimport { c } from "../ports/c.ts";'],
    ["a look beside", "server/a.ts", 'import { b } from "./b.ts";'],
    ["a look beside, deeper", "server/auth/a.ts", 'import { b } from "../b.ts";'],
    ["faults for everybody", "task/a.ts", 'import { unreachable } from "../errors.ts";'],
    ["pure layers that look up", "ag-ui/a.ts", 'import { b } from "../a2a/b.ts";'],
    ["a client that takes what is pure", "client/a.ts", 'import { b } from "../ag-ui/b.ts";'],
    ["testing that takes everything", "testing/a.ts", 'import { b } from "../cli/b.ts";'],
    ["the entry that takes everything", "index.ts", 'export { b } from "./server/b.ts";'],
    ["packages where they belong", "server/a.ts", 'import { Hono } from "hono";'],
    ["ports that reach out", "ports/a.ts", 'import { readFileSync } from "node:fs";\nexport const a = Date.now();'],
    ["a type of the network", "server/a.ts", 'import type { AddressInfo } from "node:net";'],
    ["a date from a number", "server/a.ts", "const a = new Date(ms).toISOString();"],
    ["a date as a type", "server/a.ts", "function a(b: Date): Date[] { return [b]; }"],
    ["arithmetic", "runtime/a.ts", "const a = Math.max(1, 2);"],
    ["a member that is called like a timer", "server/a.ts", "app.fetch(request); clock.setTimeout(1);"],
    ["words in texts and comments", "task/a.ts", '// Date.now() is not called here\nconst a = "Math.random()";'],
    ["the longest file", "runtime/a.ts", "let a = 1;\n".repeat(LINES_MAX)],
    ["a test that does anything", "task/a.test.ts", 'import "../testing/b.ts";\nsetTimeout(() => {}, Date.now());'],
    ["a name that contains an empty one", "runtime/content-types-of-parts.ts", ""],
    ["what is not source", "task/golden-log.json", "{}"],
  ])("nothing wrong with %s", (_what, path, text) => {
    expect(inFile(path, text)).toEqual([]);
  });

  test("every breach of a small tree, each with its place", () => {
    const tree: SourceFile[] = [
      { path: "errors.ts", text: "export class Fault {}\n" },
      {
        path: "task/decide.ts",
        text: 'import { Fault } from "../errors.ts";\nimport { save } from "../store/store.ts";\n',
      },
      { path: "store/store.ts", text: "\n\nexport const at = Date.now();\n" },
      { path: "runtime/manager.ts", text: 'import { decide } from "../task/decide.ts";\n' },
    ];
    expect(judge(findProblems(tree), [])).toEqual([
      "src/task/decide.ts:2  pure  imports store/store.ts, which is not pure",
      "src/store/store.ts:3  reach  time comes through ports/clock.ts",
      'src/runtime/manager.ts:1  name  "manager" says nothing',
    ]);
    const known = { file: "store/store.ts", rule: "reach", reason: "an example" } as const;
    expect(judge(findProblems(tree), [known])).toHaveLength(2);
  });

  test("an exception that is not needed any more", () => {
    const stale = { file: "task/decide.ts", rule: "size", reason: "it was long once" } as const;
    expect(judge([], [stale])).toEqual([
      'src/task/decide.ts  the exception from "size" is stale: take it off the list',
    ]);
  });
});

/** Lint tells the writer at once what this test tells only later; so it must stay switched on. */
describe("lint still refuses", () => {
  const probes = {
    "node:fs": 'import { readFileSync } from "node:fs";\nexport const a = readFileSync("a");',
    "node:fs/promises": 'import { readFile } from "node:fs/promises";\nexport const a = readFile("a");',
    "node:child_process": 'import { spawn } from "node:child_process";\nexport const a = spawn("a");',
    "node:timers": 'import { setTimeout as later } from "node:timers";\nexport const a = later(() => {}, 1);',
    "node:timers/promises": 'import { scheduler } from "node:timers/promises";\nexport const a = scheduler;',
    "Date.now": "export const a = Date.now();",
    "new Date": "export const a = new Date();",
    "Math.random": "export const a = Math.random();",
    "performance.now": "export const a = performance.now();",
    "crypto.randomUUID": "export const a = crypto.randomUUID();",
    setTimeout: "export const a = setTimeout(() => {}, 1);",
    setInterval: "export const a = setInterval(() => {}, 1);",
    setImmediate: "export const a = setImmediate(() => {});",
    fetch: 'export const a = fetch("a");',
  } as const;
  const OURS = /^(lint\/style\/noRestricted(Globals|Imports)|plugin)/;

  /** Runs the repository's own lint, with its own configuration, over files that break the rules. */
  function lint(files: Readonly<Record<string, string>>): Map<string, string[]> {
    const folder = mkdtempSync(join(tmpdir(), "holdpoint-lint-"));
    try {
      for (const name of ["biome.json", "scripts/lint"])
        cpSync(join(root, name), join(folder, name), { recursive: true });
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true });
        writeFileSync(join(folder, path), text);
      }
      const found = new Map<string, string[]>();
      for (const line of biome(folder).split("\n")) {
        const [, path, rule] = /^(\S+\.ts):\d+:\d+ (\S+)/.exec(line) ?? [];
        if (path && rule) found.set(path, [...(found.get(path) ?? []), rule]);
      }
      return found;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  function biome(cwd: string): string {
    const command = join(root, "node_modules", ".bin", "biome");
    try {
      return execFileSync(command, ["lint", "--max-diagnostics=200", "--colors=off"], {
        cwd,
        encoding: "utf8",
        stdio: "pipe",
      });
    } catch (error) {
      // It found something, as it should.
      const { stdout, stderr } = error as { stdout?: string; stderr?: string };
      return `${stdout}\n${stderr}`;
    }
  }

  const nameOf = (i: number) => `probe-${i}.ts`;
  const found = lint(
    Object.fromEntries(
      Object.values(probes).flatMap((text, i) => [
        [`src/task/${nameOf(i)}`, text],
        [`src/server/${nameOf(i)}`, text],
        [`src/ports/${nameOf(i)}`, text],
        [`src/task/probe-${i}.test.ts`, text],
      ]),
    ),
  );
  const isRefused = (path: string) => (found.get(path) ?? []).some((rule) => OURS.test(rule));

  test.each(Object.keys(probes).map((name, i) => [name, i] as const))("%s", (_name, i) => {
    expect([isRefused(`src/task/${nameOf(i)}`), isRefused(`src/server/${nameOf(i)}`)]).toEqual([true, true]);
    expect([isRefused(`src/ports/${nameOf(i)}`), isRefused(`src/task/probe-${i}.test.ts`)]).toEqual([false, false]);
  });

  test("in every check, with warnings as errors", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      scripts: Record<string, string>;
    };
    expect(scripts.lint).toContain("biome check --error-on-warnings");
    expect(scripts.check).toContain("npm run lint");
  });
});
