/** Mistakes that no single entry shows: agents that call each other in a circle, and tools that could open their own gate. */
import { dirname } from "node:path";
import { isInside } from "../ports/inside.ts";
import type { ReadAgent } from "./agents.ts";
import { findEntryDanger } from "./commands.ts";
import type { StoreConfig } from "./config.ts";
import type { Report } from "./source.ts";
import type { ReadTool } from "./tools.ts";

/** Each circle of sub-agents once, where it closes. */
export function checkCycles(agents: ReadonlyMap<string, ReadAgent>, report: Report): void {
  const done = new Set<string>();
  const walk = (name: string, path: readonly string[]): void => {
    for (const [next, span] of agents.get(name)?.subAgentSpans ?? []) {
      if (path.includes(next)) {
        const circle = [...path.slice(path.indexOf(next)), next].join(" → ");
        report.error(span, `agents call each other in a circle: ${circle}`, { consequence: "A task would never end." });
      } else if (!done.has(next)) walk(next, [...path, next]);
    }
    done.add(name);
  };
  for (const name of agents.keys()) if (!done.has(name)) walk(name, [name]);
}

/** What an ungated tool must not be able to touch. */
interface Protected {
  readonly config: string;
  readonly data: string;
  readonly store: StoreConfig | undefined;
  /** What agents and models are made of: code of agents and lines of scripted models, by what they are. */
  readonly sources: ReadonlyMap<string, string>;
}

const INSTEAD = 'Give it "requires_approval: true"';

export function checkDangers(
  tools: ReadonlyMap<string, ReadTool>,
  agents: ReadonlyMap<string, ReadAgent>,
  guarded: Protected,
  report: Report,
): void {
  for (const tool of tools.values()) {
    if (!tool.config.enabled || isGated(tool, agents)) continue;
    for (const command of tool.commands) {
      const danger = findEntryDanger(command);
      if (danger === undefined) continue;
      const instead = `${INSTEAD}, or list the arguments it may have: { command: ${command.written}, args: ["…"] }`;
      report.error(command.span, `"${command.written}" ${danger}, and this tool asks nobody. ${instead}`, {
        consequence: "The agent could do anything with it WITHOUT approval.",
      });
    }
    const held = heldBy(tool, guarded);
    if (held === undefined) continue;
    report.error(
      tool.folderSpan,
      `the folder of tool "${tool.config.name}" holds ${held}, and this tool asks nobody. ${INSTEAD}, or another folder`,
      {
        consequence: "The agent could read or change its own rules WITHOUT approval.",
      },
    );
  }
}

/** By its own rule, or because every agent that has it gates all its tools. */
function isGated({ config }: ReadTool, agents: ReadonlyMap<string, ReadAgent>): boolean {
  if (config.requiresApproval) return true;
  const users = [...agents.values()].flatMap(({ config: agent }) =>
    agent.type !== "a2a" && agent.tools.includes(config.name) ? [agent] : [],
  );
  return users.length > 0 && users.every(({ requiresApproval }) => requiresApproval);
}

function heldBy({ config }: ReadTool, { config: file, data, store, sources }: Protected): string | undefined {
  const folder = folderOf(config);
  if (folder === undefined) return undefined;
  if (isInside(dirname(file), folder)) return "the configuration";
  if (isInside(data, folder)) return "the data folder";
  if (store?.type === "sqlite" && isInside(store.database, folder)) return "the database";
  // Reading them tells no secret; whoever changes them changes what runs.
  if (config.type === "read_file") return undefined;
  return [...sources].find(([, path]) => isInside(path, folder))?.[0];
}

function folderOf(config: ReadTool["config"]): string | undefined {
  if (config.type === "command") return config.workingDirectory;
  return "root" in config ? config.root : undefined;
}
