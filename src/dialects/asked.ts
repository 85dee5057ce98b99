/** A request of ours, as it is asked on any wire. */
import { unreachable } from "../errors.ts";
import { canonicalJson, type JsonObject } from "../task/json.ts";
import type { Request } from "../task/request.ts";
import { toIso } from "../task/request-view.ts";
import type { Asked } from "./dialect.ts";

export function askedOf(request: Request, path: readonly string[]): Asked {
  const { id, title, prompt, digest, risk, expiresAtMs, onTimeout } = request;
  const expires = expiresAtMs === null ? {} : { expiresAt: toIso(expiresAtMs) };
  const ofAll = { requestId: id, title, prompt, digest, risk, path, ...expires, onTimeout };
  switch (request.kind) {
    case "approval": {
      const { kind, tool, args, callId, facts, editable } = request;
      const argv = argvOf(facts);
      const call = { tool, args, callId, input: inputOf(facts.identity, args), editable };
      return { ...ofAll, kind, ...call, ...(argv ? { argv } : {}) };
    }
    case "in-doubt": {
      const { kind, tool, args, callId, facts } = request;
      return { ...ofAll, kind, tool, args, callId, input: inputOf(facts.identity, args) };
    }
    case "input":
      return { ...ofAll, kind: "input", schema: request.schema };
    case "auth":
      return { ...ofAll, kind: "auth", url: request.url };
    default:
      return unreachable(request);
  }
}

/** DESIGN §4: the command line, the path, or compact RFC 8785 JSON. */
function inputOf(identity: string, args: JsonObject): string {
  const text = identity === "builtin:command" ? args.command : FILE_TOOLS.has(identity) ? args.path : undefined;
  return typeof text === "string" ? text : canonicalJson(args);
}

const FILE_TOOLS: ReadonlySet<string> = new Set(["builtin:read_file", "builtin:write_file", "builtin:delete_file"]);

/** Other tools have plans with an argv too, but theirs starts a server and does not say what this call does. */
function argvOf({ identity, plan }: { identity: string; plan: JsonObject }): readonly string[] | undefined {
  if (identity !== "builtin:command" || !Array.isArray(plan.argv)) return undefined;
  return plan.argv.filter((word) => typeof word === "string");
}
