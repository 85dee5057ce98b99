/**
 * An agent that is a TypeScript function, run again from the log. Each thought is one run (`code-run.ts`): what it wants
 * becomes the calls of one turn, which the gate treats like a model's. There is no second way to execute anything.
 */
import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import { OPEN_REQUESTS_MAX } from "../task/ask.ts";
import { CALLS_PER_TURN_MAX } from "../task/decide.ts";
import { sha256 } from "../task/digest.ts";
import { nameOf } from "../task/event.ts";
import { findJsonProblem, type Json, type JsonObject } from "../task/json.ts";
import { replay } from "../task/log.ts";
import type { ToolFacts } from "../task/request.ts";
import type { Task } from "../task/task.ts";
import { CallRefused, type Question, type Tool } from "../tools/tool.ts";
import { createToolbox, type Toolbox } from "../tools/toolbox.ts";
import { type Agent, DURABLE, type Reply } from "./agent.ts";
import { type CodeLog, readHistory } from "./code-history.ts";
import { ASK, CodeRun, type FoundStep, IDEMPOTENT_STEP, STEP } from "./code-run.ts";
import { type AgentDefinition, CallError } from "./define-agent.ts";

/** As much as the runner keeps of any result. */
const RESULT_BYTES_MAX = 4 * 1024 * 1024;

/** Tasks whose last thought is kept, so that their log is not read from its beginning for each step. */
const RECENT_MAX = 64;

/** How it waits and recovers is as for any agent (`DURABLE` unless told otherwise). */
export interface CodeAgentParts extends Partial<Pick<Agent, keyof typeof DURABLE>> {
  readonly store: CodeLog;
  readonly clock: Pick<Clock, "turn">;
  /** Besides those that the definition brings along. */
  readonly tools?: Toolbox;
  /** Gates what the definition brings along too, whatever its rules say. */
  readonly requiresApproval?: boolean;
  readonly description?: string;
}

export function createCodeAgent(name: string, definition: AgentDefinition, parts: CodeAgentParts): Agent {
  const { store, clock, tools: given = createToolbox([]), requiresApproval = false, ...policy } = parts;
  const own = requiresApproval ? definition.tools.map((tool) => ({ ...tool, gated: true })) : definition.tools;
  const find = (wanted: string) => own.find((tool) => tool.name === wanted) ?? given.get(wanted);
  const recent = new Map<string, Task>();
  const start = async (task: Task, signal?: AbortSignal): Promise<CodeRun> => {
    const run = new CodeRun(await readHistory(store, task), (wanted) => find(wanted) !== undefined);
    await run.start(definition.run, clock, signal);
    return run;
  };
  const findStep = async (args: JsonObject): Promise<FoundStep> => {
    const { step, task: id, tenant } = args;
    if (typeof step !== "string" || typeof id !== "string" || typeof tenant !== "string") throw unreachableStep("?");
    const key = { tenant, id };
    const known = recent.get(nameOf(key));
    const task = replay(key, (await store.read(key, known?.version)).events, known);
    const run = task && (await start(task));
    const found = run?.steps.get(step);
    if (run?.returned && "error" in run.returned && !found) throw run.returned.error;
    if (!run || !found || run.end) throw unreachableStep(step);
    run.enter(step);
    return found;
  };
  const inner = [createStepTool(STEP, findStep), createStepTool(IDEMPOTENT_STEP, findStep), askTool];
  const taken = inner.find((tool) => find(tool.name))?.name ?? findTwin(own, given);
  if (taken) throw new HoldpointError("usage-invalid", `agent "${name}": the tool "${taken}" needs another name`);
  const tools: Toolbox = {
    get: (wanted) => inner.find((tool) => tool.name === wanted) ?? find(wanted),
    list: async () => [...own, ...(await given.list())],
  };
  return {
    ...DURABLE,
    description: definition.description,
    ...policy,
    name,
    tools,
    async think(task, { signal }) {
      remember(recent, task);
      return toReply(await start(task, signal), tools);
    },
  };
}

/** Only a head start: what the store has added since is read every time. */
function remember(recent: Map<string, Task>, task: Task): void {
  const name = nameOf(task.key);
  recent.delete(name);
  recent.set(name, task);
  const [oldest] = recent.keys();
  if (recent.size > RECENT_MAX && oldest !== undefined) recent.delete(oldest);
}

