/** Agent cards: for everybody, without a token; the extended one for whoever has one. */
import { type Context, Hono } from "hono";
import { type CardFacts, projectCard, projectHybridCard } from "../a2a/card.ts";
import { DIALECTS } from "../dialects/registry.ts";
import type { Agents } from "../runtime/agent.ts";
import { sha256 } from "../task/digest.ts";
import type { JsonObject } from "../task/json.ts";
import type { Version } from "./a2a-call.ts";
import type { AppEnv } from "./auth.ts";

export interface CardParts {
  readonly agents: Agents;
  readonly legacy: boolean;
  readonly inputModes: readonly string[];
  /** Of this program. */
  readonly version: string;
  /** A card changes only with the configuration, which is read at the start. */
  readonly startedAtMs: number;
  readonly trustedProxy: boolean;
}

const WELL_KNOWN = "/.well-known/agent-card.json";
const MAX_AGE_SECONDS = 300;

export function cardRoutes(parts: CardParts): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get(WELL_KNOWN, (c) => showCard(c, parts, parts.agents.keys().next().value))
    .get(`/a2a/:agent${WELL_KNOWN}`, (c) => showCard(c, parts, c.req.param("agent")));
}

/** With the agent's tools, which not everybody may know. */
export async function projectExtendedCard(
  c: Context,
  parts: CardParts,
  agent: string,
  version: Version,
): Promise<JsonObject> {
  const facts = factsOf(c, parts, agent);
  const tools = (await parts.agents.get(agent)?.tools.list()) ?? [];
  const extended = { ...facts, tools: tools.map(({ name, gated }) => ({ name, gated })) };
  return version === "1.0" ? projectCard(extended) : projectHybridCard(extended);
}

function showCard(c: Context, parts: CardParts, agent: string | undefined): Response | Promise<Response> {
  if (agent === undefined || !parts.agents.has(agent)) return c.notFound();
  const facts = factsOf(c, parts, agent);
  // Only a client that says what it speaks is spared the fields of the other version.
  const isPure = !parts.legacy || /^1\.0(\.\d+)?$/.test(c.req.header("a2a-version")?.trim() ?? "");
  const body = JSON.stringify(isPure ? projectCard(facts) : projectHybridCard(facts));
  const etag = `"${sha256(body).slice(0, 32)}"`;
  c.header("etag", etag);
  c.header("cache-control", `public, max-age=${MAX_AGE_SECONDS}`);
  c.header("last-modified", new Date(parts.startedAtMs).toUTCString());
  c.header("vary", "a2a-version");
  if (c.req.header("if-none-match") === etag) return c.body(null, 304);
  return c.body(body, 200, { "content-type": "application/json" });
}

function factsOf(c: Context, parts: CardParts, name: string): CardFacts {
  const { agents, legacy, inputModes, version } = parts;
  return {
    name,
    description: agents.get(name)?.description ?? "",
    version,
    url: `${originOf(c, parts)}/a2a/${encodeURIComponent(name)}`,
    legacy,
    inputModes,
    extensions: DIALECTS.flatMap(({ uri }) => (uri === undefined ? [] : [uri])),
  };
}

/** As the client has reached us: its Host has been checked by then. */
function originOf(c: Context, { trustedProxy }: CardParts): string {
  const { protocol, host } = new URL(c.req.url);
  const proxied = trustedProxy ? c.req.header("x-forwarded-proto")?.split(",")[0]?.trim() : undefined;
  const scheme = proxied === "https" || proxied === "http" ? `${proxied}:` : protocol;
  return `${scheme}//${c.req.header("host") ?? host}`;
}
