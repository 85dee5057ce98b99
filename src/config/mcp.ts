/** A tool of type mcp: where its server is, which of the server's tools may be used, and which of them ask a person. */
import type { McpConfig } from "./config.ts";
import { nearest } from "./nearest.ts";
import type { Item } from "./section.ts";
import type { ToolSection } from "./tools.ts";
import { readUrl } from "./url.ts";

const TRANSPORTS = ["streamable_http", "sse", "stdio"] as const;

export function readMcp(name: string, tool: ToolSection): McpConfig | undefined {
  const transport = readTransport(name, tool);
  const tools = tool.names("tools");
  const requireApproval = readRequireApproval(tool);
  if (requireApproval && tools) checkListed(requireApproval, tools, tool);
  if (requireApproval?.length && !tool.has("tools")) {
    tool.report.error(
      tool.spanOf("require_approval"),
      '"require_approval" needs the list "tools", which its names are in',
      {
        consequence: "A tool whose name is misspelled would run WITHOUT approval.",
      },
    );
  }
  return (
    transport && {
      type: "mcp",
      transport,
      tools: tools?.map(({ text }) => text),
      requireApproval: requireApproval?.map(({ text }) => text) ?? [],
      allowedHeaders: readHeaderNames(tool),
    }
  );
}

function readTransport(name: string, tool: ToolSection): McpConfig["transport"] | undefined {
  const url = readUrl(tool, "url");
  const command = tool.text("command");
  const headers = tool.secrets("headers") ?? {};
  const args = tool.texts("args")?.map(({ text }) => text) ?? [];
  const env = tool.secrets("env") ?? {};
  const chosen = tool.choice("transport", TRANSPORTS);
  const type = chosen ?? (tool.has("command") && !tool.has("url") ? "stdio" : "streamable_http");
  if (tool.has("url") && tool.has("command")) {
    tool.report.error(
      tool.spanOf("command"),
      `tool "${name}" has both "url" and "command"; a server is one or the other`,
    );
    return undefined;
  }
  if (!tool.has("url") && !tool.has("command")) {
    const missing = chosen === "stdio" ? '"command"' : chosen ? '"url"' : '"url" (http) or "command" (stdio)';
    tool.report.error(tool.home, `tool "${name}" of type mcp needs ${missing}`);
    return undefined;
  }
  if (type === "stdio" && tool.has("url")) {
    tool.report.error(tool.valueSpanOf("transport"), 'transport stdio needs "command", not "url"');
    return undefined;
  }
  if (type !== "stdio" && tool.has("command")) {
    tool.report.error(tool.valueSpanOf("transport"), `transport ${type} needs "url", not "command"`);
    return undefined;
  }
  if (type === "stdio") return command === undefined ? undefined : { type, command, args, env, ...shownArgv(tool) };
  return url === undefined ? undefined : { type, url, headers };
}

/** Variables hold keys more often than not, and the arguments of a server are shown to people and kept in the log. */
function shownArgv(tool: ToolSection) {
  const [command, args] = [tool.written("command"), tool.written("args")];
  const variables = { ...command.variables, ...args.variables };
  return Object.keys(variables).length === 0 ? {} : { shownArgv: [...command.texts, ...args.texts], variables };
}

function readRequireApproval(tool: ToolSection): readonly Item[] | undefined {
  if (!tool.has("require_approval")) return undefined;
  if (tool.isFlag("require_approval")) {
    const text = '"require_approval" is a list of tool names here; to gate all of them write "requires_approval: true"';
    tool.report.error(tool.valueSpanOf("require_approval"), text, {
      consequence: "Its tools would run WITHOUT approval.",
      nearest: "requires_approval",
    });
    return undefined;
  }
  return tool.names("require_approval");
}

/** A misspelled name here would gate nothing. */
function checkListed(required: readonly Item[], tools: readonly Item[], tool: ToolSection): void {
  const known = tools.map(({ text }) => text);
  for (const { text, written, span } of required) {
    if (known.includes(text)) continue;
    const near = nearest(written, known);
    const hint = near === undefined ? "" : `. Did you mean "${near}"?`;
    tool.report.error(span, `"require_approval" names "${written}", which is not in "tools"${hint}`, {
      consequence: "The tool that was meant would run WITHOUT approval.",
      nearest: near,
    });
  }
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function readHeaderNames(tool: ToolSection): readonly string[] {
  return (tool.names("allowed_headers") ?? []).map(({ text, span }) => {
    if (!HEADER_NAME.test(text)) tool.report.error(span, 'an entry of "allowed_headers" must be the name of a header');
    return text.toLowerCase();
  });
}
