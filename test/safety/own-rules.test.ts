/** Through the whole composition: no tool reaches what decides about tools. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Holdpoint, openHoldpoint } from "../../src/server/compose.ts";
import { CallRefused } from "../../src/tools/tool.ts";

let folder: string;
let holdpoint: Holdpoint | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-own-rules-"));
});
afterEach(async () => {
  await holdpoint?.stop();
  holdpoint = undefined;
  rmSync(folder, { recursive: true, force: true });
});

async function open(files: Readonly<Record<string, string>>): Promise<Holdpoint> {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const dataFolder = join(folder, "data");
  holdpoint = await openHoldpoint({ configFile: join(folder, "holdpoint.yaml"), dataFolder, env: {} });
  writeFileSync(join(dataFolder, "token"), "the-owner-token");
  return holdpoint;
}

async function refusal(tool: string, args: Record<string, string>): Promise<string> {
  const prepared = await holdpoint?.agents
    .get("a")
    ?.tools.get(tool)
    ?.prepare(args)
    .then(
      () => "taken",
      (error: unknown) => error,
    );
  return prepared instanceof CallRefused ? prepared.message : String(prepared);
}

const SCRIPT = 'scenarios: [{ match: ".", turns: [{ say: "x" }] }]\n';

test("a command that asks nobody does not read the owner's token, nor the configuration", async () => {
  await open({
    "holdpoint.yaml": `llms: { s: { type: scripted, script: ./s.yaml } }
tools: { look: { type: command, allowed_commands: [cat, grep] } }
agents: { a: { llm: s, tools: [look] } }
`,
    "s.yaml": SCRIPT,
    "workspace/own.txt": "mine",
  });
  expect(await refusal("look", { command: "cat own.txt" })).toBe("taken");
  for (const path of ["../data/token", "../data", "../holdpoint.yaml", "../s.yaml", join(folder, "data", "token")]) {
    expect(await refusal("look", { command: `cat ${path}` })).toContain("is protected");
  }
  expect(await refusal("look", { command: "grep -r token .." })).toContain("is a folder that holds");
});

test("a client of the network that asks nobody is refused when the configuration is read", async () => {
  const text = (entry: string) => `llms: { s: { type: scripted, script: ./s.yaml } }
tools: { look: { type: command, allowed_commands: [${entry}] } }
agents: { a: { llm: s, tools: [look] } }
`;
  await expect(open({ "holdpoint.yaml": text("curl"), "s.yaml": SCRIPT })).rejects.toThrow(/curl" reaches the network/);
  await open({
    "holdpoint.yaml": text('{ command: curl, args: ["https://example\\\\.com/\\\\w*"] }'),
    "s.yaml": SCRIPT,
  });
});

test("no file tool changes a script or the database, even when somebody is asked", async () => {
  await open({
    "holdpoint.yaml": `llms: { s: { type: scripted, script: ./inner/s.yaml } }
tools: { write_file: { type: write_file, requires_approval: true, root: ./inner } }
agents:
  a: { llm: s, tools: [write_file], session_store: db }
session_stores: { db: { type: sqlite, database: ./inner/tasks.db } }
`,
    "inner/s.yaml": SCRIPT,
  });
  expect(await refusal("write_file", { path: "other.txt", content: "x" })).toBe("taken");
  for (const path of ["s.yaml", "tasks.db", "tasks.db-wal", "tasks.db-shm", "tasks.db-journal", "tasks.db.lock"]) {
    expect(await refusal("write_file", { path, content: "x" })).toContain("is protected");
  }
  expect(readFileSync(join(folder, "inner", "s.yaml"), "utf8")).toBe(SCRIPT);
});

test("no file tool changes the module of a code agent", async () => {
  const entry = new URL("../../src/runtime/define-agent.ts", import.meta.url).pathname;
  await open({
    "holdpoint.yaml": `llms: { s: { type: scripted, script: ./s.yaml } }
tools: { write_file: { type: write_file, requires_approval: true, root: ./inner } }
agents:
  a: { llm: s, tools: [write_file] }
  c: { type: code, module: ./inner/c.ts }
`,
    "s.yaml": SCRIPT,
    "inner/c.ts": `import { defineAgent } from ${JSON.stringify(entry)};\nexport default defineAgent(async () => "hi");\n`,
  });
  expect(await refusal("write_file", { path: "c.ts", content: "x" })).toContain("is protected");
});

test("a server that two agents gate shows each of them its own line", async () => {
  await open({
    "holdpoint.yaml": `llms: { s: { type: scripted, script: ./s.yaml } }
tools: { k8s: { type: mcp, url: http://127.0.0.1:1/mcp, tools: [x] } }
agents:
  a:
    llm: s
    requires_approval: true
    tools: [k8s]
  b:
    llm: s
    tools: [k8s]
    requires_approval: true
`,
    "s.yaml": SCRIPT,
  });
  const lineOf = (agent: string) => holdpoint?.agents.get(agent)?.tools.get("k8s/x")?.rule?.line;
  expect([lineOf("a"), lineOf("b")]).toEqual([6, 11]);
});
