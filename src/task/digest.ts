/** SHA-256 bindings: what was shown to what may run (digest), and each event to all before it (chain). */
import { hash } from "node:crypto";
import type { TaskKey } from "./event.ts";
import { canonicalJson, type JsonObject } from "./json.ts";
import type { Digest, RequestDraft, RequestId, ToolFacts } from "./request.ts";

/** Where a digest is valid: in a database with another epoch no old approval fits. */
export interface Scope {
  readonly key: TaskKey;
  readonly epoch: string;
}

/** What a tool call is bound to. Without a request (an ungated call) the id is empty. */
export function callDigest(
  scope: Scope,
  requestId: RequestId | "",
  tool: string,
  args: JsonObject,
  facts: ToolFacts,
): Digest {
  return digest({
    tenant: scope.key.tenant,
    epoch: scope.epoch,
    task: scope.key.id,
    request: requestId,
    tool,
    identity: facts.identity,
    schema: facts.schemaHash,
    policy: facts.policyVersion,
    plan: facts.plan,
    args,
  });
}

export function requestDigest(scope: Scope, id: RequestId, draft: RequestDraft): Digest {
  if (draft.kind === "approval" || draft.kind === "in-doubt") {
    return callDigest(scope, id, draft.tool, draft.args, draft.facts);
  }
  return digest({
    tenant: scope.key.tenant,
    epoch: scope.epoch,
    task: scope.key.id,
    request: id,
    kind: draft.kind,
    title: draft.title,
    prompt: draft.prompt,
    ...(draft.kind === "input" ? { schema: draft.schema } : { url: draft.url }),
  });
}

/** The hash of an event: covers the previous one, so that no event can be changed, moved or left out unseen. */
export function chainHash(previous: string, key: TaskKey, seq: number, at: number, body: string): string {
  return sha256(`${previous}\n${JSON.stringify([key.tenant, key.id, seq, at])}\n${body}`);
}

export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

function digest(content: JsonObject): Digest {
  return `sha256:${sha256(canonicalJson(content))}`;
}
