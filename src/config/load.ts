/** Reads `holdpoint.yaml`: a whole, valid configuration, or every problem in it at once. */
import { dirname, resolve } from "node:path";
import { type KnownNames, type ReadAgent, readAgent } from "./agents.ts";
import type { Config, LlmConfig } from "./config.ts";
import { checkCycles, checkDangers } from "./dangers.ts";
import { type Folder, readLlm } from "./llms.ts";
import type { Problem } from "./problem.ts";
import { type Entry, Section } from "./section.ts";
import { readServer, SERVER_KEYS } from "./server.ts";
import { parseSource, type ReadText, Report, tryReadText, type Value } from "./source.ts";
import { chooseStore, readStore } from "./stores.ts";
import { type ReadTool, readTool } from "./tools.ts";
import type { Environment } from "./variables.ts";

/** `sources`: the text of each file that a problem may name, for `formatProblem`. */
export type Loaded =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Problem[]; readonly sources: Sources }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly sources: Sources };
export type Sources = ReadonlyMap<string, string>;

/** `dataFolder` is never read: tools that run unasked are kept away from it. */
export function loadConfig(path: string, environment: Environment, dataFolder: string): Loaded {
  const read = tryReadText(path);
  if ("text" in read)
    return parseConfig({ file: path, path, text: read.text, environment, dataFolder, read: tryReadText });
  const report = new Report();
  report.fileError(path, read.why, "Name another with --config, or let `holdpoint init` write one.");
  return { ok: false, problems: report.list("error"), sources: report.sources };
}

interface ConfigText {
  /** For people. */
  readonly file: string;
  /** Paths in it begin at the folder of this one. */
  readonly path: string;
  readonly text: string;
  readonly environment: Environment;
  readonly dataFolder: string;
  readonly read: (path: string) => ReadText;
}

export function parseConfig(given: ConfigText): Loaded {
  const report = new Report();
  const root = parseSource(given.file, given.text, given.environment, report);
  const config = root && readRoot(root, given, report);
  const problems = report.list("error");
  const { sources } = report;
  if (!config || problems.length > 0) return { ok: false, problems, sources };
  return { ok: true, config, warnings: report.list("warning"), sources };
}

const ROOT_KEYS = {
  llms: {},
  tools: {},
  agents: {},
  session_stores: { lost: "Tasks would be kept in the data folder." },
  server: { lost: "The defaults would count." },
} as const;

function readRoot(value: Value, { file: shown, path, dataFolder, read }: ConfigText, report: Report): Config {
  const file = resolve(path);
  const folder: Folder = { path: dirname(file), shown: dirname(shown), read };
  const root = new Section(
    value,
    { ...value.span, end: value.span.start },
    { keys: ROOT_KEYS, what: "a configuration" },
    report,
  );
  root.require("agents", ": nothing could run");

  const llmEntries = entriesOf(root, "llms");
  const toolEntries = entriesOf(root, "tools");
  const agentEntries = entriesOf(root, "agents");
  const storeEntries = entriesOf(root, "session_stores");
  if (root.has("agents") && agentEntries.length === 0) {
    report.error(root.spanOf("agents"), '"agents" is empty: nothing could run');
  }

  const llms = readEach(llmEntries, (entry) => readLlm(entry, folder, report));
  const tools = readEach(toolEntries, (entry) => readTool(entry, folder.path, report));
  const stores = readEach(storeEntries, (entry) => readStore(entry, folder.path, report));
  const known: KnownNames = {
    llms: namesOf(llmEntries),
    tools: namesOf(toolEntries),
    disabledTools: new Set([...tools.values()].filter(isDisabled).map(({ config }) => config.name)),
    agents: namesOf(agentEntries),
    stores: namesOf(storeEntries),
  };
  const agents = readEach(agentEntries, (entry) => readAgent(entry, known, folder.path, report));
  const server = readServer(root.section("server", SERVER_KEYS));
  const store = chooseStore(
    [...agents.values()].flatMap(({ storeUse }) => storeUse ?? []),
    stores,
    report,
  );

  checkCycles(agents, report);
  const sources = sourcesOf(llms, agents);
  checkDangers(tools, agents, { config: file, data: resolve(dataFolder), store, sources }, report);
  return {
    file,
    llms,
    tools: new Map([...tools].filter(([, tool]) => !isDisabled(tool)).map(([name, { config }]) => [name, config])),
    agents: new Map([...agents].map(([name, { config }]) => [name, config])),
    store,
    server,
  };
}

/** The files that models and agents are read from, each with what it is. */
function sourcesOf(llms: ReadonlyMap<string, LlmConfig>, agents: ReadonlyMap<string, ReadAgent>): Map<string, string> {
  const sources = new Map<string, string>();
  for (const [name, llm] of llms) {
    if (llm.type === "scripted" && llm.file !== undefined) sources.set(`the script of llm "${name}"`, llm.file);
  }
  for (const [name, { config }] of agents) {
    if (config.type === "code") sources.set(`the module of agent "${name}"`, config.module);
  }
  return sources;
}

const ENTRIES_MAX = 1_000;

function entriesOf(root: Section<keyof typeof ROOT_KEYS>, key: keyof typeof ROOT_KEYS): readonly Entry[] {
  const entries = root.entries(key) ?? [];
  if (entries.length <= ENTRIES_MAX) return entries;
  root.report.error(root.spanOf(key), `"${key}" has ${entries.length} entries; at most ${ENTRIES_MAX} are taken`);
  return entries.slice(0, ENTRIES_MAX);
}

function isDisabled({ config }: ReadTool): boolean {
  return !config.enabled;
}

function namesOf(entries: readonly Entry[]): readonly string[] {
  return entries.map(({ key }) => key);
}

/** What could not be read is left out; its name stays known, so that nobody who uses it is blamed. */
function readEach<T>(entries: readonly Entry[], read: (entry: Entry) => T | undefined): Map<string, T> {
  const found = new Map<string, T>();
  for (const entry of entries) {
    const value = read(entry);
    if (value !== undefined) found.set(entry.key, value);
  }
  return found;
}
