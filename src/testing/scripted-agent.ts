/** Agents and tools without a model or a network, for tests and simulation. */
import { type Agent, DURABLE, type Reply } from "../runtime/agent.ts";
import { sha256 } from "../task/digest.ts";
import { canonicalJson, type JsonObject } from "../task/json.ts";
import type { Finished, Tool, Work } from "../tools/tool.ts";
import { createToolbox } from "../tools/toolbox.ts";

/** Turn k answers the k-th model call of a task; after the last one the task completes. */
export function createScriptedAgent(
  name: string,
  turns: readonly Reply[],
  tools: readonly Tool[],
  options: Partial<Pick<Agent, keyof typeof DURABLE>> = {},
): Agent {
  return {
    ...DURABLE,
    ...options,
    name,
    description: "Says what its script says.",
    tools: createToolbox(tools),
    think: async (task) => turns[task.turns.length] ?? { text: "Done.", calls: [] },
  };
}

export interface ScriptedTool {
  readonly name: string;
  readonly gated: boolean;
  readonly idempotent?: boolean;
  readonly onAmbiguous?: Tool["onAmbiguous"];
  /** What the plan shows besides the arguments; a change asks again. */
  readonly plan?: () => JsonObject;
  readonly run: (work: Work) => Promise<Finished>;
}

export function createScriptedTool(script: ScriptedTool): Tool {
  const { name, gated, idempotent = false, onAmbiguous = "ask", plan = () => ({}), run } = script;
  return {
    name,
    description: `The scripted tool ${name}.`,
    parameters: { type: "object" },
    gated,
    risk: "medium",
    editable: true,
    idempotent,
    onAmbiguous,
    prepare: async () => ({
      identity: `scripted:${name}`,
      schemaHash: sha256("{}"),
      policyVersion: sha256(JSON.stringify({ gated, idempotent, onAmbiguous })),
      plan: plan(),
    }),
    promptFor: (args) => `Run ${name} with ${canonicalJson(args)}?`,
    run,
  };
}
