/**
 * An agent that plays the system under test of the public A2A TCK: what it does is named by the beginning of the
 * message's id. A follow-up plays on in the same task.
 */
import type { Clock } from "../../src/ports/clock.ts";
import { type Agent, type Artifact, DURABLE, type Reply, type Thinking } from "../../src/runtime/agent.ts";
import { createCodeAgent } from "../../src/runtime/code-agent.ts";
import { defineAgent } from "../../src/runtime/define-agent.ts";
import type { Store } from "../../src/store/store.ts";
import { sha256 } from "../../src/task/digest.ts";
import type { JsonObject } from "../../src/task/json.ts";
import type { Task } from "../../src/task/task.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { createToolbox } from "../../src/tools/toolbox.ts";

export const TCK_AGENT = "tck";

export interface TckAgentParts {
  readonly store: Store;
  readonly clock: Clock;
  /** How long it works where it is to be seen working. */
  readonly workMs: number;
  /** Whether a message that names no part pauses the task; else it completes it. */
  readonly pausesUnknown: boolean;
}

type Act = (task: Task, thinking: Thinking) => Reply | Promise<Reply>;

export function createTckAgent(parts: TckAgentParts): Agent {
  const acts = createActs(parts);
  const unknown: Act = parts.pausesUnknown ? pause : () => complete("This message names no part of the TCK.");
  return {
    ...DURABLE,
    name: TCK_AGENT,
    // The 0.3 TCK takes some words of a card for leaks ("test" is one).
    description: "Plays the part that the A2A TCK asks for.",
    tools: createToolbox([askTool]),
    think(task, thinking) {
      const heard = task.turns.at(-1)?.messages ?? 0;
      // Answered without a message, from the inbox: there is nothing new to play.
      if (task.messages.length === heard) return Promise.resolve(complete("Nothing more was said."));
      const id = task.messages.at(-1)?.message.messageId ?? "";
      const act = acts.find(([prefix]) => id.startsWith(prefix))?.[1] ?? unknown;
      return Promise.resolve(act(task, thinking));
    },
  };
}

/** Longer prefixes first: several begin with another. */
function createActs({ store, clock, workMs }: TckAgentParts): readonly (readonly [string, Act])[] {
  const reply = createCodeAgent(TCK_AGENT, repliesDirectly, { store, clock });
  const work =
    (text: string): Act =>
    async (_task, { signal }) => {
      await clock.sleep(workMs, signal);
      signal.throwIfAborted();
      return complete(text);
    };
  const acts: Readonly<Record<string, Act>> = {
    "tck-complete-task": () => complete("Hello from TCK"),
    "tck-delayed-complete": work("Done after delay"),
    "tck-input-required": pause,
    "tck-reject-task": () => ({
      text: "",
      calls: [],
      end: { state: "rejected", message: "rejected", code: "rejected" },
    }),
    "tck-message-response": (task, thinking) => reply.think(task, thinking),
    "tck-artifact-text": () => complete("Made.", whole({ text: "Generated text content" })),
    "tck-artifact-file": () => complete("Made.", whole({ raw: FILE, ...FILE_NAME })),
    "tck-artifact-file-url": () => complete("Made.", whole({ url: "https://example.com/output.txt", ...FILE_NAME })),
    "tck-artifact-data": () => complete("Made.", whole({ data: { key: "value", count: 42 } })),
    "tck-stream-001": () => complete("Streamed.", whole({ text: "Stream hello from TCK" })),
    "tck-stream-002": (task, thinking) => reply.think(task, thinking),
    "tck-stream-003": () => complete("Streamed.", whole({ text: "Stream task lifecycle" })),
    "tck-stream-ordering-001": () => complete("Streamed.", whole({ text: "Ordered output" })),
    "tck-stream-artifact-text": () => complete("Streamed.", whole({ text: "Streamed text content" })),
    "tck-stream-artifact-file": () => complete("Streamed.", whole({ raw: FILE, ...FILE_NAME })),
    "tck-stream-artifact-chunked": () => complete("Streamed.", [chunk("chunk-1 ", false), chunk("chunk-2", true)]),
    "test-resubscribe-message-id": work("Done after delay"),
  };
  return Object.entries(acts).sort(([a], [b]) => b.length - a.length);
}

const repliesDirectly = defineAgent(async ({ reply }) => {
  reply("Direct message response");
  return undefined;
});

function complete(text: string, artifacts: readonly Artifact[] = []): Reply {
  return { text, calls: [], artifacts };
}

function pause(): Reply {
  return { text: "", calls: [{ tool: askTool.name, args: {} }] };
}

const FILE = Buffer.from("tck").toString("base64");
const FILE_NAME = { filename: "output.txt", mediaType: "text/plain" } as const;
const ARTIFACT_ID = "tck-artifact";

function whole(part: JsonObject): readonly Artifact[] {
  return [{ artifact: { artifactId: ARTIFACT_ID, parts: [part] }, append: false, lastChunk: true }];
}

function chunk(text: string, isLast: boolean): Artifact {
  return { artifact: { artifactId: ARTIFACT_ID, parts: [{ text }] }, append: isLast, lastChunk: isLast };
}

/** Any text answers it. */
const askTool: Tool = {
  name: "ask",
  description: "Asks for more input.",
  parameters: { type: "object" },
  gated: true,
  risk: "low",
  editable: false,
  idempotent: true,
  onAmbiguous: "retry",
  prepare: async () => ({ identity: "tck:ask", schemaHash: sha256("ask"), policyVersion: "1", plan: {} }),
  promptFor: () => "What next?",
  question: () => ({
    title: "Input",
    prompt: "What next?",
    schema: {
      type: "object",
      properties: { answer: { type: "string" } },
      required: ["answer"],
      additionalProperties: false,
    },
  }),
  run: async () => ({ outcome: "failed", result: "a question does not run" }),
};
