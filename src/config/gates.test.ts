import { expect, test } from "vitest";
import type { Config } from "./config.ts";
import { formatGates, listGates } from "./gates.ts";
import { parseConfig } from "./load.ts";

function config(text: string): Config {
  const read = () => ({ text: "scenarios: []" });
  const loaded = parseConfig({ file: "h.yaml", path: "/h/h.yaml", text, environment: {}, dataFolder: "/h/data", read });
  if (!loaded.ok) throw new Error(loaded.problems[0]?.text);
  return loaded.config;
}

const TEXT = `llms: { m: { type: scripted, script: s } }
tools:
  run: { type: command, allowed_commands: [ls] }
  write: { type: write_file }
  rm: { type: delete_file }
  safe_rm:
    type: delete_file
    requires_approval: true
  read: { type: read_file }
  ask: { type: ask_user }
  k8s:
    type: mcp
    url: http://h/mcp
    tools: [get_pod, delete_pod]
    require_approval: [delete_pod]
  all: { type: mcp, url: http://h/mcp }
  some: { type: mcp, url: http://h/mcp, tools: [drop], require_approval: [drop] }
  gone: { type: delete_file, enabled: false }
agents:
  free: { llm: m, tools: [run, write, rm, safe_rm, read, ask, k8s, all, some, gone] }
  strict:
    llm: m
    requires_approval: true
    tools: [run, read, safe_rm, k8s]
  untracked: { llm: m, tools: [safe_rm, read], task: { enabled: false } }
  remote: { type: a2a, url: http://h }
`;

test("one row for each agent and tool: gated or not, by which line, and what to look at", () => {
  const rows = listGates(config(TEXT)).map(({ agent, tool, gated, by, risk, warning }) =>
    [agent, tool, gated ? "asks" : "free", by?.line ?? "-", risk, ...(warning ? [warning] : [])].join(" "),
  );
  expect(rows).toEqual([
    "free run free - high runs commands WITHOUT approval",
    "free write free - medium writes files WITHOUT approval",
    "free rm free - high deletes files WITHOUT approval",
    "free safe_rm asks 8 high",
    "free read free - low",
    "free ask free - low",
    "free k8s/get_pod free - medium",
    "free k8s/delete_pod asks 15 medium",
    "free all/* free - medium",
    "free some/drop asks 17 medium",
    "strict run asks 23 high",
    "strict read asks 23 low",
    "strict safe_rm asks 8 high",
    "strict k8s/get_pod asks 23 medium",
    "strict k8s/delete_pod asks 15 medium",
    "untracked safe_rm asks 8 high task tracking is off: every gated call is denied",
    "untracked read free - low",
  ]);
});

test("the table", () => {
  const rows = listGates(config(TEXT)).filter(({ tool }) => /^(rm|safe_rm)$/.test(tool));
  expect(formatGates(rows)).toBe(`AGENT      TOOL     TYPE         GATE  RISK  BY
free       rm       delete_file  free  high  -
free       safe_rm  delete_file  asks  high  h.yaml:8
strict     safe_rm  delete_file  asks  high  h.yaml:8
untracked  safe_rm  delete_file  asks  high  h.yaml:8

warning  free › rm: deletes files WITHOUT approval
warning  untracked › safe_rm: task tracking is off: every gated call is denied`);
  expect(formatGates([])).toBe("No agent has a tool: there is nothing to gate.");
});
