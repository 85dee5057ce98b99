/** The HTTP server: where it listens, and how it starts and drains. */
import type { AddressInfo } from "node:net";
import { type ServerType, serve } from "@hono/node-server";
import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import { type AppParts, createApp } from "./app.ts";
import { isLoopback } from "./auth-guards.ts";

export interface ServerOptions extends Omit<AppParts, "draining"> {
  /** 0 takes a free one. */
  readonly port: number;
}

export interface HoldpointServer {
  readonly url: string;
  /** From here on `/readyz` says no, so that nothing new is sent here, and streams end. */
  drain(): void;
  /** Takes no new connection and waits for those that are being answered. */
  close(): Promise<void>;
}

/** Nobody needs longer to say what they want. */
const LIMITS = { maxHeaderSize: 8 * 1024, headersTimeout: 10_000, requestTimeout: 30_000 } as const;
const HEADERS_MAX = 64;
const IDLE_CHECK_MS = 50;

export async function startServer({ port, ...parts }: ServerOptions): Promise<HoldpointServer> {
  const { host, server: config } = parts;
  if (!isLoopback(host) && !config.trustedProxy) {
    throw new HoldpointError(
      "usage-invalid",
      `${host} can be reached from outside, and tokens would travel in the clear. Listen on 127.0.0.1, or put a proxy with TLS before it and set server.trusted_proxy: true.`,
    );
  }
  const draining = new AbortController();
  const app = createApp({ ...parts, draining: draining.signal });
  const server = await listen(app.fetch, host, port);
  const address = server.address() as AddressInfo;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    url: `http://${name}:${address.port}`,
    drain: () => draining.abort(),
    close: () => closeServer(server, parts.clock),
  };
}

/** A connection that has its answer is kept open for more; here there is no more. */
async function closeServer(server: ServerType, clock: Clock): Promise<void> {
  const closed = new AbortController();
  server.close(() => closed.abort());
  while (!closed.signal.aborted) {
    if ("closeIdleConnections" in server) server.closeIdleConnections();
    await clock.sleep(IDLE_CHECK_MS, closed.signal);
  }
}

function listen(answer: Parameters<typeof serve>[0]["fetch"], hostname: string, port: number): Promise<ServerType> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: answer, hostname, port, serverOptions: LIMITS }, () => resolve(server));
    if ("maxHeadersCount" in server) server.maxHeadersCount = HEADERS_MAX;
    server.once("error", (cause: NodeJS.ErrnoException) => reject(toFault(cause, hostname, port)));
  });
}

const WHY: Readonly<Record<string, string>> = {
  EADDRINUSE: "is taken",
  EACCES: "may not be used by this user",
  EADDRNOTAVAIL: "is not on this machine",
  ENOTFOUND: "is not the name of any machine",
};

function toFault(cause: NodeJS.ErrnoException, host: string, port: number): Error {
  const why = WHY[cause.code ?? ""];
  if (why === undefined) return cause;
  const message = `${host}:${port} ${why}. Choose another with --port (0 takes a free one) or --host.`;
  return new HoldpointError("port-taken", message, { cause });
}
