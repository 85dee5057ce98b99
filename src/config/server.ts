/** The `server` section. */
import { SCOPES, type ServerConfig } from "./config.ts";
import { readChoice } from "./scalar.ts";
import { Section } from "./section.ts";
import { readUrl } from "./url.ts";

export const SERVER_KEYS = {
  host: { lost: "The server would listen on 127.0.0.1." },
  port: { lost: "The server would listen on port 4141." },
  grpc_port: { lost: "There would be no gRPC." },
  allowed_hosts: { lost: "Only the server's own address would be answered." },
  allowed_origins: { lost: "No other web page could talk to the server." },
  auth: { lost: "Only the owner's token would be known." },
  answers_without_id: { lost: "Answers without an id would be allowed." },
  a2a: {},
  push: { lost: "No private address would be notified." },
  limits: { lost: "The default limits would count." },
  ag_ui: {},
  trusted_proxy: { lost: "Headers of a proxy would not be trusted." },
} as const;
const AUTH_KEYS = {
  tokens: { lost: "These tokens would not be known." },
  jwt: { lost: "No JWT would be accepted." },
  self_approval: { lost: "People could approve what they asked for themselves." },
} as const;
const TOKEN_KEYS = { name: {}, token: {}, scopes: {}, tenant: { lost: 'The tenant would be "default".' } } as const;
const JWT_KEYS = { issuer: {}, audience: {}, jwks_url: {}, scopes_claim: {}, tenant_claim: {} } as const;
const A2A_KEYS = { profile: {}, legacy: {}, message_ids: {} } as const;
const LIMIT_KEYS = { rate: {}, burst: {} } as const;

const ALLOW_OR_DENY = ["allow", "deny"] as const;
const PORT = { min: 0, max: 65_535, whole: true } as const;
const RATE = { min: 1, max: 1_000_000 } as const;

type ServerSection = Section<keyof typeof SERVER_KEYS>;

/** Also what counts when nothing is said: `server` is then undefined. */
export function readServer(server: ServerSection | undefined): ServerConfig {
  const auth = server?.section("auth", AUTH_KEYS);
  const a2a = server?.section("a2a", A2A_KEYS);
  const limits = server?.section("limits", LIMIT_KEYS);
  return {
    host: server?.text("host"),
    port: server?.number("port", PORT),
    grpcPort: readGrpcPort(server),
    allowedHosts: texts(server, "allowed_hosts"),
    allowedOrigins: readOrigins(server),
    auth: {
      tokens: readTokens(auth),
      jwt: readJwt(auth),
      selfApproval: auth?.choice("self_approval", ALLOW_OR_DENY) ?? "allow",
    },
    answersWithoutId: server?.choice("answers_without_id", ALLOW_OR_DENY) ?? "allow",
    a2a: {
      profile: a2a?.choice("profile", ["1.0.0", "1.0.1"]) ?? "1.0.1",
      legacy: a2a?.flag("legacy") ?? true,
      messageIds: a2a?.choice("message_ids", ["unique", "ignored"]) ?? "unique",
    },
    push: { allow: texts(server?.section("push", { allow: {} }), "allow") },
    limits: { rate: limits?.number("rate", RATE) ?? 1_000, burst: limits?.number("burst", RATE) ?? 2_000 },
    agUi: { tanstack: server?.section("ag_ui", { tanstack: {} })?.flag("tanstack") ?? false },
    trustedProxy: server?.flag("trusted_proxy") ?? false,
  };
}

function texts<K extends string>(section: Section<K> | undefined, key: K): readonly string[] {
  return section?.names(key)?.map(({ text }) => text) ?? [];
}

function readOrigins(server: ServerSection | undefined): readonly string[] {
  return (server?.names("allowed_origins") ?? []).map(({ text, span }) => {
    const isOrigin = URL.canParse(text) && new URL(text).origin === text;
    if (!isOrigin)
      server?.report.error(span, "an origin is scheme, host and port alone, such as http://localhost:3000");
    return text;
  });
}

type AuthSection = Section<keyof typeof AUTH_KEYS>;
type Token = ServerConfig["auth"]["tokens"][number];
/** The principal of the server's own token. */
const OWNER = "owner";

function readTokens(auth: AuthSection | undefined): readonly Token[] {
  if (!auth) return [];
  const tokens: Token[] = [];
  for (const value of auth.items("tokens") ?? []) {
    const section = new Section(value, value.span, { keys: TOKEN_KEYS, what: "a token" }, auth.report);
    const token = readToken(section);
    if (token.name === OWNER) {
      auth.report.error(section.valueSpanOf("name"), `the name "${OWNER}" belongs to the server's own token`);
    }
    if (tokens.some(({ name, tenant }) => name === token.name && tenant === token.tenant)) {
      auth.report.error(section.valueSpanOf("name"), "two tokens have this name", {
        consequence: "Nobody could tell who decided.",
      });
    }
    if (token.token !== "" && tokens.some((other) => other.token === token.token)) {
      auth.report.error(section.spanOf("token"), "two entries have the same token", {
        consequence: "Nobody could tell who decided.",
      });
    }
    tokens.push(token);
  }
  return tokens;
}

function readToken(section: Section<keyof typeof TOKEN_KEYS>): Token {
  section.require("name");
  section.require("token");
  section.require("scopes", `: any of ${SCOPES.join(", ")}`);
  return {
    name: section.text("name") ?? "",
    token: section.secret("token") ?? "",
    scopes: (section.items("scopes") ?? []).flatMap(
      (value) => readChoice(value, { name: "a scope" }, SCOPES, section.report) ?? [],
    ),
    tenant: section.text("tenant") ?? "default",
  };
}

function readGrpcPort(server: ServerSection | undefined): number | undefined {
  if (server?.has("grpc_port")) {
    server.report.warn(server.spanOf("grpc_port"), '"grpc_port" is not read by this version', {
      consequence: "There is no gRPC.",
    });
  }
  return server?.number("grpc_port", PORT);
}

function readJwt(auth: AuthSection | undefined): ServerConfig["auth"]["jwt"] {
  const jwt = auth?.section("jwt", JWT_KEYS);
  if (!auth || !jwt) return undefined;
  auth.report.warn(auth.spanOf("jwt"), '"jwt" is not read by this version', { consequence: "No JWT is accepted." });
  for (const key of ["issuer", "audience", "jwks_url"] as const) jwt.require(key);
  return {
    issuer: jwt.text("issuer") ?? "",
    audience: jwt.text("audience") ?? "",
    jwksUrl: readUrl(jwt, "jwks_url") ?? "",
    scopesClaim: jwt.text("scopes_claim") ?? "scope",
    tenantClaim: jwt.text("tenant_claim") ?? "tenant",
  };
}
