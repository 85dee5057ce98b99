/**
 * The routes of the server, and what stands before them: name, origin, token, rate, size. Authentication comes before
 * routing, so without a token nobody learns what exists.
 */
import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import type { ServerConfig } from "../config/config.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { Follower } from "../runtime/follower.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { A2AParts, ServedDialect } from "./a2a-call.ts";
import { type CardParts, cardRoutes } from "./a2a-cards.ts";
import { restRoutes } from "./a2a-rest.ts";
import { rpcRoutes } from "./a2a-rpc.ts";
import { A2ATasks } from "./a2a-tasks.ts";
import { BODY_BYTES_MAX } from "./api-body.ts";
import { faulted } from "./api-refusals.ts";
import { requestRoutes } from "./api-requests.ts";
import { taskRoutes } from "./api-tasks.ts";
import { type AppEnv, createFindCaller, requireToken } from "./auth.ts";
import { guardHost, guardOrigin, guardRate } from "./auth-guards.ts";
import { operationsRoutes } from "./operations.ts";
import { Streams } from "./streams.ts";
import { v1Routes } from "./v1-routes.ts";

const VERSION = "0.1.0";
const INPUT_MODES = ["text/plain", "application/json"] as const;

export interface AppParts {
  readonly runtime: Runtime;
  readonly server: ServerConfig;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly ownerToken: string;
  /** The address it listens on: one of the names it goes by. */
  readonly host: string;
  /** Aborts when the server is about to stop: streams end and `/readyz` says no. */
  readonly draining: AbortSignal;
  /** How often a stream looks for what other nodes have appended; absent: there are none. */
  readonly lookAgainMs?: number;
  /** `agents.*.serve_dialect`, by agent. */
  readonly serveDialects?: ReadonlyMap<string, ServedDialect>;
  /** Media types of files that agents take; text and data always are. */
  readonly inputModes?: readonly string[];
  /** Told of what went wrong here and is told to nobody outside. */
  readonly onError?: (error: unknown) => void;
}

/** What the routes under `/api` need. */
export interface ApiParts {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly streams: Streams;
  readonly follower: Follower;
  readonly selfApproval: ServerConfig["auth"]["selfApproval"];
  readonly lookAgainMs: number;
}

export function createApp(parts: AppParts): Hono<AppEnv> {
  const { runtime, server, clock, ids, ownerToken, host, draining, lookAgainMs = Number.MAX_SAFE_INTEGER } = parts;
  const streams = new Streams(clock, draining);
  const inputModes = parts.inputModes ?? INPUT_MODES;
  const follower = new Follower({ runtime, clock, ...(parts.lookAgainMs === undefined ? {} : { lookAgainMs }) });
  const { selfApproval } = server.auth;
  const api: ApiParts = { runtime, clock, ids, streams, follower, selfApproval, lookAgainMs };
  const cards: CardParts = {
    agents: runtime.agents,
    legacy: server.a2a.legacy,
    inputModes,
    version: VERSION,
    startedAtMs: clock.nowMs(),
    trustedProxy: server.trustedProxy,
  };
  const a2a: A2AParts = {
    tasks: new A2ATasks({ runtime, clock, ids, server, inputModes, follower }),
    streams,
    profile: server.a2a.profile,
    legacy: server.a2a.legacy,
    serveDialects: parts.serveDialects ?? new Map(),
    draining,
    onError: parts.onError ?? (() => {}),
    cards,
  };
  const app = new Hono<AppEnv>();
  app.use(async (c, next) => {
    await next();
    c.header("x-content-type-options", "nosniff");
    if (!c.res.headers.has("cache-control")) c.header("cache-control", "no-store");
  });
  app.route("/", operationsRoutes({ store: runtime.store, clock, isDraining: () => draining.aborted }));
  app.use(guardHost(host, server.allowedHosts));
  app.use(guardOrigin(server.allowedOrigins));
  app.route("/", cardRoutes(cards));
  app.use(requireToken(createFindCaller(ownerToken, server.auth.tokens)));
  app.use(guardRate(server.limits, clock));
  app.use(
    bodyLimit({
      maxSize: BODY_BYTES_MAX,
      onError: (c) => {
        const message = `The body is larger than ${BODY_BYTES_MAX} bytes.`;
        return c.json({ error: { code: "body-too-large", message } }, 413);
      },
    }),
  );
  app.route("/api", requestRoutes(api));
  app.route("/api", taskRoutes(api));
  app.route("/", rpcRoutes(a2a));
  app.route("/", restRoutes(a2a));
  app.route("/v1", v1Routes({ ...a2a, messages: { runtime, clock, ids, server, inputModes } }));
  app.notFound((c) => c.json({ error: { code: "not-found", message: "There is nothing at this address." } }, 404));
  app.onError((error, c) => {
    const response = faulted(c, error);
    if (response.status === 500) parts.onError?.(error);
    return response;
  });
  return app;
}
