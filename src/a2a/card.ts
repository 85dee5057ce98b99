/** The card of an agent: what it is, where and how it is spoken to, and with which credential. */
import type { JsonObject } from "../task/json.ts";

export interface CardFacts {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  /** Of the mount, without a slash at its end. */
  readonly url: string;
  /** Whether 0.3 is spoken too. */
  readonly legacy: boolean;
  readonly inputModes: readonly string[];
  /** URIs of extensions that a client may ask for. */
  readonly extensions: readonly string[];
  /** Absent: what everybody may know. */
  readonly tools?: readonly { readonly name: string; readonly gated: boolean }[];
}

const BINDINGS = ["JSONRPC", "HTTP+JSON"] as const;
const SCHEME = "bearer";
const ABOUT_TOKEN = "A token of this Holdpoint.";

export function projectCard(facts: CardFacts): JsonObject {
  const { url, legacy } = facts;
  const versions = legacy ? ["1.0", "0.3"] : ["1.0"];
  return {
    ...shared(facts),
    supportedInterfaces: versions.flatMap((protocolVersion) =>
      BINDINGS.map((protocolBinding) => ({ url, protocolBinding, protocolVersion })),
    ),
    capabilities: { ...capabilities(facts), extendedAgentCard: true },
    securitySchemes: { [SCHEME]: { httpAuthSecurityScheme: { scheme: "Bearer", description: ABOUT_TOKEN } } },
    securityRequirements: [{ schemes: { [SCHEME]: { list: [] } } }],
  };
}

/** For clients that do not say which version they speak: 0.3's fields, with those of 1.0 beside them. */
export function projectHybridCard(facts: CardFacts): JsonObject {
  const { url } = facts;
  const { supportedInterfaces = [], securityRequirements = [] } = projectCard(facts);
  const http = { scheme: "Bearer", description: ABOUT_TOKEN };
  return {
    ...shared(facts),
    protocolVersion: "0.3.0",
    url,
    preferredTransport: BINDINGS[0],
    additionalInterfaces: BINDINGS.map((transport) => ({ url, transport })),
    supportsAuthenticatedExtendedCard: true,
    capabilities: { ...capabilities(facts), extendedAgentCard: true },
    // Each version looks for its own fields in the same object.
    securitySchemes: { [SCHEME]: { type: "http", ...http, httpAuthSecurityScheme: http } },
    security: [{ [SCHEME]: [] }],
    supportedInterfaces,
    securityRequirements,
  };
}

function shared({ name, description, version, inputModes, tools = [] }: CardFacts): JsonObject {
  return {
    name,
    description: description || name,
    version,
    defaultInputModes: inputModes,
    defaultOutputModes: ["text/plain", "application/json"],
    skills: [
      { id: name, name, description: description || name, tags: ["agent"] },
      ...tools.map(({ name: tool, gated }) => ({
        id: `${name}.${tool}`,
        name: tool,
        description: gated ? `${tool}, which a person must approve` : tool,
        tags: ["tool", ...(gated ? ["gated"] : [])],
      })),
    ],
  };
}

function capabilities({ extensions }: CardFacts): JsonObject {
  return {
    streaming: true,
    pushNotifications: false,
    extensions: extensions.map((uri) => ({
      uri,
      description: "Requests and decisions of people, in metadata.",
      required: false,
    })),
  };
}
