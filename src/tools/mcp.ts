/**
 * The tools of an MCP server, behind the gate. The operator's rule alone says what asks a person: what the server says
 * about its tools (annotations) loosens nothing. A tool is pinned to its name, description and schema; when one of
 * them changes, what was approved does not fit any more and is asked again.
 */

import type { ToolConfig } from "../config/config.ts";
import { HoldpointError } from "../errors.ts";
import { type Clock, systemClock } from "../ports/clock.ts";
import { type Fetch, systemFetch } from "../ports/network.ts";
import { sha256 } from "../task/digest.ts";
import { canonicalJson, findJsonProblem, isObject, type JsonObject } from "../task/json.ts";
import type { ToolFacts } from "../task/request.ts";
import { pickHeaders } from "./mcp-http.ts";
import { createMcpLink, type Definition, type McpLink } from "./mcp-link.ts";
import { textOf } from "./mcp-result.ts";
import { createRedaction, redactJson, type Secrets, secretsOf } from "./mcp-secrets.ts";
import { renderPrompt } from "./prompt.ts";
import { createArgumentCheck } from "./schema.ts";
import { CallRefused, type Finished, type Tool, type Work } from "./tool.ts";

export type McpRule = Extract<ToolConfig, { readonly type: "mcp" }>;

export interface McpParts {
  readonly clock?: Clock;
  readonly fetch?: Fetch;
}

export interface McpServer {
  readonly name: string;
  /** The tools that may be used now, and in words what is missing or refused. Never throws: the agent goes on without. */
  list(): Promise<{ readonly tools: readonly Tool[]; readonly problems: readonly string[] }>;
  /**
   * A tool by its full name (`server/tool`), without asking the server: what a paused task needs after a restart.
   * Undefined when the rule does not name it.
   */
  tool(fullName: string): Tool | undefined;
  close(): Promise<void>;
}

/** Connects to nothing yet. */
export function openMcpServer(name: string, rule: McpRule, parts: McpParts = {}): McpServer {
  const where = describeTransport(name, rule.transport);
  const link = createMcpLink(rule.transport, {
    clock: parts.clock ?? systemClock,
    network: parts.fetch ?? systemFetch,
  });
  const known = new Map<string, Definition>();
  const secrets = secretsOf(rule.transport);
  const redact = createRedaction(secrets);
  const mayUse = (tool: string) => rule.tools?.includes(tool) ?? true;
  const create = (tool: string) => createMcpTool({ server: name, tool, rule, where, link, known, secrets });

  return {
    name,
    async list() {
      try {
        const { tools, refused } = await link.listing();
        const problems = [...refused].filter(([tool]) => mayUse(tool)).map(([tool, why]) => `${name}/${tool}: ${why}`);
        const usable: Tool[] = [];
        for (const definition of tools.values()) {
          if (!mayUse(definition.name)) continue;
          const problem = findSchemaProblem(definition);
          if (problem) problems.push(`${name}/${definition.name}: ${problem}`);
          if (problem) continue;
          known.set(definition.name, definition);
          usable.push(create(definition.name));
        }
        for (const tool of new Set([...(rule.tools ?? []), ...rule.requireApproval])) {
          if (!tools.has(tool) && !refused.has(tool)) problems.push(`${name}/${tool}: the server has no such tool`);
        }
        return { tools: usable, problems: problems.map(redact) };
      } catch (error) {
        return { tools: [], problems: [redact(`${name}: the server cannot be used now: ${textOf(error)}`)] };
      }
    },
    tool(fullName) {
      const tool = fullName.startsWith(`${name}/`) ? fullName.slice(name.length + 1) : "";
      return tool !== "" && mayUse(tool) ? create(tool) : undefined;
    },
    close: () => link.close(),
  };
}

interface ToolParts {
  readonly server: string;
  readonly tool: string;
  readonly rule: McpRule;
  readonly where: Where;
  readonly link: McpLink;
  readonly known: ReadonlyMap<string, Definition>;
  readonly secrets: Secrets;
}

