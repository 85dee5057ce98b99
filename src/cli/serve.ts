/** `holdpoint dev` and `holdpoint serve`: open everything, start the server, stay up, drain on SIGTERM. */
import type { AgentConfig } from "../config/config.ts";
import { type GateRow, listGates } from "../config/gates.ts";
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { OWNER } from "../server/auth.ts";
import { type Holdpoint, openHoldpoint } from "../server/compose.ts";
import { startServer } from "../server/server.ts";
import { requestId } from "../task/request.ts";
import { findRequest } from "../task/task.ts";
import { announce, tellRequest } from "./announce.ts";
import { partsOf } from "./connect.ts";
import { announceServer, createDataFolder, DATA_FOLDER } from "./data-folder.ts";
import type { Terminal } from "./terminal.ts";
import { warnOnce } from "./warn-once.ts";
import { COMMAND, table } from "./words.ts";

export interface ServeFlags {
  readonly config?: string;
  /** Absent: what the config says, else loopback and 4141. */
  readonly host?: string;
  readonly port?: number;
  readonly data: string;
  readonly open: boolean;
}

const HOST = "127.0.0.1";
const PORT = 4141;
/** What takes longer than this to finish is left to the next start, which finds it in the log. */
const DRAIN_MAX_MS = 20_000;
const DEMO_AGENT = "assistant";
const DEMO_MESSAGE = "Tidy up the reports";

export async function serveCommand(mode: "dev" | "serve", flags: ServeFlags, terminal: Terminal): Promise<0> {
  const stopping = stopSignal();
  const folder = createDataFolder(flags.data);
  const warn = (text: string) => terminal.note(`${text}\n`);
  const { env } = terminal;
  const warnings = warnOnce(terminal);
  const holdpoint = await openHoldpoint({ configFile: flags.config, dataFolder: folder.path, env, warn: warnings });
  const { server: config } = holdpoint.config;
  const host = flags.host ?? config.host ?? HOST;
  const port = flags.port ?? config.port ?? PORT;
  const server = await startServer({ ...partsOf(holdpoint, folder, env, warn), clock: systemClock, host, port }).catch(
    async (error: unknown) => {
      await holdpoint.stop();
      throw error;
    },
  );
  const withdraw = announceServer(folder, server.url);
  terminal.out(`Holdpoint ready on ${server.url}\n`);
  if (mode === "dev") await present(holdpoint, terminal, flags, server.url);
  else await tellOpen(holdpoint, terminal, flags, ({ task }) => task.checkpoint.autoResumeHitl);

  await aborted(stopping);
  server.drain();
  await Promise.race([Promise.all([server.close(), holdpoint.stop()]), systemClock.sleep(DRAIN_MAX_MS)]);
  withdraw();
  return 0;
}

/** What is here, how to reach it, and what waits already. */
async function present(holdpoint: Holdpoint, terminal: Terminal, flags: ServeFlags, url: string): Promise<void> {
  const { config, isDemo, runtime } = holdpoint;
  const { out } = terminal;
  const suffix = suffixOf(flags);
  const models = [...config.llms].map(([name, { type }]) =>
    type === "scripted" ? `${name} (scripted: no key, no network)` : `${name} (${type})`,
  );
  const gates = listGates(config);
  if (isDemo) out(`\n  No holdpoint.yaml here: this is the built-in demo. "${COMMAND} init" saves it.\n`);
  out(
    `\n${table([
      ["  Models", models.join(", ") || "none"],
      ["  Agents", [...config.agents.keys()].join(", ")],
      ["  Gates", describeGates(gates)],
      ["  Data", flags.data],
      ["  API", `curl -H "Authorization: Bearer $(cat ${flags.data}/token)" ${url}/api/requests`],
      ["  Try", `${COMMAND} run ${config.agents.keys().next().value} "${DEMO_MESSAGE}"${suffix}`],
    ])}\n`,
  );
  announce(runtime, terminal, suffix);
  const open = await tellOpen(holdpoint, terminal, flags, () => true);
  if (!isDemo || open > 0) return;
  const messageId = systemIds.uuid(systemClock.nowMs());
  const message = { messageId, role: "user", parts: [{ text: `${DEMO_MESSAGE}.` }] } as const;
  out(`The demo begins: "${DEMO_MESSAGE}."\n`);
  await runtime.submit({ tenant: OWNER.tenant, agent: DEMO_AGENT, principal: OWNER, message });
}

/** Announces what is open, the oldest first; answers how much there is. It never decides. */
async function tellOpen(
  { config, runtime, store }: Holdpoint,
  terminal: Terminal,
  flags: ServeFlags,
  isWanted: (agent: AgentConfig) => boolean,
): Promise<number> {
  const { items } = await store.listOpenRequests({ tenant: OWNER.tenant });
  for (const { taskId, n, agent } of items) {
    const known = config.agents.get(agent);
    const { task } = await runtime.load({ tenant: OWNER.tenant, id: taskId });
    const record = task && findRequest(task, requestId(taskId, n));
    if (task && record && known && isWanted(known)) tellRequest(terminal, task, record, suffixOf(flags));
  }
  return items.length;
}

function suffixOf({ data }: ServeFlags): string {
  return data === DATA_FOLDER ? "" : ` --data ${data}`;
}

function describeGates(gates: readonly GateRow[]): string {
  const asks = new Set(gates.filter(({ gated }) => gated).map(({ tool }) => tool));
  const free = new Set(gates.filter(({ gated }) => !gated).map(({ tool }) => tool));
  return `asks before ${[...asks].join(", ") || "nothing"}; free: ${[...free].join(", ") || "nothing"}`;
}

function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => controller.abort());
  return controller.signal;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
