/** The reference server with every feature of the protocol, as a process of its own on a loopback port. */
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

export const EVERYTHING = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
export const FILESYSTEM = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js"));

/** It would listen on every address of the machine, and has no setting for that. */
const ON_LOOPBACK = `data:text/javascript,${encodeURIComponent(`
  import net from "node:net";
  const listen = net.Server.prototype.listen;
  net.Server.prototype.listen = function (port, ...rest) {
    return listen.call(this, { port: Number(port), host: "127.0.0.1" }, ...rest.filter((each) => typeof each === "function"));
  };
`)}`;

export interface HttpServerProcess {
  readonly port: number;
  kill(): Promise<void>;
}

export async function startEverything(mode: "streamableHttp" | "sse", at?: number): Promise<HttpServerProcess> {
  const port = at ?? (await freePort());
  const child = spawn(process.execPath, ["--import", ON_LOOPBACK, EVERYTHING, mode], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: "ignore",
  });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  for (let attempt = 0; attempt < 200; attempt++) {
    const isUp = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (isUp) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    port,
    kill: async () => {
      child.kill("SIGKILL");
      await gone;
    },
  };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
