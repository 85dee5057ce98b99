/** The agent of the play: it tidies a folder that has something to lose. No model, no network. */
import { join } from "node:path";
import { listFolder, removeFile } from "../ports/files.ts";
import { type Agent, DURABLE } from "../runtime/agent.ts";
import { sha256 } from "../task/digest.ts";
import type { JsonObject } from "../task/json.ts";
import type { Finished, Tool } from "../tools/tool.ts";
import { createToolbox } from "../tools/toolbox.ts";

export const PLAY_AGENT = "janitor";

export function createPlayAgent(workspace: string): Agent {
  const tools = [
    createTool("list_files", false, async () => ({ outcome: "done", result: [...listFolder(workspace)] })),
    createTool("delete_files", true, async ({ names }) => {
      const doomed = Array.isArray(names) ? names.map(String) : [];
      for (const name of doomed) removeFile(join(workspace, name));
      return { outcome: "done", result: `${doomed.length} files deleted` };
    }),
  ];
  return {
    ...DURABLE,
    name: PLAY_AGENT,
    description: "Tidies a folder.",
    tools: createToolbox(tools),
    async think(task) {
      switch (task.turns.length) {
        case 0:
          return { text: "Let me look.", calls: [{ tool: "list_files", args: {} }] };
        case 1:
          return {
            text: "Two of these look old.",
            calls: [{ tool: "delete_files", args: { names: ["report-2019.csv", "report-2020.csv"] } }],
          };
        default:
          return { text: "The old reports are gone; this year's is still there.", calls: [] };
      }
    },
  };
}

function createTool(name: string, gated: boolean, run: (args: JsonObject) => Promise<Finished>): Tool {
  return {
    name,
    description: name,
    parameters: { type: "object" },
    gated,
    risk: gated ? "high" : "low",
    editable: gated,
    idempotent: false,
    onAmbiguous: "ask",
    prepare: async (args) => ({
      identity: `play:${name}`,
      schemaHash: sha256(name),
      policyVersion: sha256(`gated:${gated}`),
      plan: args,
    }),
    promptFor: (args) => `Run ${name} with ${JSON.stringify(args)}?`,
    run: ({ args }) => run(args),
  };
}
