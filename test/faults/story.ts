/**
 * What happens in the fault suites: what an agent wants, what its tools do, and what a person answers. Everything
 * follows from content, so that a process which starts again goes on with the same story.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Agent, Reply } from "../../src/runtime/agent.ts";
import type { Answer } from "../../src/runtime/answers.ts";
import type { Json, JsonObject } from "../../src/task/json.ts";
import {
  IN_DOUBT_ANSWERS,
  type Outcome,
  type Principal,
  parseRequestId,
  type Request,
} from "../../src/task/request.ts";
import type { History } from "../../src/testing/checker.ts";
import { type LedgerEntry, toLedgerEntry } from "../../src/testing/ledger.ts";
import { createScriptedAgent, createScriptedTool, type ScriptedTool } from "../../src/testing/scripted-agent.ts";
import type { Finished, Tool, Work } from "../../src/tools/tool.ts";

export const TENANT = "default";
export const AGENT = "assistant";

export interface Story {
  /** One task for each. */
  readonly messageIds: readonly string[];
  readonly turns: readonly Reply[];
  readonly inputTimeoutMs?: number;
  /** A second message to each task, while it is under way. */
  readonly saysMore?: boolean;
  /** Somebody stops these tasks as soon as a tool of theirs has begun. */
  readonly stopped?: readonly string[];
}

/** Written into the arguments of a call: what the person does when asked about it. */
type Mind = "approve" | "edit" | "deny" | "cancel" | "ignore";

const call = (tool: string, person: Mind, args: JsonObject = {}) => ({ tool, args: { ...args, person } });

export const STORIES = {
  "two turns": {
    messageIds: ["go"],
    turns: [
      {
        text: "I look, then I ask.",
        calls: [
          call("refund", "approve", { amount: 5 }),
          call("look", "approve"),
          call("deploy", "edit", { to: "everywhere" }),
          call("upsert", "approve"),
          call("wipe", "deny"),
        ],
      },
      {
        text: "And once more.",
        calls: [call("sync", "approve"), call("charge", "approve", { amount: 7 }), call("refund", "cancel")],
      },
    ],
  },
  "three tasks at once": {
    messageIds: ["first", "second", "third"],
    saysMore: true,
    turns: [
      {
        text: "All of us want something.",
        calls: [
          call("export", "approve"),
          call("no-such-tool", "approve"),
          call("stumble", "edit"),
          call("sync", "deny"),
        ],
      },
      { text: "Nearly there.", calls: [call("look", "deny"), call("refund", "approve"), call("upsert", "edit")] },
    ],
  },
  "deadlines and a stop": {
    messageIds: ["wait", "stop it"],
    stopped: ["stop it"],
    inputTimeoutMs: 60,
    turns: [
      {
        text: "Somebody must answer soon.",
        calls: [call("crawl", "approve"), call("wipe", "ignore"), call("deploy", "approve"), call("refund", "edit")],
      },
      { text: "The last one.", calls: [call("deploy", "ignore"), call("charge", "deny"), call("upsert", "approve")] },
    ],
  },
} as const satisfies Record<string, Story>;

export type StoryName = keyof typeof STORIES;

/** What the tools are, besides what they do. */
const TOOLS: readonly (Omit<ScriptedTool, "run"> & { takesMs?: number; result?: Json; throws?: boolean })[] = [
  { name: "look", gated: false },
  { name: "crawl", gated: false, takesMs: 12 },
  { name: "sync", gated: false, idempotent: true, onAmbiguous: "retry" },
  { name: "refund", gated: true },
  { name: "deploy", gated: true, takesMs: 12 },
  { name: "wipe", gated: true },
  { name: "charge", gated: true, onAmbiguous: "fail" },
  { name: "upsert", gated: true, idempotent: true, onAmbiguous: "retry" },
  // Longer than the log takes: its result stands beside it.
  { name: "export", gated: true, result: "x".repeat(20_000) },
  { name: "stumble", gated: true, throws: true },
];

export const TOOL_RULES: History["toolRules"] = new Map(
  TOOLS.map(({ name, gated, idempotent, onAmbiguous }) => [
    name,
    { gated, mayRetry: idempotent === true && onAmbiguous === "retry" },
  ]),
);

/** The side effect of every tool is one entry, kept before the tool answers. */
export function createAgent(
  story: Story,
  record: (entry: LedgerEntry) => void,
  wrapTool = (tool: Tool): Tool => tool,
): Agent {
  const tools = TOOLS.map(({ takesMs, result, throws, ...rules }) => {
    const run = async (work: Work): Promise<Finished> => {
      record(toLedgerEntry(rules.name, work));
      if (takesMs) await sleep(takesMs);
      if (throws) throw new Error(`${rules.name} broke after it had acted`);
      return { outcome: "done", result: result ?? `ran ${rules.name}` };
    };
    return wrapTool(createScriptedTool({ ...rules, run }));
  });
  return createScriptedAgent(AGENT, story.turns, tools, {
    inputTimeoutMs: story.inputTimeoutMs ?? null,
    onTimeout: "deny",
  });
}

/** What the person does with a request; undefined leaves it alone. */
export function answerTo(request: Request): Answer | undefined {
  if (request.kind === "in-doubt") {
    const n = parseRequestId(request.id)?.n ?? 0;
    return { choice: "answer", values: { outcome: IN_DOUBT_ANSWERS[n % IN_DOUBT_ANSWERS.length] ?? "failed" } };
  }
  if (request.kind !== "approval") return { choice: "cancel" };
  const { args, digest } = request;
  switch (args.person as Mind) {
    case "approve":
      return { choice: "approve", digest };
    case "edit":
      return { choice: "approve", digest, editedArgs: { ...args, edited: true } };
    case "deny":
      return { choice: "deny", reason: "not today" };
    case "cancel":
      return { choice: "cancel" };
    case "ignore":
      return undefined;
  }
}

export const OUTCOME_OF: Record<Answer["choice"], Outcome> = {
  approve: "approved",
  deny: "denied",
  answer: "answered",
  cancel: "canceled",
};

export function createPrincipal(name: string): Principal {
  return { name, issuer: "test", tenant: TENANT, via: "test" };
}
