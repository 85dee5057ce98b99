/** The agents that a configuration describes, with their models and tools. */
import type { CodeAgentConfig, Config, ModelAgentConfig, ToolConfig } from "../config/config.ts";
import { HoldpointError } from "../errors.ts";
import type { Model } from "../models/model.ts";
import { createModel } from "../models/models.ts";
import type { Clock } from "../ports/clock.ts";
import { systemCommands } from "../ports/commands.ts";
import { systemConfinedFiles } from "../ports/confined-files.ts";
import { importDefault } from "../ports/modules.ts";
import { systemFetch } from "../ports/network.ts";
import type { Agent, Agents } from "../runtime/agent.ts";
import { createCodeAgent } from "../runtime/code-agent.ts";
import { isAgentDefinition } from "../runtime/define-agent.ts";
import { createModelAgent } from "../runtime/model-agent.ts";
import type { Store } from "../store/store.ts";
import { createAskUserTool } from "../tools/ask-user.ts";
import { createCommandTool } from "../tools/command.ts";
import { createFileTool } from "../tools/files.ts";
import { type McpServer, openMcpServer } from "../tools/mcp.ts";
import type { Tool } from "../tools/tool.ts";
import { createToolbox, type Toolbox } from "../tools/toolbox.ts";

export interface AgentParts {
  readonly store: Store;
  readonly clock: Clock;
  /** Configuration, data folder and token: no tool may touch them. */
  readonly protectedPaths: readonly string[];
  readonly warn: (text: string) => void;
}

export interface OpenAgents {
  readonly agents: Agents;
  /** Ends the servers that were started for them. */
  close(): Promise<void>;
}

export async function openAgents(config: Config, parts: AgentParts): Promise<OpenAgents> {
  const models = new Map([...config.llms].map(([name, llm]) => [name, createModelOnce(name, llm, parts.clock)]));
  const servers = new Servers();
  const agents = new Map<string, Agent>();
  for (const agent of config.agents.values()) {
    // The configuration has said so when it was read.
    if (agent.type === "a2a") continue;
    agents.set(agent.name, await openAgent(agent, config, models, servers, parts));
  }
  return { agents, close: () => servers.close() };
}

function createModelOnce(name: string, llm: Parameters<typeof createModel>[1], clock: Clock): Model {
  return createModel(name, llm, { clock, fetch: systemFetch });
}

async function openAgent(
  agent: ModelAgentConfig | CodeAgentConfig,
  config: Config,
  models: ReadonlyMap<string, Model>,
  servers: Servers,
  parts: AgentParts,
): Promise<Agent> {
  const tools = toolsOf(agent, config, servers, parts);
  const { inputTimeoutMs, onTimeout, enabled: tracked, mode, workerPool, checkpoint } = agent.task;
  const { autoResume, resumeTimeoutMs } = checkpoint;
  const { name, description } = agent;
  const shared = { name, description, inputTimeoutMs, onTimeout, tracked, mode, workerPool };
  const policy = { ...shared, recovery: { autoResume, resumeTimeoutMs } };
  if (agent.type === "code") return openCodeAgent(agent, policy, tools, parts);
  const model = models.get(agent.llm);
  if (!model) throw new HoldpointError("config-invalid", `agents.${name}: there is no llm "${agent.llm}"`);
  const { instruction, maxIterations: iterationsMax, streaming } = agent;
  return createModelAgent({ ...policy, tools, model, store: parts.store, instruction, iterationsMax, streaming });
}

async function openCodeAgent(
  { name, module, requiresApproval }: CodeAgentConfig,
  policy: Omit<Agent, "think" | "tools">,
  tools: Toolbox,
  { store, clock }: AgentParts,
): Promise<Agent> {
  const definition = await importDefault(module).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HoldpointError("config-invalid", `agents.${name}: ${module} cannot be loaded: ${why}`, { cause });
  });
  if (!isAgentDefinition(definition)) {
    const text = `agents.${name}: the default export of ${module} must be defineAgent(…)`;
    throw new HoldpointError("config-invalid", text);
  }
  return createCodeAgent(name, definition, { ...policy, store, clock, tools, requiresApproval });
}

function toolsOf(
  agent: ModelAgentConfig | CodeAgentConfig,
  config: Config,
  servers: Servers,
  parts: AgentParts,
): Toolbox {
  const rules = agent.tools.flatMap((name) => config.tools.get(name) ?? []).map((rule) => gatedBy(agent, rule));
  const tools = rules.flatMap((rule) => (rule.type === "mcp" ? [] : [createTool(rule, parts)]));
  const used = rules.flatMap((rule) => (rule.type === "mcp" ? [servers.open(rule, parts.clock)] : []));
  return createToolbox(tools, used, (problems) => {
    for (const problem of problems) parts.warn(problem);
  });
}

/** An agent's own `requires_approval` gates every tool that it has. */
function gatedBy(agent: ModelAgentConfig | CodeAgentConfig, rule: ToolConfig): ToolConfig {
  if (!agent.requiresApproval || rule.requiresApproval) return rule;
  return { ...rule, requiresApproval: true, place: agent.approvalPlace };
}

function createTool(rule: Exclude<ToolConfig, { type: "mcp" }>, { protectedPaths }: AgentParts): Tool {
  switch (rule.type) {
    case "command":
      return createCommandTool(rule, { commands: systemCommands, protectedPaths });
    case "ask_user":
      return createAskUserTool(rule);
    default:
      return createFileTool(rule, { files: systemConfinedFiles, protectedPaths });
  }
}

/** One connection for each server and rule, however many agents use it. */
class Servers {
  readonly #open = new Map<string, McpServer>();

  open(rule: ToolConfig & { type: "mcp" }, clock: Clock): McpServer {
    // The place too: two agents may gate the same server, and a person is shown the line that asks.
    const key = JSON.stringify([rule.name, rule.requiresApproval, rule.place.file, rule.place.line]);
    const server = this.#open.get(key) ?? openMcpServer(rule.name, rule, { clock, fetch: systemFetch });
    this.#open.set(key, server);
    return server;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((server) => server.close()));
  }
}
