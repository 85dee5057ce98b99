/** What runs when there is no configuration: a scripted agent, a folder with something to lose, no key, no network. */
import { join } from "node:path";
import type { Config } from "./config.ts";
import { parseConfig } from "./load.ts";

/** Written by `holdpoint init` as `holdpoint.yaml`. */
export const DEMO_YAML = `# Holdpoint: an agent that asks before it deletes.  Every key: docs/configuration.md
llms:
  demo: { type: scripted, script: ./demo.script.yaml }      # no key, no network
  # A real model instead: name it below as "llm: gpt".
  # gpt: { type: openai, model: gpt-4o, api_key: \${OPENAI_API_KEY} }

tools:
  read_file:
    type: read_file
    root: ./workspace
  write_file:
    type: write_file
    requires_approval: true
    root: ./workspace
  delete_file:
    type: delete_file
    requires_approval: true          # <- the hold point: a person decides
    approval_prompt: "Delete {input}?"
    root: ./workspace
  execute_command:
    type: command
    requires_approval: true
    allowed_commands: [ls, wc]       # nothing else may even be proposed
    working_directory: ./workspace
  ask_user:
    type: ask_user

agents:
  assistant:
    description: Keeps the reports tidy
    llm: demo
    instruction: You keep the folder of reports tidy. Look before you delete, and say what you are about to do.
    tools: [read_file, write_file, delete_file, execute_command, ask_user]
`;

/** Written by `holdpoint init` as `demo.script.yaml`. */
export const DEMO_SCRIPT_YAML = `# What the scripted model says. The first pattern that matches the opening message wins.
scenarios:
  - match: "three"
    turns:
      - say: "Three things at once then: count the lines, write a summary, delete the oldest report."
        call:
          - { tool: execute_command, args: { command: "wc -l reports/2023-q1.md" } }
          - { tool: write_file, args: { path: reports/summary.md, content: "# Summary\\n\\nTwo reports of 2023, two newer ones.\\n" } }
          - { tool: delete_file, args: { path: reports/2023-q1.md } }
      - say: "All three are done."
        denied: { say: "Understood. What you denied was not done; the rest is. Tell me what to do instead." }

  - match: "ask|question|which|choose"
    turns:
      - ask: { question: "Which reports may go?", choices: ["2023", "2024", none of them] }
      - say: "You chose: {answer}. Say \\"tidy up the reports\\" and I begin."

  - match: "."
    turns:
      - say: "I look at the list of reports first."
        call:
          - { tool: read_file, args: { path: reports/index.md } }
      - say: "Two reports are from 2023 and nobody refers to them any more: 2023-q1.md and 2023-q2.md. I would delete both; 2024-q4.md and 2026-q3.md stay."
        call:
          - { tool: delete_file, args: { path: reports/2023-q1.md } }
          - { tool: delete_file, args: { path: reports/2023-q2.md } }
      - say: "The reports are tidy: both old ones are deleted, the others are untouched."
        denied: { say: "Understood, I did not delete what you denied. I can write a list of the old reports to reports/old.md instead, or ask you about each one. Which would you like?" }
`;

/** What the demo's workspace holds, by path. */
export const DEMO_FILES: Readonly<Record<string, string>> = {
  "reports/index.md": `# Reports

- 2023-q1.md  old, replaced by the yearly report
- 2023-q2.md  old, replaced by the yearly report
- 2024-q4.md  the yearly report
- 2026-q3.md  the newest
`,
  "reports/2023-q1.md":
    "# First quarter of 2023\n\nRevenue 1.2 M, costs 1.4 M. Written by hand; there is no other copy.\n",
  "reports/2023-q2.md": "# Second quarter of 2023\n\nRevenue 1.5 M, costs 1.4 M. The first quarter with a profit.\n",
  "reports/2024-q4.md": "# The year 2024\n\nRevenue 8.1 M, costs 6.9 M.\n",
  "reports/2026-q3.md": "# Third quarter of 2026\n\nRevenue 3.4 M, costs 2.6 M.\n",
  "notes.txt": "Nobody asked for this file to be touched.\n",
};

const DEMO_NAME = "built-in demo";

/** The demo as a configuration; its workspace is \`workspace\` in the data folder. */
export function demoConfig(dataFolder: string): Config {
  const loaded = parseConfig({
    file: DEMO_NAME,
    path: join(dataFolder, "holdpoint.yaml"),
    text: DEMO_YAML,
    environment: {},
    dataFolder,
    read: () => ({ text: DEMO_SCRIPT_YAML }),
  });
  if (!loaded.ok) throw new Error(`the built-in demo is broken: ${loaded.problems[0]?.text}`);
  return { ...loaded.config, file: undefined };
}
