/**
 * What keeps web pages and floods out, whoever sends them: names this server goes by, origins it trusts, and how much
 * one principal may ask.
 *
 * A page that rebinds its own name to 127.0.0.1 sends that name as Host; a page that posts here sends its Origin.
 */
import type { Context, MiddlewareHandler } from "hono";
import type { ServerConfig } from "../config/config.ts";
import type { Clock } from "../ports/clock.ts";
import type { AppEnv } from "./auth.ts";

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);
const PREFLIGHT_SECONDS = "600";
const ALLOWED_HEADERS = "authorization, content-type, a2a-version, a2a-extensions, last-event-id";

export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host) || LOOPBACK.has(`[${host}]`) || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** 421 for any other name. */
export function guardHost(boundHost: string, allowedHosts: readonly string[]): MiddlewareHandler<AppEnv> {
  const allowed = new Set([boundHost, `[${boundHost}]`, ...allowedHosts].map((name) => name.toLowerCase()));
  return async (c, next) => {
    const host = hostOf(c);
    const name = host.replace(/:\d+$/, "");
    if (isLoopback(name) || allowed.has(name) || allowed.has(host)) return next();
    const message = "This server does not go by that name. Add it to server.allowed_hosts if it should.";
    return c.json({ error: { code: "host-unknown", message } }, 421);
  };
}

/** 403 for any other origin. Those of the config may also read the answers. */
export function guardOrigin(allowedOrigins: readonly string[]): MiddlewareHandler<AppEnv> {
  const allowed = new Set(allowedOrigins.map((origin) => origin.toLowerCase().replace(/\/$/, "")));
  return async (c, next) => {
    const origin = c.req.header("origin")?.toLowerCase();
    if (origin === undefined || origin === `http://${hostOf(c)}` || origin === `https://${hostOf(c)}`) return next();
    if (!allowed.has(origin)) {
      const message = "This origin may not talk to this server. Add it to server.allowed_origins if it should.";
      return c.json({ error: { code: "origin-unknown", message } }, 403);
    }
    c.header("access-control-allow-origin", origin);
    c.header("vary", "origin");
    const asks = c.req.method === "OPTIONS" && c.req.header("access-control-request-method") !== undefined;
    if (!asks) return next();
    // A preflight carries no token and learns nothing but that its page is trusted.
    c.header("access-control-allow-methods", "GET, POST, DELETE");
    c.header("access-control-allow-headers", ALLOWED_HEADERS);
    c.header("access-control-max-age", PREFLIGHT_SECONDS);
    return c.body(null, 204);
  };
}

function hostOf(c: Context): string {
  return (c.req.header("host") ?? new URL(c.req.url).host).toLowerCase();
}

/** A bucket for each principal: `burst` requests at once, `rate` more each second. */
export function guardRate({ rate, burst }: ServerConfig["limits"], clock: Clock): MiddlewareHandler<AppEnv> {
  const buckets = new Map<string, { left: number; atMs: number }>();
  return async (c, next) => {
    const { tenant, issuer, name } = c.var.caller.principal;
    const key = JSON.stringify([tenant, issuer, name]);
    const nowMs = clock.nowMs();
    const bucket = buckets.get(key) ?? { left: burst, atMs: nowMs };
    const left = Math.min(burst, bucket.left + (Math.max(0, nowMs - bucket.atMs) / 1000) * rate);
    buckets.set(key, { left: Math.max(0, left - 1), atMs: nowMs });
    if (left >= 1) return next();
    c.header("retry-after", "1");
    const message = `More than ${rate} requests a second; wait and send it again.`;
    return c.json({ error: { code: "too-fast", message } }, 429);
  };
}