/** Which of two is meant must not depend on their order. */
function findTwin(own: readonly Tool[], given: Toolbox): string | undefined {
  return own.find((tool, i) => given.get(tool.name) ?? own.findIndex(({ name }) => name === tool.name) < i)?.name;
}

function toReply({ calls, artifacts, returned, end }: CodeRun, tools: Toolbox): Reply {
  if (end?.state === "failed") return { text: "", calls: [], end };
  if (end) return { text: "", calls: [], artifacts, end };
  if (returned && "error" in returned) {
    const { error } = returned;
    if (!(error instanceof CallError)) throw error;
    // It stands in the log, so that trying again would only throw it again.
    return { text: "", calls: [], artifacts, end: { state: "failed", message: error.message, code: error.code } };
  }
  // What was begun comes to its end before the task does, awaited or not.
  if (calls.length > 0) return { text: "", calls: takeTurn(calls, tools), artifacts };
  if (!returned) throw new Error("the function waits for a call that has no outcome");
  return { text: returned.text, calls: [], artifacts };
}

/** As many as one turn takes. The rest are met again in the next run, and come with that turn. */
function takeTurn(calls: Reply["calls"], tools: Toolbox): Reply["calls"] {
  let asked = 0;
  return calls
    .filter(({ tool }) => !tools.get(tool)?.gated || ++asked <= OPEN_REQUESTS_MAX)
    .slice(0, CALLS_PER_TURN_MAX);
}

/**
 * A step is an ungated tool. What it executes is a closure of the function, which is run again up to there each time:
 * after a restart there is nothing else, so nothing else is done before one.
 */
function createStepTool(name: string, findStep: (args: JsonObject) => Promise<FoundStep>): Tool {
  const idempotent = name === IDEMPOTENT_STEP;
  // The runner hands `run` the very facts that `prepare` gave it; a step that is not executed is forgotten with them.
  const prepared = new WeakMap<ToolFacts, FoundStep>();
  return {
    ...UNGATED,
    name,
    description: "One act of the agent's own code.",
    parameters: { type: "object", properties: { step: { type: "string" } } },
    idempotent,
    onAmbiguous: idempotent ? "retry" : "ask",
    async prepare(args) {
      const found = await findStep(args);
      // By now the code may say that it must not run again: then it is not what was claimed.
      const facts = factsOf(name, { idempotent: found.idempotent });
      prepared.set(facts, found);
      return facts;
    },
    async run({ args, facts, idempotencyKey, signal }) {
      const found = prepared.get(facts);
      if (!found) return { outcome: "failed", result: "not run: this is not what was prepared" };
      const result = (await found.work({ idempotencyKey, signal })) ?? null;
      const problem = findJsonProblem(result, RESULT_BYTES_MAX);
      if (!problem) return { outcome: "done", result: result as Json };
      const text = `step("${args.step}") ran, and its result cannot be kept: ${problem.pointer || "it"}: ${problem.text}`;
      return { outcome: "failed", result: text };
    },
  };
}

const UNGATED = {
  gated: false,
  risk: "low",
  editable: false,
  promptFor: ({ step }: JsonObject) => `Run step ${step}?`,
} as const satisfies Partial<Tool>;

const askTool: Tool = {
  ...UNGATED,
  name: ASK,
  description: "Asks a person.",
  parameters: { type: "object" },
  gated: true,
  idempotent: true,
  onAmbiguous: "retry",
  prepare: async () => factsOf(ASK, {}),
  promptFor: ({ prompt }) => String(prompt),
  question: (args) => args as unknown as Question, // written by `code-run.ts` in exactly this shape
  run: async () => ({ outcome: "failed", result: "a question does not run" }),
};

function factsOf(name: string, plan: JsonObject): ToolFacts {
  return { identity: `code-agent:${name}`, schemaHash: sha256(name), policyVersion: "1", plan };
}

/** The log has it, and the function, as it is now, does not come to it. */
function unreachableStep(step: string): CallRefused {
  return new CallRefused("tool-unavailable", `the code has changed: it does not come to step("${step}") any more`);
}
