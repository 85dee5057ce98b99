/** `holdpoint dev` and `holdpoint serve`: open the store, start a node and the server, stay up, drain on SIGTERM. */
import { HoldpointError } from "../errors.ts";
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { startNode } from "../runtime/node.ts";
import { startServer } from "../server/server.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { announceServer, createDataFolder } from "./data-folder.ts";
import { play } from "./play.ts";

export interface ServeFlags {
  readonly config?: string;
  readonly host: string;
  readonly port: number;
  readonly data: string;
  readonly open: boolean;
}

/** What takes longer than this to finish is left to the next start, which finds it in the log. */
const DRAIN_MAX_MS = 20_000;

export async function serveCommand(mode: "dev" | "serve", flags: ServeFlags): Promise<void> {
  if (flags.config !== undefined) {
    throw new HoldpointError(
      "usage-invalid",
      `${flags.config}: this version does not read holdpoint.yaml yet. Leave out --config.`,
    );
  }
  const folder = createDataFolder(flags.data);
  const store = SqliteStore.open({ path: folder.database, clock: systemClock, ids: systemIds });
  const onFailure = (key: { id: string }, error: unknown) =>
    process.stderr.write(`task ${key.id}: ${error instanceof Error ? error.message : String(error)}\n`);
  const node = startNode({ store, clock: systemClock, ids: systemIds, agents: new Map(), waker: { onFailure } });
  const server = await startServer({ store, clock: systemClock, host: flags.host, port: flags.port });
  const withdraw = announceServer(folder, server.url);
  const stopping = stopSignal();
  process.stdout.write(`Holdpoint ready on ${server.url}\n`);
  if (mode === "dev") {
    void play(folder, stopping).catch((error: unknown) => {
      process.stderr.write(`The play broke off: ${error instanceof Error ? error.message : String(error)}\n`);
    });
  }

  await aborted(stopping);
  server.drain();
  await Promise.race([Promise.all([server.close(), node.stop()]), systemClock.sleep(DRAIN_MAX_MS)]);
  withdraw();
  await store.close();
  process.exit(0);
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
