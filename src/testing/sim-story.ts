/** What the agents of a simulated story are: their models, their tools, and how they wait. Made from the seed. */
import type { Model, ModelReply } from "../models/model.ts";
import { ModelBusy } from "../models/model.ts";
import { type Agent, DURABLE, type Reply } from "../runtime/agent.ts";
import { createModelAgent } from "../runtime/model-agent.ts";
import type { Store } from "../store/store.ts";
import { sha256 } from "../task/digest.ts";
import type { Json, JsonObject } from "../task/json.ts";
import type { Finished, Tool, Work } from "../tools/tool.ts";
import { createToolbox } from "../tools/toolbox.ts";
import { type CallHandler, wrapPort } from "./crash-points.ts";
import type { Random } from "./random.ts";
import { createScriptedAgent, createScriptedTool, type ScriptedTool } from "./scripted-agent.ts";

/** `calls`: scripted agents and plain tools. `agents`: models, questions, files, lost answers, every way to wait. */
export type StoryKind = "calls" | "agents";

export interface Story {
  readonly tools: readonly Tool[];
  /** The agent as one replica has it: every call that leaves it is a place to die at. */
  createAgent(handler: CallHandler, store: Store): Agent;
}

/** Runs a tool: writes the ledger, and says what came of it. */
export type Act = (name: string, work: Work) => Promise<Finished>;

interface Parts {
  readonly random: Random;
  readonly act: Act;
  /** What a tool's plan shows; it changes now and then. */
  readonly revision: () => number;
}

export function createStory(kind: StoryKind, parts: Parts): Story {
  return kind === "calls" ? createCallsStory(parts) : createAgentsStory(parts);
}

function createCallsStory({ random, act, revision }: Parts): Story {
  const tools = plainTools(act, revision);
  const names = [...tools.map(({ name }) => name), "refund", "deploy", "nothing-like-it"];
  const turns: Reply[] = Array.from({ length: 1 + random.below(2) }, (_, turn) => ({
    text: `turn ${turn}`,
    calls: Array.from({ length: random.below(4) }, (_, i) => ({ tool: random.pick(names), args: { turn, i } })),
  }));
  const inputTimeoutMs = random.pick([null, null, 2000, 30_000]);
  const onTimeout = random.pick(["fail", "deny"] as const);
  return {
    tools,
    createAgent: (handler) => {
      const wrapped = tools.map((tool) => wrapPort("tool", tool, handler));
      return wrapPort(
        "agent",
        createScriptedAgent("assistant", turns, wrapped, { inputTimeoutMs, onTimeout }),
        handler,
      );
    },
  };
}

function plainTools(act: Act, revision: () => number): Tool[] {
  const tool = (name: string, script: Partial<ScriptedTool>) =>
    createScriptedTool({ name, gated: true, run: (work) => act(name, work), ...script });
  return [
    tool("look", { gated: false }),
    tool("refund", {}),
    tool("deploy", { plan: () => ({ revision: revision() }) }),
    tool("charge", { onAmbiguous: "fail" }),
    tool("upsert", { idempotent: true, onAmbiguous: "retry" }),
    tool("sync", { gated: false, idempotent: true, onAmbiguous: "retry" }),
  ];
}

const LONG = "long enough to stand beside the log ".repeat(500);

function createAgentsStory({ random, act, revision }: Parts): Story {
  const tools = [
    ...plainTools(act, revision),
    createQuestionTool(act),
    createWriteTool(act, random),
    createSaveTool(act),
    createScriptedTool({ name: "send", gated: random.chance(0.5), run: (work) => loseSome(random, act, work) }),
  ];
  const names = [...tools.map(({ name }) => name), "write", "ask", "send", "nothing-like-it"];
  const turns: ModelReply[] = Array.from({ length: 1 + random.below(3) }, (_, turn) => ({
    text: `turn ${turn}`,
    calls: Array.from({ length: random.below(4) }, (_, i) => {
      const tool = random.pick(names);
      return { tool, args: tool === "save" ? { turn, i, content: LONG } : { turn, i } };
    }),
  }));
  const model: Model = {
    async reply({ turn }) {
      if (random.chance(0.1)) throw new ModelBusy("429", random.pick([undefined, 500]));
      return turns[turn - 1] ?? { text: "Done.", calls: [] };
    },
  };
  const waiting = random.pick<Pick<Agent, "mode" | "recovery">>([
    { mode: "async", recovery: DURABLE.recovery },
    { mode: "async", recovery: DURABLE.recovery },
    { mode: "async", recovery: { autoResume: false, resumeTimeoutMs: null } },
    { mode: "async", recovery: { autoResume: true, resumeTimeoutMs: 5000 } },
    { mode: "blocking", recovery: { autoResume: false, resumeTimeoutMs: null } },
  ]);
  const options = {
    ...DURABLE,
    ...waiting,
    name: "assistant",
    description: "",
    inputTimeoutMs: random.pick([null, null, 2000, 30_000]),
    onTimeout: random.pick(["fail", "deny"] as const),
    workerPool: random.pick([1, 64]),
    instruction: "",
    iterationsMax: 10,
    streaming: true,
  };
  return {
    tools,
    createAgent: (handler, store) =>
      createModelAgent({
        ...options,
        store,
        model: wrapPort("model", model, handler),
        tools: createToolbox(tools.map((tool) => wrapPort("tool", tool, handler))),
      }),
  };
}

function createQuestionTool(act: Act): Tool {
  return {
    ...createScriptedTool({ name: "ask", gated: true, run: (work) => act("ask", work) }),
    question: () => ({ title: "ask", prompt: "Which one?", schema: { type: "object" } }),
  };
}

/** A file that the tool writes: what is there tells afterwards whether it has run. */
function createWriteTool(act: Act, random: Random): Tool {
  let disk = { content: "", writes: 0 };
  const plain = createScriptedTool({ name: "write", gated: random.chance(0.7), run: (work) => act("write", work) });
  const wanted = (args: JsonObject) => sha256(JSON.stringify(args));
  return {
    ...plain,
    prepare: async (args) => ({ ...(await plain.prepare(args)), plan: { before: disk.writes, after: wanted(args) } }),
    settle: async (args, approved) => {
      if (disk.content === wanted(args)) return "done";
      return approved === undefined || approved.before === disk.writes ? "not-done" : "unknown";
    },
    run: async (work) => {
      // As the real one: whoever was frozen in mid-claim finds that another has written meanwhile.
      if (work.facts.plan.before !== disk.writes) return { outcome: "failed", result: "the file changed" };
      disk = { content: wanted(work.args), writes: disk.writes + 1 };
      return act("write", work);
    },
  };
}

/** The ledger has its long argument as the log has it. */
function createSaveTool(act: Act): Tool {
  const aside = (content: Json | undefined) =>
    typeof content === "string" ? { blob: sha256(content), bytes: Buffer.byteLength(content) } : (content ?? null);
  const run = (work: Work) => act("save", { ...work, args: { ...work.args, content: aside(work.args.content) } });
  return { ...createScriptedTool({ name: "save", gated: true, run }), longArgument: "content" };
}

/** A service whose answers are lost now and then. */
async function loseSome(random: Random, act: Act, work: Work): Promise<Finished> {
  const finished = await act("send", work);
  return random.chance(0.2) ? { outcome: "unknown", why: "the answer was lost" } : finished;
}
