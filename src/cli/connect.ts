/**
 * Whom a command talks to: the server that is named, else the one that runs on the data folder, else an app in this
 * very process. It is the same client each time; only what carries its requests differs.
 */
import { join } from "node:path";
import { type Client, createClient } from "../client/client.ts";
import { fileExists } from "../ports/files.ts";
import { systemIds } from "../ports/ids.ts";
import { systemFetch } from "../ports/network.ts";
import type { AppParts } from "../server/app.ts";
import { isLoopback } from "../server/auth-guards.ts";
import type { Holdpoint } from "../server/compose.ts";
import { findOwnerToken, ownerToken, TOKEN_VARIABLE } from "../server/token.ts";
import { isObject } from "../task/json.ts";
import { createDataFolder, DATA_FOLDER, type DataFolder, dataFolder, findServer } from "./data-folder.ts";
import { Ending, EXIT } from "./exit.ts";
import type { Terminal } from "./terminal.ts";
import { warnOnce } from "./warn-once.ts";

const LOOK_AGAIN_MS = 1000;

export interface ConnectFlags {
  readonly url?: string;
  readonly data: string;
  readonly config?: string;
}

export interface Connection {
  readonly client: Client;
  /** The work is done in this process: whoever ends it stops the work. */
  readonly isLocal: boolean;
  /** Whether a task of this agent may wait for a person in this process, and be lost with it. */
  mayWaitHere(agent: string): Promise<boolean>;
  /** What a follow-up command needs to reach the same place. */
  readonly suffix: string;
  close(): Promise<void>;
}

/** With `mayCreate`, a folder that is not there is made; without, nothing can be in it. */
export async function connect(
  flags: ConnectFlags,
  { env, clock, note }: Terminal,
  mayCreate = false,
): Promise<Connection> {
  const folder = dataFolder(flags.data);
  const named = flags.url ?? env.HOLDPOINT_URL;
  const suffix = flags.url ? ` --url ${flags.url}` : flags.data === DATA_FOLDER ? "" : ` --data ${flags.data}`;
  const url = named || (await findAnswering(folder));
  if (url) {
    const isGiven = Boolean(env[TOKEN_VARIABLE]);
    const token = tokenFor(url, findOwnerToken(folder.path, env), isGiven);
    const source = isGiven ? TOKEN_VARIABLE : join(flags.data, "token");
    const client = createClient({
      url,
      token,
      fetch: async (address, init) => nameToken(await systemFetch(address, init), source),
    });
    return { client, isLocal: false, mayWaitHere: async () => false, suffix, close: async () => undefined };
  }
  if (!mayCreate && !fileExists(folder.path)) {
    const message = `no server runs here and there is no ${flags.data}; start one with "npx holdpoint dev", or name one with --url`;
    throw new Ending(EXIT.unreachable, message);
  }
  createDataFolder(flags.data);
  // Loaded when needed: a command that talks to a server starts without one.
  const [{ createApp }, { openHoldpoint }, { mayWaitHere, settleLost }] = await Promise.all([
    import("../server/app.ts"),
    import("../server/compose.ts"),
    import("./blocking.ts"),
  ]);
  const warn = (text: string) => note(`${text}\n`);
  const openedAtMs = clock.nowMs();
  const warnings = warnOnce({ clock, note });
  const holdpoint = await openHoldpoint({ configFile: flags.config, dataFolder: folder.path, env, warn: warnings });
  await settleLost(holdpoint, openedAtMs, { clock, note });
  const stopping = new AbortController();
  const parts = partsOf(holdpoint, folder, env, warn);
  const app = createApp({ ...parts, clock, host: "localhost", draining: stopping.signal });
  return {
    client: createClient({
      url: "http://localhost",
      token: parts.ownerToken,
      fetch: async (address, init) => app.request(address, init),
    }),
    isLocal: true,
    mayWaitHere: (agent) => mayWaitHere(holdpoint, agent),
    suffix,
    close: async () => {
      stopping.abort();
      await holdpoint.stop();
    },
  };
}

/** What an app needs of an open Holdpoint. */
export function partsOf(
  { runtime, config }: Holdpoint,
  folder: DataFolder,
  env: Terminal["env"],
  warn: (text: string) => void,
): Omit<AppParts, "clock" | "host" | "draining"> {
  return {
    runtime,
    server: config.server,
    ids: systemIds,
    ownerToken: ownerToken(folder.path, env, systemIds),
    serveDialects: new Map(
      [...config.agents.values()].flatMap(({ name, serveDialect }) => (serveDialect ? [[name, serveDialect]] : [])),
    ),
    onError: (error) => warn(error instanceof Error ? (error.stack ?? error.message) : String(error)),
    // Other nodes may share this database.
    ...(config.store?.type === "postgres" ? { lookAgainMs: LOOK_AGAIN_MS } : {}),
  };
}

/**
 * The server that the folder's note names, unless nobody listens there any more: it was killed a moment ago. Then no
 * server runs, and whoever opens the folder is alone in it, or its lock says who is not.
 */
async function findAnswering(folder: DataFolder): Promise<string | undefined> {
  const url = findServer(folder);
  if (url === undefined) return undefined;
  try {
    // Without the token: it is for a server only.
    await (await systemFetch(`${url}/healthz`)).body?.cancel();
    return url;
  } catch (error) {
    const isRefused = error instanceof Error && isObject(error.cause) && error.cause.code === "ECONNREFUSED";
    // Whatever else it is, somebody may be there: the command itself then says what is wrong.
    return isRefused ? undefined : url;
  }
}

/** The server cannot say which token it was given; a person must know where the wrong one comes from. */
function nameToken(response: Response, source: string): Response {
  if (response.status !== 401) return response;
  const message = `the server does not know this token (from ${source})`;
  return Response.json({ error: { code: "token-unknown", message } }, { status: response.status });
}

/** The token of this folder's owner goes to this machine only. */
function tokenFor(url: string, token: string | undefined, isGiven: boolean): string {
  const { hostname, origin } = parseUrl(url);
  if (token !== undefined && (isGiven || isLoopback(hostname))) return token;
  throw new Ending(EXIT.notAllowed, `${origin} needs a token: set ${TOKEN_VARIABLE}`);
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new Ending(EXIT.usage, `${text} is not the address of a server; one looks like http://127.0.0.1:4141`);
}
