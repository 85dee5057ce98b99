/** What the transports of A2A have in common: version, agent, extensions, bodies, and how answers leave. */

import { VersionNotSupportedError } from "@a2a-js/sdk/errors";
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { DIALECTS, SERVED_DIALECTS } from "../dialects/registry.ts";
import type { Json } from "../task/json.ts";
import { parseJson } from "../task/json.ts";
import type { CardParts } from "./a2a-cards.ts";
import { contentTypeWrong, InvalidRequest, invalid, type Profile } from "./a2a-errors.ts";
import type { A2ACall, A2ATasks } from "./a2a-tasks.ts";
import { BODY_BYTES_MAX } from "./api-body.ts";
import type { AppEnv } from "./auth.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import type { Streams } from "./streams.ts";

export type ServedDialect = keyof typeof SERVED_DIALECTS;

/** What the mounts of A2A need. */
export interface A2AParts {
  readonly tasks: A2ATasks;
  readonly streams: Streams;
  readonly profile: Profile;
  /** Whether 0.3 is spoken. */
  readonly legacy: boolean;
  readonly serveDialects: ReadonlyMap<string, ServedDialect>;
  readonly draining: AbortSignal;
  readonly onError: (error: unknown) => void;
  readonly cards: CardParts;
}

export type Version = "1.0" | "0.3";

const VERSION = "a2a-version";
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const NO_AGENT = "there is no such agent; GET /api/agents lists them";

/** In the header, or as clients that cannot set one send it. Absent and empty are 0.3. */
export function readVersion(c: Context, legacy: boolean): Version {
  const query = Object.entries(c.req.query()).find(([name]) => name.toLowerCase() === VERSION)?.[1];
  const asked = (c.req.header(VERSION) || query || "").trim();
  if (/^1\.0(\.\d+)?$/.test(asked)) return "1.0";
  if (legacy && (asked === "" || /^0\.3(\.\d+)?$/.test(asked))) return "0.3";
  const spoken = legacy ? "1.0 and 0.3" : "1.0";
  const given = asked === "" ? "None was asked for, which is 0.3" : `"${asked.slice(0, 20)}" is not spoken here`;
  throw new VersionNotSupportedError({ message: `${given}; ${spoken} is: send "A2A-Version: 1.0".` });
}

export function createCall(c: Context<AppEnv>, { serveDialects, draining, cards }: A2AParts): A2ACall {
  const agent = c.req.param("agent") ?? "";
  if (!cards.agents.has(agent)) throw new InvalidRequest([{ pointer: "", text: NO_AGENT }], METHOD_NOT_FOUND);
  const { principal, scopes } = c.var.caller;
  return {
    agent,
    caller: { scopes, principal: { ...principal, via: "a2a" } },
    headers: forwardedHeaders(c),
    speech: { dialect: SERVED_DIALECTS[serveDialects.get(agent) ?? "input"], extensions: activate(c) },
    signal: AbortSignal.any([c.req.raw.signal, draining]),
  };
}

/** The extensions that the client asked for and that are known, which it is told. */
function activate(c: Context): readonly string[] {
  const asked = (c.req.header("a2a-extensions") ?? c.req.header("x-a2a-extensions") ?? "")
    .split(",")
    .map((uri) => uri.trim());
  const active = DIALECTS.flatMap(({ uri }) => (uri !== undefined && asked.includes(uri) ? [uri] : []));
  if (active.length > 0) c.header("a2a-extensions", active.join(", "));
  return active;
}

/** A client may repeat the tenant of its credential, and name no other. */
export function checkTenant({ caller }: A2ACall, tenant: string | undefined): void {
  if (tenant === undefined || tenant === caller.principal.tenant) return;
  throw invalid("/tenant", "is not the tenant of this credential");
}

export async function readJson(c: Context): Promise<Json> {
  const type = (c.req.header("content-type") ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/json" && type !== "application/a2a+json") {
    throw contentTypeWrong('The body must be JSON: send "content-type: application/json".');
  }
  const parsed = parseJson(await c.req.text(), BODY_BYTES_MAX);
  if (parsed.ok) return parsed.value;
  throw new InvalidRequest([parsed.problem], parsed.problem.pointer === "" ? PARSE_ERROR : INVALID_REQUEST);
}

export function respond(c: Context, body: Json, contentType: string, status: number = 200): Response {
  // The table of errors has only statuses with a body.
  return c.body(JSON.stringify(body), status as ContentfulStatusCode, { "content-type": contentType });
}
