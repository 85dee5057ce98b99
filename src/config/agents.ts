/** The `agents` section. */
import { resolve } from "node:path";
import { fileExists } from "../ports/files.ts";
import type { AgentConfig } from "./config.ts";
import { nearest } from "./nearest.ts";
import { type Entry, type Item, readType, Section } from "./section.ts";
import { placeOf, type Report, type Span } from "./source.ts";
import type { StoreUse } from "./stores.ts";
import { readTaskRules } from "./task-rules.ts";
import { checkName, meansApproval } from "./tools.ts";
import { readUrl } from "./url.ts";

/** The names that an agent may refer to. Disabled tools are known, and left out of what it gets. */
export interface KnownNames {
  readonly llms: readonly string[];
  readonly tools: readonly string[];
  readonly disabledTools: ReadonlySet<string>;
  readonly agents: readonly string[];
  readonly stores: readonly string[];
}

export interface ReadAgent {
  readonly config: AgentConfig;
  readonly storeUse: StoreUse | undefined;
  readonly subAgentSpans: ReadonlyMap<string, Span>;
}

const AGENT_TYPES = ["model", "a2a", "code"] as const;
const DIALECTS = [
  "auto",
  "input",
  "hitl",
  "hector-v1",
  "hector-v2",
  "kagent-a",
  "kagent-b",
  "kagent-c",
  "holdpoint",
  "text",
] as const;
const SERVED_DIALECTS = ["input", "hitl", "hector", "kagent"] as const;
const LOCAL = ["model", "code"] as const;
const MODEL = ["model"] as const;
const REMOTE = ["a2a"] as const;
const ITERATIONS_DEFAULT = 50;
const ITERATIONS_MAX = 10_000;

const AGENT_KEYS = {
  type: {},
  description: {},
  llm: { only: MODEL },
  instruction: { only: MODEL, lost: "The agent would work without its instruction." },
  requires_approval: { only: LOCAL, lost: "The tools of this agent would run WITHOUT its approval." },
  tools: { only: LOCAL, lost: "The agent would have no tools." },
  sub_agents: { only: MODEL, lost: "The agent would have no sub-agents." },
  reasoning: { only: MODEL, lost: "The defaults would count." },
  module: { only: ["code"] },
  url: { only: REMOTE },
  dialect: { only: REMOTE, lost: "The dialect would be found by itself." },
  headers: { only: REMOTE, lost: "The agent would not get these headers." },
  serve_dialect: { lost: "Clients would get the standard dialect." },
  session_store: { lost: "Tasks would be lost when the server stops." },
  task: { lost: "The defaults would count." },
} as const;
const REASONING_KEYS = {
  engine: {},
  enable_streaming: { lost: "Text would be streamed." },
  max_iterations: { lost: `The agent would stop after ${ITERATIONS_DEFAULT} model calls.` },
} as const;

type AgentSection = Section<keyof typeof AGENT_KEYS>;

export function readAgent(entry: Entry, known: KnownNames, folder: string, report: Report): ReadAgent | undefined {
  const { key: name, keySpan } = entry;
  checkName(entry, "agent", report);
  const what = `agent "${name}"`;
  const type = readType(entry, AGENT_TYPES, what, report, "model");
  const shape = { keys: AGENT_KEYS, what, kind: type, mistaken: meansApproval };
  const agent: AgentSection = new Section(entry.value, keySpan, shape, report);
  const serveDialect = agent.choice("serve_dialect", SERVED_DIALECTS);
  const store = reference(agent, "session_store", "session store", known.stores);
  const base = {
    name,
    description: agent.text("description") ?? "",
    place: placeOf(keySpan),
    task: readTaskRules(agent, agent.says("session_store")),
    ...(serveDialect && { serveDialect }),
  };
  const subAgents = references(agent, "sub_agents", "agent", known.agents);
  const local = readLocal(agent, known);
  const read = (config: AgentConfig): ReadAgent => ({
    config,
    storeUse: store === undefined ? undefined : { agent: name, store, span: agent.valueSpanOf("session_store") },
    subAgentSpans: new Map(subAgents.map(({ text, span }) => [text, span])),
  });
  switch (type) {
    case undefined:
      return undefined;
    case "model": {
      agent.require("llm");
      const llm = reference(agent, "llm", "llm", known.llms) ?? "";
      const names = subAgents.map(({ text }) => text);
      if (names.length > 0) agent.report.warn(agent.spanOf("sub_agents"), `"sub_agents" ${NOT_YET}`);
      const instruction = agent.text("instruction") ?? "";
      return read({ ...base, ...local, ...readReasoning(agent), type, llm, instruction, subAgents: names });
    }
    case "code":
      return read({ ...base, ...local, type, module: readModule(agent, folder) });
    case "a2a": {
      agent.report.warn(keySpan, `agent "${name}": remote agents ${NOT_YET}`, {
        consequence: "It is left out; the others are started.",
      });
      agent.require("url", ": the address of the remote agent");
      const dialect = agent.choice("dialect", DIALECTS) ?? "auto";
      const headers = agent.secrets("headers") ?? {};
      return read({ ...base, type, url: readUrl(agent, "url") ?? "", dialect, headers });
    }
  }
}

const NOT_YET = "are not started by this version";

function readLocal(agent: AgentSection, known: KnownNames) {
  const requiresApproval = agent.flag("requires_approval") ?? agent.says("requires_approval");
  const tools = references(agent, "tools", "tool", known.tools).map(({ text }) => text);
  return {
    requiresApproval,
    approvalPlace: agent.placeOf("requires_approval"),
    tools: tools.filter((tool) => !known.disabledTools.has(tool)),
  };
}

function readReasoning(agent: AgentSection) {
  const reasoning = agent.section("reasoning", REASONING_KEYS);
  reasoning?.choice("engine", ["chain_of_thought"]);
  const bounds = { min: 1, max: ITERATIONS_MAX, whole: true };
  return {
    maxIterations: reasoning?.number("max_iterations", bounds) ?? ITERATIONS_DEFAULT,
    streaming: reasoning?.flag("enable_streaming") ?? true,
  };
}

function readModule(agent: AgentSection, folder: string): string {
  agent.require("module", ": the path of a JavaScript or TypeScript file");
  const text = agent.text("module");
  if (text === undefined) return "";
  const path = resolve(folder, text);
  if (!fileExists(path)) agent.report.error(agent.valueSpanOf("module"), "there is no such module");
  return path;
}

function reference<K extends string>(
  section: Section<K>,
  key: K,
  what: string,
  known: readonly string[],
): string | undefined {
  const item = section.item(key);
  return item && check(item, what, known, section.report) ? item.text : undefined;
}

function references<K extends string>(
  section: Section<K>,
  key: K,
  what: string,
  known: readonly string[],
): readonly Item[] {
  return (section.names(key) ?? []).filter((item) => check(item, what, known, section.report));
}

function check({ text, written, span }: Item, what: string, known: readonly string[], report: Report): boolean {
  if (known.includes(text)) return true;
  const near = nearest(written, known);
  report.error(
    span,
    `unknown ${what} "${written}"${near === undefined ? listed(what, known) : `. Did you mean "${near}"?`}`,
    {
      nearest: near,
    },
  );
  return false;
}

function listed(what: string, known: readonly string[]): string {
  return known.length === 0 ? `: no ${what} is defined` : `. Defined are: ${known.join(", ")}`;
}
