/**
 * Rules that the core does not hold yet, each with the shortest way to break it. A test here fails today (`test.fails`);
 * when the rule holds, vitest says so: then drop `.fails` and move the test to its module.
 */
import { expect, test } from "vitest";
import type { Command } from "./command.ts";
import { advanceLog } from "./log.ts";
import type { Principal, RequestDraft } from "./request.ts";
import { wakeAtMs } from "./rows.ts";

const now = { key: { tenant: "default", id: "T" }, nowMs: 1_000, epoch: "epoch-1" };
const ana: Principal = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };

// wakeAtMs looks at open requests only: without a deadline nobody comes to cancel it.
test.fails("a task that is to be canceled is looked after, even if something was asked since", () => {
  const facts = { identity: "search@1", schemaHash: "s", policyVersion: "p", plan: {} };
  const question: RequestDraft = {
    kind: "input",
    schema: {},
    title: "question",
    prompt: "Which?",
    risk: "low",
    expiresAtMs: null,
    onTimeout: "deny",
  };
  const commands: Command[] = [
    {
      type: "submit",
      agent: "assistant",
      contextId: "c",
      principal: ana,
      message: { messageId: "m1", role: "user", parts: [] },
    },
    { type: "reply", turn: 1, text: "", calls: [{ tool: "search", args: {} }] },
    { type: "claim", callId: "call-1-1", token: "token", gated: false, facts, mayRetry: false },
    { type: "cancel", principal: ana },
    { type: "doubt", effectId: "call-1-1-1", why: "crash", onAmbiguous: "retry" },
    { type: "open", drafts: [question] },
  ];
  const result = advanceLog(undefined, commands, now);
  if (!result.ok || !result.task) return;
  expect(wakeAtMs(result.task)).not.toBeNull();
});
