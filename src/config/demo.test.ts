import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ScriptTurn } from "./config.ts";
import { DEMO_FILES, DEMO_SCRIPT_YAML, DEMO_YAML, demoConfig } from "./demo.ts";
import { listGates } from "./gates.ts";
import { loadConfig } from "./load.ts";

test("what `holdpoint init` writes loads without a problem, a warning or a variable", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-demo-"));
  try {
    writeFileSync(join(folder, "holdpoint.yaml"), DEMO_YAML);
    writeFileSync(join(folder, "demo.script.yaml"), DEMO_SCRIPT_YAML);
    const loaded = loadConfig(join(folder, "holdpoint.yaml"), {}, join(folder, ".holdpoint"));
    expect(loaded).toMatchObject({ ok: true, warnings: [] });
    if (loaded.ok) expect(listGates(loaded.config).filter(({ warning }) => warning)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("the demo needs no file: it is resumed after a restart and works in the data folder", () => {
  const demo = demoConfig("/data");
  expect(demo.file).toBeUndefined();
  expect(demo.store).toBeUndefined();
  expect(demo.agents.get("assistant")).toMatchObject({ llm: "demo", task: { mode: "async", inputTimeoutMs: null } });
  expect(demo.tools.get("delete_file")).toMatchObject({
    requiresApproval: true,
    root: "/data/workspace",
    place: { file: "built-in demo" },
  });
});

const scenarioFor = (message: string) => {
  const llm = demoConfig("/data").llms.get("demo");
  if (llm?.type !== "scripted") throw new Error("the demo has no script");
  return llm.script.scenarios.find(({ match }) => new RegExp(match, "i").test(message))?.turns ?? [];
};
const toolsOf = (turn: ScriptTurn | undefined) => turn?.call?.map(({ tool }) => tool);

test("it looks, says what it would delete, asks for both, and offers something else when denied", () => {
  const [look, propose, end] = scenarioFor("Tidy up the reports");
  expect([toolsOf(look), toolsOf(propose)]).toEqual([["read_file"], ["delete_file", "delete_file"]]);
  expect(propose?.say).toMatch(/would delete/);
  expect(end?.denied?.say).toMatch(/instead/);
});

test("it can ask a question, and three things at once", () => {
  expect(scenarioFor("Ask me something")[0]?.ask?.choices).toHaveLength(3);
  expect(toolsOf(scenarioFor("Do three things")[0])).toEqual(["execute_command", "write_file", "delete_file"]);
});

test("every tool that its script calls is there, and every file that it reads or deletes", () => {
  const demo = demoConfig("/data");
  const turns = ["tidy", "three", "ask"].flatMap(scenarioFor);
  for (const { tool, args } of turns.flatMap(({ call }) => call ?? [])) {
    expect([...demo.tools.keys()]).toContain(tool);
    if (tool === "read_file" || tool === "delete_file") expect(Object.keys(DEMO_FILES)).toContain(args.path);
  }
});
