/** A rule for an MCP server, and a call as the gate makes it: prepared, then run from the plan alone. */

import type { JsonObject } from "../../src/task/json.ts";
import type { McpRule } from "../../src/tools/mcp.ts";
import type { Finished, Tool } from "../../src/tools/tool.ts";

export function ruleFor(transport: McpRule["transport"], changes: Partial<McpRule> = {}): McpRule {
  return {
    type: "mcp",
    name: "server",
    enabled: true,
    requiresApproval: false,
    place: { file: "holdpoint.yaml", line: 7 },
    approvalPrompt: undefined,
    risk: "medium",
    editable: true,
    idempotent: false,
    onAmbiguous: "ask",
    timeoutMs: 10_000,
    transport,
    tools: undefined,
    requireApproval: [],
    allowedHeaders: [],
    ...changes,
  };
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Record<string, string>;
  readonly headersLost?: boolean;
}

export async function call(tool: Tool, args: JsonObject, options: CallOptions = {}): Promise<Finished> {
  return run(tool, args, await tool.prepare(args), options);
}

export function run(
  tool: Tool,
  args: JsonObject,
  facts: Awaited<ReturnType<Tool["prepare"]>>,
  { signal = new AbortController().signal, ...forwarded }: CallOptions = {},
): Promise<Finished> {
  return tool.run({ args, facts, idempotencyKey: "key", signal, ...forwarded });
}

export function named(tools: readonly Tool[], name: string): Tool {
  const tool = tools.find((candidate) => candidate.name === name);
  if (!tool) throw new Error(`no tool ${name} among ${tools.map((candidate) => candidate.name).join(", ")}`);
  return tool;
}
