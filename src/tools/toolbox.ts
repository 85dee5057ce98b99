/** The tools of one agent: those that are always there, and those of servers that come and go. */
import type { McpServer } from "./mcp.ts";
import type { Tool } from "./tool.ts";

export interface Toolbox {
  /** Also while its server is away: a paused task must find what was asked about. */
  get(name: string): Tool | undefined;
  /** What a model may use now. */
  list(): Promise<readonly Tool[]>;
}

/** `onProblems`: what cannot be used now, in words. */
export function createToolbox(
  tools: readonly Tool[],
  servers: readonly McpServer[] = [],
  onProblems: (problems: readonly string[]) => void = () => {},
): Toolbox {
  const fixed = new Map(tools.map((tool) => [tool.name, tool]));
  return {
    get(name) {
      const tool = fixed.get(name);
      if (tool) return tool;
      for (const server of servers) {
        const found = server.tool(name);
        if (found) return found;
      }
      return undefined;
    },
    async list() {
      if (servers.length === 0) return tools;
      const listed = await Promise.all(servers.map((server) => server.list()));
      const problems = listed.flatMap((each) => each.problems);
      if (problems.length > 0) onProblems(problems);
      return [...tools, ...listed.flatMap((each) => each.tools)];
    },
  };
}
