/** Every gate of a configuration at a glance: which agent may use which tool, and who is asked first. */
import type { AgentConfig, Config, Place, ToolConfig } from "./config.ts";

export interface GateRow {
  readonly agent: string;
  /** `server/tool` for mcp, `server/*` where the server's list is not known. */
  readonly tool: string;
  readonly type: ToolConfig["type"];
  readonly gated: boolean;
  /** The line that gates it. */
  readonly by: Place | undefined;
  readonly risk: ToolConfig["risk"];
  readonly warning?: string;
}

export function listGates(config: Config): readonly GateRow[] {
  return [...config.agents.values()].flatMap((agent) => {
    if (agent.type === "a2a") return [];
    return agent.tools.flatMap((name) => {
      const tool = config.tools.get(name);
      return tool ? rowsOf(agent, tool) : [];
    });
  });
}

type LocalAgent = Exclude<AgentConfig, { type: "a2a" }>;

function rowsOf(agent: LocalAgent, tool: ToolConfig): readonly GateRow[] {
  if (tool.type !== "mcp") return [rowOf(agent, tool, tool.name, tool.requiresApproval)];
  // Without a list the server's tools are known only once it is asked, but those that a person named are.
  const names = tool.tools ?? [...tool.requireApproval, "*"];
  return names.map((name) => {
    const gated = tool.requiresApproval || tool.requireApproval.includes(name);
    return rowOf(agent, tool, `${tool.name}/${name}`, gated);
  });
}

function rowOf(agent: LocalAgent, tool: ToolConfig, name: string, byTool: boolean): GateRow {
  const gated = byTool || agent.requiresApproval;
  const warning = warningOf(agent, tool, gated);
  return {
    agent: agent.name,
    tool: name,
    type: tool.type,
    gated,
    by: byTool ? tool.place : agent.requiresApproval ? agent.approvalPlace : undefined,
    risk: tool.risk,
    ...(warning !== undefined && { warning }),
  };
}

const UNGATED: Readonly<Partial<Record<ToolConfig["type"], string>>> = {
  command: "runs commands WITHOUT approval",
  write_file: "writes files WITHOUT approval",
  delete_file: "deletes files WITHOUT approval",
};

function warningOf(agent: LocalAgent, { type }: ToolConfig, gated: boolean): string | undefined {
  if (!gated) return UNGATED[type];
  return agent.task.enabled ? undefined : "task tracking is off: every gated call is denied";
}

const HEAD = ["AGENT", "TOOL", "TYPE", "GATE", "RISK", "BY"] as const;

/** A table for a terminal; the warnings stand below it. */
export function formatGates(rows: readonly GateRow[]): string {
  if (rows.length === 0) return "No agent has a tool: there is nothing to gate.";
  const cells = rows.map(({ agent, tool, type, gated, risk, by }) => [
    agent,
    tool,
    type,
    gated ? "asks" : "free",
    risk,
    by ? `${by.file}:${by.line}` : "-",
  ]);
  const widths = HEAD.map((head, i) => Math.max(head.length, ...cells.map((row) => row[i]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd();
  const warnings = rows.flatMap(({ agent, tool, warning }) =>
    warning ? [`warning  ${agent} › ${tool}: ${warning}`] : [],
  );
  return [line(HEAD), ...cells.map(line), ...(warnings.length > 0 ? ["", ...warnings] : [])].join("\n");
}