function createMcpTool({ server, tool, rule, where, link, known, secrets }: ToolParts): Tool {
  const name = `${server}/${tool}`;
  const gated = rule.requiresApproval || rule.requireApproval.includes(tool);
  const definition = known.get(tool);
  const redact = createRedaction(secrets);
  const { risk, editable, idempotent, onAmbiguous, timeoutMs, approvalPrompt = null, allowedHeaders } = rule;
  const policy = { gated, risk, editable, idempotent, onAmbiguous, timeoutMs, approvalPrompt, allowedHeaders };
  const policyVersion = sha256(canonicalJson(policy));
  const planFor = (args: JsonObject): JsonObject => ({ server, tool, ...where.plan, arguments: args });

  /** The tool as it is now. */
  async function look(): Promise<Definition> {
    const { tools, refused } = await link.listing().catch((error: unknown) => {
      throw unavailable(`The server "${server}" cannot be used now: ${textOf(error)}`);
    });
    const found = tools.get(tool);
    if (found) return found;
    const why = refused.get(tool) ?? "the server has no such tool (any more)";
    throw unavailable(`"${name}" cannot be used: ${why}`);
  }

  function unavailable(text: string): CallRefused {
    return new CallRefused("tool-unavailable", redact(text));
  }

  async function prepare(args: JsonObject): Promise<ToolFacts> {
    const problem = findJsonProblem(args);
    if (problem) throw new CallRefused("arguments-invalid", `${problem.pointer || "/"}: ${problem.text}`);
    const now = await look();
    checkFor(now)(args);
    return { identity: `mcp:${where.identity}:${name}`, schemaHash: now.hash, policyVersion, plan: planFor(args) };
  }

  async function run({ facts, signal, headers, headersLost }: Work): Promise<Finished> {
    const args = facts.plan.arguments;
    // The plan says by itself what would be called, and where: one of another tool, or of an older rule, is not run.
    const isMine = isObject(args) && canonicalJson(facts.plan) === canonicalJson(planFor(args as JsonObject));
    if (!isMine) return notSent(`the plan is not one of ${name} as it is set up now`);
    if (signal.aborted) return notSent("it was canceled");
    if (headersLost && allowedHeaders.length > 0) {
      return notSent("the client's headers are gone since its server stopped; send the message again");
    }
    const picked = pickHeaders(allowedHeaders, headers);
    if (!picked.ok) return notSent(`the header "${picked.name}" has a value that cannot be sent`);
    let now: Definition;
    try {
      now = await look();
    } catch (error) {
      return notSent(textOf(error));
    }
    if (now.hash !== facts.schemaHash)
      return notSent(`the server has changed the tool "${name}" since it was approved`);
    const how = { timeoutMs, signal, headers: picked.headers };
    const finished = await link.call(now, args as JsonObject, how);
    return redactFinished(finished, createRedaction([...secrets, ...Object.entries(picked.headers)]));
  }

  return {
    name,
    description: redact(definition?.description ?? ""),
    parameters: definition ? redactJson(definition.inputSchema, redact) : { type: "object" },
    gated,
    risk,
    editable,
    idempotent,
    onAmbiguous,
    rule: { file: rule.place.file, line: rule.place.line },
    prepare,
    promptFor: (args) => renderPrompt(rule.approvalPrompt, name, canonicalJson(args)),
    run,
  };
}

function notSent(why: string): Finished {
  return { outcome: "failed", result: `the call was not sent: ${why}` };
}

interface Where {
  readonly identity: string;
  /** Shown: without what may be a secret in a url or an argument. */
  readonly plan: JsonObject;
}

function describeTransport(server: string, transport: McpRule["transport"]): Where {
  if (transport.type === "stdio") {
    const argv = [transport.command, ...transport.args];
    const shown = (transport.shownArgv ?? argv).map(createRedaction(secretsOf(transport)));
    // Other values behind the same names are another server.
    const isWhole = canonicalJson(shown) === canonicalJson(argv);
    const values = isWhole ? "" : `#${sha256(canonicalJson(argv)).slice(0, 16)}`;
    return { identity: `stdio:${canonicalJson(shown)}${values}`, plan: { transport: "stdio", argv: shown } };
  }
  const { type } = transport;
  const url = URL.parse(transport.url);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new HoldpointError(
      "usage-invalid",
      `tool "${server}": the url of an MCP server begins with http:// or https://`,
    );
  }
  if (url.username || url.password) {
    throw new HoldpointError("usage-invalid", `tool "${server}": put user and password into headers, not into the url`);
  }
  const shown = `${url.origin}${url.pathname}${url.search && "?…"}`;
  return {
    identity: `${type}:${shown}#${sha256(url.href).slice(0, 16)}`,
    plan: { transport: type, url: shown },
  };
}

/** Compiled once for each definition. */
const checks = new WeakMap<Definition, (args: JsonObject) => void>();

function checkFor(definition: Definition): (args: JsonObject) => void {
  try {
    const check = checks.get(definition) ?? createArgumentCheck(definition.inputSchema);
    checks.set(definition, check);
    return check;
  } catch (error) {
    throw new CallRefused("tool-unavailable", `"${definition.name}" cannot be used: ${textOf(error)}`);
  }
}

function findSchemaProblem(definition: Definition): string | undefined {
  try {
    checkFor(definition);
    return undefined;
  } catch (error) {
    return textOf(error);
  }
}

/** A server that echoes what it was given must not carry it into the log. */
function redactFinished(finished: Finished, redact: (text: string) => string): Finished {
  if (finished.outcome === "unknown") return { ...finished, why: redact(finished.why) };
  return typeof finished.result === "string" ? { ...finished, result: redact(finished.result) } : finished;
}
