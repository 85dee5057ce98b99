/**
 * Who is calling, and what they may do. The principal comes from the credential and from nothing else.
 *
 * A1  Every token is compared, by hash and in constant time: how long it takes says nothing.
 * A2  No scope implies another.
 */
import { hash, timingSafeEqual } from "node:crypto";
import type { Context, MiddlewareHandler } from "hono";
import { SCOPES, type Scope, type ServerConfig } from "../config/config.ts";
import type { Principal } from "../task/request.ts";

export interface Caller {
  readonly principal: Principal;
  readonly scopes: ReadonlySet<Scope>;
}

export type AppEnv = { Variables: { caller: Caller } };

export const OWNER: Principal = { name: "owner", issuer: "holdpoint", tenant: "default", via: "api" };

/** Finds who a token belongs to. */
export type FindCaller = (token: string) => Caller | undefined;

export function createFindCaller(ownerToken: string, tokens: ServerConfig["auth"]["tokens"]): FindCaller {
  const known = [
    { hash: hashOf(ownerToken), caller: { principal: OWNER, scopes: new Set(SCOPES) } },
    ...tokens.map(({ name, token, scopes, tenant }) => ({
      hash: hashOf(token),
      caller: { principal: { ...OWNER, name, tenant }, scopes: new Set(scopes) },
    })),
  ];
  return (token) => {
    const presented = hashOf(token);
    let caller: Caller | undefined;
    for (const candidate of known) if (timingSafeEqual(candidate.hash, presented)) caller ??= candidate.caller;
    return caller;
  };
}

function hashOf(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** Before routing: without a known token nobody learns what exists. */
export function requireToken(findCaller: FindCaller): MiddlewareHandler<AppEnv> {
  return async (c, next) => {
    const [, token] = /^Bearer +([\x21-\x7e]+)$/i.exec(c.req.header("authorization") ?? "") ?? [];
    const caller = token === undefined ? undefined : findCaller(token);
    if (!caller) {
      const message =
        'A token is needed: "Authorization: Bearer <token>". The owner\'s is in the file "token" of the data folder.';
      c.header("www-authenticate", 'Bearer realm="holdpoint"');
      return c.json({ error: { code: "token-required", message } }, 401);
    }
    c.set("caller", caller);
    await next();
  };
}

export function requireScope(scope: Scope): MiddlewareHandler<AppEnv> {
  return async (c, next) => (c.var.caller.scopes.has(scope) ? next() : scopeMissing(c, scope));
}

function scopeMissing(c: Context<AppEnv>, scope: Scope): Response {
  const message = `The token of ${c.var.caller.principal.name} lacks the scope "${scope}".`;
  return c.json({ error: { code: "scope-missing", message, scope } }, 403);
}
