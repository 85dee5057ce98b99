/** The HTTP server: what is mounted where, and how it starts and drains. */
import type { AddressInfo } from "node:net";
import { type ServerType, serve } from "@hono/node-server";
import { Hono } from "hono";
import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { TaskStore } from "../store/store.ts";
import { operationsRoutes } from "./operations.ts";

export interface ServerOptions {
  readonly store: Pick<TaskStore, "ping">;
  readonly clock: Clock;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

export interface HoldpointServer {
  readonly url: string;
  /** From here on `/readyz` says no, so that nothing new is sent here. */
  drain(): void;
  /** Takes no new connection and waits for those that are being answered. */
  close(): Promise<void>;
}

export async function startServer({ store, clock, host, port }: ServerOptions): Promise<HoldpointServer> {
  const state = { draining: false };
  const app = new Hono();
  app.route("/", operationsRoutes({ store, clock, isDraining: () => state.draining }));
  app.notFound((c) => c.json({ error: { code: "not-found", message: `There is nothing at ${c.req.path}.` } }, 404));
  app.onError((_error, c) => c.json({ error: { code: "internal", message: "Something went wrong here." } }, 500));

  const server = await listen(app, host, port);
  const address = server.address() as AddressInfo;
  const name = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return {
    url: `http://${name}:${address.port}`,
    drain: () => {
      state.draining = true;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ("closeIdleConnections" in server) server.closeIdleConnections();
      }),
  };
}

function listen(app: Hono, hostname: string, port: number): Promise<ServerType> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch: app.fetch, hostname, port }, () => resolve(server));
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
