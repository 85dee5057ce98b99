/** Everything that belongs to one running Holdpoint: configuration, store, agents, and a node that works. */
import { dirname, join, resolve } from "node:path";
import type { Config } from "../config/config.ts";
import { DEMO_FILES, demoConfig } from "../config/demo.ts";
import { loadConfig } from "../config/load.ts";
import { formatProblem } from "../config/problem.ts";
import { HoldpointError } from "../errors.ts";
import { type Clock, systemClock } from "../ports/clock.ts";
import { fileExists, makePrivateFolder, writePrivateFile } from "../ports/files.ts";
import { type Ids, systemIds } from "../ports/ids.ts";
import type { Agents } from "../runtime/agent.ts";
import { type Hints, startNode } from "../runtime/node.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { SqliteStore } from "../store/sqlite.ts";
import type { Store } from "../store/store.ts";
import { openAgents } from "./agents.ts";

/** Found in the working directory when no other is named. */
export const CONFIG_FILE = "holdpoint.yaml";
/** Beside those of the agents' pools: for tasks whose agent is gone. */
const SPARE_WORKERS = 16;
/** As many as may queue for a pool; they hold a worker of the waker, not one of the pool. */
const QUEUED_FOR_EACH = 64;

export interface HoldpointOptions {
  /** Undefined: `holdpoint.yaml` in the working directory, else the built-in demo. */
  readonly configFile?: string | undefined;
  readonly dataFolder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What happens and is nobody's answer: a failed advance, a server that is away. */
  readonly warn?: (text: string) => void;
  readonly clock?: Clock;
  readonly ids?: Ids;
}

export interface Holdpoint {
  readonly config: Config;
  readonly isDemo: boolean;
  readonly store: Store;
  readonly agents: Agents;
  readonly runtime: Runtime;
  /** Finishes what is under way and closes the store. */
  stop(): Promise<void>;
}

export async function openHoldpoint(options: HoldpointOptions): Promise<Holdpoint> {
  const { dataFolder, warn = () => {}, clock = systemClock, ids = systemIds } = options;
  const config = readConfig(options, warn);
  const isDemo = config.file === undefined;
  makePrivateFolder(dataFolder);
  makeWorkspaces(config, isDemo);
  const { store, hints } = await openStore(config, dataFolder, clock, ids);
  try {
    const { agents, close } = await openAgents(config, {
      store,
      clock,
      protectedPaths: protectedPaths(config, dataFolder),
      warn,
    });
    const pools = [...agents.values()].reduce((sum, { workerPool }) => sum + workerPool + QUEUED_FOR_EACH, 0);
    const concurrency = pools + SPARE_WORKERS;
    const onFailure = (key: { readonly id: string }, error: unknown) =>
      warn(`task ${key.id}: ${error instanceof Error ? error.message : String(error)}`);
    const waker = { concurrency, onFailure };
    const node = startNode({ store, clock, ids, agents, waker, ...(hints ? { hints } : {}) });
    return {
      config,
      isDemo,
      store,
      agents,
      runtime: node.runtime,
      async stop() {
        await node.stop();
        await close();
        await store.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

function readConfig({ configFile, dataFolder, env }: HoldpointOptions, warn: (text: string) => void): Config {
  const path = configFile ?? (fileExists(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (path === undefined) return demoConfig(dataFolder);
  const loaded = loadConfig(path, env, dataFolder);
  const told = (loaded.ok ? loaded.warnings : loaded.problems).map((problem) =>
    formatProblem(problem, loaded.sources.get(problem.file)),
  );
  if (!loaded.ok) throw new HoldpointError("config-invalid", told.join("\n\n"));
  for (const text of told) warn(text);
  return loaded.config;
}

/** The folders that tools work in are made; the demo's has something to lose. */
function makeWorkspaces(config: Config, isDemo: boolean): void {
  for (const tool of config.tools.values()) {
    if ("root" in tool) makePrivateFolder(tool.root);
    if ("workingDirectory" in tool) makePrivateFolder(tool.workingDirectory);
    if (!isDemo || tool.type !== "delete_file") continue;
    for (const [name, content] of Object.entries(DEMO_FILES)) {
      const file = join(tool.root, name);
      makePrivateFolder(dirname(file));
      if (!fileExists(file)) writePrivateFile(file, content);
    }
  }
}

/** What no tool may touch. The demo's workspace stands in the data folder, so there it is the files. */
function protectedPaths({ file, llms, agents, store }: Config, dataFolder: string): string[] {
  const data = resolve(dataFolder);
  const database = databaseOf(store, dataFolder);
  const own = file === undefined ? [join(data, "token"), join(data, "server.json")] : [data, file];
  const scripts = [...llms.values()].flatMap((llm) => (llm.type === "scripted" ? (llm.file ?? []) : []));
  const modules = [...agents.values()].flatMap((agent) => (agent.type === "code" ? agent.module : []));
  return [...own, ...scripts, ...modules, ...BESIDE_DATABASE.map((ending) => database + ending)];
}

/** A SQLite database is these files together. */
const BESIDE_DATABASE = ["", "-wal", "-shm", "-journal", ".lock"];

function databaseOf(store: Config["store"], dataFolder: string): string {
  return store?.type === "sqlite" ? store.database : join(resolve(dataFolder), "holdpoint.db");
}

async function openStore(
  { store }: Config,
  dataFolder: string,
  clock: Clock,
  ids: Ids,
): Promise<{ readonly store: Store; readonly hints?: Hints }> {
  if (store?.type === "postgres") {
    // Loaded when needed: a node on SQLite does not carry the client of the other database.
    const [{ PostgresStore }, { PostgresHints }] = await Promise.all([
      import("../store/postgres.ts"),
      import("../store/postgres-hints.ts"),
    ]);
    return {
      store: await PostgresStore.open({ url: store.url, ids }),
      hints: new PostgresHints({ url: store.url, clock }),
    };
  }
  return { store: SqliteStore.open({ path: databaseOf(store, dataFolder), clock, ids }) };
}
