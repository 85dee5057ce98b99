/** The `tools` section: each tool, its rule, and where that rule stands. */
import { resolve } from "node:path";
import { NOTHING_ALLOWED, type ReadCommand, readCommand } from "./commands.ts";
import type { ToolConfig } from "./config.ts";
import { readMcp } from "./mcp.ts";
import { type Entry, readType, Section } from "./section.ts";
import { placeOf, type Report, type Span } from "./source.ts";

/** A tool, and the places that later checks point at. */
export interface ReadTool {
  readonly config: ToolConfig;
  readonly nameSpan: Span;
  /** Of `root` or `working_directory`; of the name where the default counts. */
  readonly folderSpan: Span;
  readonly commands: readonly ReadCommand[];
}

const TOOL_TYPES = ["command", "read_file", "write_file", "delete_file", "mcp", "ask_user"] as const;
const FILE_TYPES = ["read_file", "write_file", "delete_file"] as const;
const MCP = ["mcp"] as const;
const DEFAULT_FOLDER = "./workspace";
const DEFAULT_TIMEOUT_S = 60;
const WITHOUT_APPROVAL = "This tool would run WITHOUT approval.";
const DEFAULT_FOLDER_LOST = `The default folder "${DEFAULT_FOLDER}" would be used.`;

const TOOL_KEYS = {
  type: {},
  enabled: { lost: "The tool would be enabled." },
  requires_approval: { lost: WITHOUT_APPROVAL },
  approval_prompt: { lost: "People would see the default text." },
  risk: { lost: "The default risk of its type would be shown." },
  editable: { lost: "People could change its arguments." },
  idempotent: { lost: "The tool would count as one that must not run twice." },
  on_ambiguous: { lost: "After a crash a person would be asked." },
  timeout: { lost: `It would be stopped after ${DEFAULT_TIMEOUT_S} seconds.` },
  allowed_commands: { only: ["command"], lost: "No command would be allowed." },
  working_directory: { only: ["command"], lost: DEFAULT_FOLDER_LOST },
  root: { only: FILE_TYPES, lost: DEFAULT_FOLDER_LOST },
  url: { only: MCP },
  transport: { only: MCP },
  headers: { only: MCP, lost: "The server would not get these headers." },
  command: { only: MCP },
  args: { only: MCP, lost: "The server would be started without arguments." },
  env: { only: MCP, lost: "The server would be started without these variables." },
  tools: { only: MCP, lost: "All tools of the server would be offered." },
  require_approval: { only: MCP, lost: "Its tools would run WITHOUT approval." },
  allowed_headers: { only: MCP, lost: "No header would be forwarded." },
} as const;

export type ToolSection = Section<keyof typeof TOOL_KEYS>;

export function readTool(entry: Entry, folder: string, report: Report): ReadTool | undefined {
  const { key: name, keySpan } = entry;
  checkName(entry, "tool", report);
  const what = `tool "${name}"`;
  const type = readType(entry, TOOL_TYPES, what, report);
  const shape = { keys: TOOL_KEYS, what, kind: type, mistaken: meansApproval };
  const tool: ToolSection = new Section(entry.value, keySpan, shape, report);
  const rule = readRule(name, type, tool);
  const folderKey = type === "command" ? "working_directory" : "root";
  const path = resolve(folder, tool.text(folderKey) ?? DEFAULT_FOLDER);
  const read = (config: ToolConfig, commands: readonly ReadCommand[] = []): ReadTool => ({
    config,
    commands,
    nameSpan: keySpan,
    folderSpan: tool.has(folderKey) ? tool.valueSpanOf(folderKey) : keySpan,
  });
  switch (type) {
    case undefined:
      return undefined;
    case "command": {
      const items = tool.items("allowed_commands");
      const commands = (items ?? []).flatMap((item) => readCommand(item, report) ?? []);
      // Entries that could not be read are reported on their own.
      const isEmpty = !tool.says("allowed_commands") || items?.length === 0;
      if (isEmpty && rule.enabled) report.warn(keySpan, `tool "${name}" ${NOTHING_ALLOWED}`);
      const allowedCommands = commands.map(({ command, args }) => ({ command, args }));
      return read({ ...rule, type, allowedCommands, workingDirectory: path }, commands);
    }
    case "read_file":
    case "write_file":
    case "delete_file":
      return read({ ...rule, type, root: path });
    case "ask_user":
      return read({ ...rule, type });
    case "mcp": {
      const mcp = readMcp(name, tool);
      return mcp && read({ ...rule, ...mcp, place: mcpPlace(rule, tool) });
    }
  }
}

type Rule = Omit<Extract<ToolConfig, { type: "ask_user" }>, "type">;

function readRule(name: string, type: ToolConfig["type"] | undefined, tool: ToolSection): Rule {
  // A switch that is misspelled or wrong is one mistake, and no reason to complain of an open gate as well.
  const requiresApproval = tool.flag("requires_approval") ?? tool.says("requires_approval");
  // Asking a person and reading a file change nothing, so they may be done again.
  const idempotent = tool.flag("idempotent") ?? (type === "read_file" || type === "ask_user");
  const onAmbiguous = tool.choice("on_ambiguous", ["ask", "fail", "retry"]) ?? "ask";
  if (onAmbiguous === "retry" && !idempotent) {
    tool.report.error(tool.valueSpanOf("on_ambiguous"), '"on_ambiguous: retry" needs "idempotent: true"', {
      consequence: "After a crash the same call could take effect twice.",
    });
  }
  return {
    name,
    enabled: tool.flag("enabled") ?? true,
    requiresApproval,
    place: requiresApproval ? tool.placeOf("requires_approval") : placeOf(tool.home),
    approvalPrompt: tool.text("approval_prompt"),
    risk: tool.choice("risk", ["low", "medium", "high"]) ?? defaultRisk(type),
    editable: tool.flag("editable") ?? true,
    idempotent,
    onAmbiguous,
    timeoutMs: (tool.number("timeout", { min: 0.1, max: 86_400 }) ?? DEFAULT_TIMEOUT_S) * 1_000,
  };
}

function defaultRisk(type: ToolConfig["type"] | undefined): "low" | "medium" | "high" {
  if (type === "command" || type === "delete_file") return "high";
  if (type === "write_file" || type === "mcp") return "medium";
  return "low";
}

function mcpPlace(rule: Rule, tool: ToolSection) {
  return !rule.requiresApproval && tool.has("require_approval") ? tool.placeOf("require_approval") : rule.place;
}

/** The switch as peers and hasty people spell it. */
export function meansApproval(key: string): string | undefined {
  if (/prompt|text|message/i.test(key)) return undefined;
  return /approv|confirm|consent|permission|human|hitl|interrupt/i.test(key) ? "requires_approval" : undefined;
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

/** Names of tools and agents stand in addresses, and models take no others. */
export function checkName({ key, keySpan }: Entry, what: string, report: Report): void {
  if (NAME.test(key)) return;
  report.error(
    keySpan,
    `the name of ${what === "agent" ? "an agent" : "a tool"} takes letters, digits, "_", "-" and ".", at most 64`,
  );
}
