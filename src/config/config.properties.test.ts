/** What holds for every configuration, sensible or not. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { type Loaded, parseConfig } from "./load.ts";
import { formatProblem } from "./problem.ts";
import type { Environment } from "./variables.ts";

const SCRIPT = "scenarios: [ { match: ., turns: [ { say: Hello } ] } ]\n";

function load(text: string, environment: Environment = {}, script = SCRIPT): Loaded {
  const read = () => ({ text: script });
  return parseConfig({ file: "h.yaml", path: "/h/h.yaml", text, environment, dataFolder: "/h/data", read });
}

/** Everything that a person could get to see of a load. */
function seen(loaded: Loaded): string {
  const problems = loaded.ok ? loaded.warnings : loaded.problems;
  const printed = problems.map((problem) => formatProblem(problem, loaded.sources.get(problem.file)));
  return JSON.stringify(problems) + printed.join("\n");
}

const WORDS =
  `llms tools agents session_stores server type model api_key host temperature max_tokens api script requires_approval
   require_approval approval_prompt risk editable idempotent on_ambiguous timeout allowed_commands working_directory root
   url transport headers command args env allowed_headers llm instruction description sub_agents reasoning engine
   enable_streaming max_iterations session_store task backend worker_pool input_timeout on_timeout hitl mode checkpoint
   enabled strategy interval every_n_iterations recovery auto_resume resume_timeout module dialect port auth tokens name
   token scopes tenant jwt issuer a2a profile push allow limits rate burst ag_ui tanstack demo scripted openai mcp code
   ask_user delete_file read_file sqlite postgres database scenarios match turns say call ask question choices denied tool
   __proto__ constructor toString hasOwnProperty`.split(/\s+/);

const word = fc.constantFrom(...WORDS);
const leaf = fc.oneof(
  word,
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constantFrom(`\${A}`, `$\${A}`, `\${A:-b}`, `\${`, "(", "http://h", "postgres://h", "./x", ".", "0"),
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    leaf,
    fc.array(tie("tree"), { maxLength: 4 }),
    fc.array(fc.tuple(word, tie("tree")), { maxLength: 6 }).map((pairs) => new Map(pairs)),
  ),
}));
/** The right sections, so that wrong things come further than the first check. */
const nearlyConfig = fc
  .tuple(
    ...(["llms", "tools", "agents", "session_stores", "server"] as const).map((key) =>
      fc
        .array(
          fc.tuple(
            word,
            fc.array(fc.tuple(word, tree), { maxLength: 6 }).map((pairs) => new Map(pairs)),
          ),
          { maxLength: 4 },
        )
        .map((pairs) => [key, new Map(pairs)] as const),
    ),
  )
  .map((sections) => new Map(sections));

const PIECES = fc.array(
  fc.oneof(
    word,
    fc.constantFrom(
      ": ",
      ":\n",
      "\n",
      "\n  ",
      "\n    ",
      "- ",
      "{ ",
      " }",
      "[",
      "]",
      ", ",
      "\t",
      "'",
      '"',
      "|\n",
      ">-\n",
    ),
    fc.constantFrom(
      "&a ",
      "*a",
      "!!str ",
      "!x ",
      "? ",
      "<<: ",
      "---\n",
      "...\n",
      "%YAML 1.1\n",
      "# ",
      `\${A}`,
      `\${`,
      "\uFEFF",
      "\u0000",
    ),
  ),
  { maxLength: 60 },
);

test("no YAML at all brings the loader down, and what is refused is refused with a reason on a line of the file", () => {
  const anything = fc.oneof(
    fc.string({ unit: "binary" }),
    PIECES.map((pieces) => pieces.join("")),
    tree.map((value) => stringify(value)),
    nearlyConfig.map((value) => stringify(value)),
  );
  fc.assert(
    fc.property(anything, anything, (text, script) => {
      const loaded = load(text, { A: "a" }, script);
      seen(loaded);
      if (loaded.ok) return;
      expect(loaded.problems.length).toBeGreaterThan(0);
      for (const { file, line, column, length } of loaded.problems) {
        const written = loaded.sources.get(file)?.split("\n")[line - 1] ?? "";
        expect(column + Math.max(0, length - 1)).toBeLessThanOrEqual(written.length + 1);
      }
    }),
    { numRuns: 1_000 },
  );
});

/** Text that means something to YAML wherever it stands. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ": {}\n- #",
        "\n",
        "\n  requires_approval: false\n",
        ", requires_approval: false",
        " }",
        "]",
        "'",
        '"',
      ),
      fc.constantFrom(
        "\\",
        "#",
        " # ",
        "- ",
        "? ",
        "&a",
        "*a",
        "!!",
        "|",
        ">",
        "%",
        "@",
        "`",
        "\t",
        `\${A}`,
        `$\${`,
        "\uFDD0\uFDD1A\uFDD2",
      ),
      fc.string({ unit: "binary", maxLength: 5 }),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => `v${parts.join("")}`);

test("whatever a variable holds is the text of one scalar and nothing else", () => {
  const text = `llms: { x: { type: openai, model: \${V}, api_key: "\${V}" } }
tools:
  d: { type: delete_file, requires_approval: true, approval_prompt: \${V} }
agents:
  a: { llm: x, instruction: pre-\${V}-post, description: '\${V}', tools: [d] }
  b:
    llm: x
    description: |
      \${V}
      end
`;
  fc.assert(
    fc.property(hostile, (value) => {
      const loaded = load(text, { V: value });
      if (!loaded.ok) throw new Error(loaded.problems[0]?.text);
      const { llms, tools, agents } = loaded.config;
      expect([[...llms.keys()], [...tools.keys()], [...agents.keys()]]).toEqual([["x"], ["d"], ["a", "b"]]);
      expect(llms.get("x")).toMatchObject({ type: "openai", model: value, apiKey: value });
      expect(tools.get("d")).toMatchObject({ requiresApproval: true, approvalPrompt: value });
      expect(agents.get("a")).toMatchObject({ instruction: `pre-${value}-post`, description: value, tools: ["d"] });
      expect(agents.get("b")).toMatchObject({ description: `${value}\nend\n`, tools: [] });
    }),
    { numRuns: 1_000 },
  );
});

/** A place for a value: the configuration with one variable in it, most of them wrong there. */
const PLACES = [
  `llms: { x: { type: \${V} } }`,
  `llms: { x: { type: openai, model: m, host: \${V} } }`,
  `llms: { x: { type: openai, model: m, temperature: \${V}, max_tokens: \${V}, api: \${V} } }`,
  `llms: { x: { type: scripted, script: \${V} } }`,
  `tools: { t: { type: delete_file, requires_approval: \${V}, risk: \${V}, timeout: \${V}, on_ambiguous: \${V} } }`,
  `tools: { t: { type: command, allowed_commands: [\${V}, bash] } }`,
  `tools: { t: { type: command, allowed_commands: [{ command: bash, args: [\${V}] }] } }`,
  `tools: { t: { type: command, allowed_commands: \${V}, working_directory: \${V} } }`,
  `tools: { t: { type: mcp, url: \${V}, tools: [a], require_approval: [\${V}], allowed_headers: [\${V}] } }`,
  `tools: { t: { type: mcp, transport: \${V}, command: \${V}, headers: { a: \${V} } } }`,
  `agents: { a: { llm: \${V}, tools: [\${V}], sub_agents: [\${V}], session_store: \${V} } }`,
  `agents: { a: { llm: \${V}, task: \${V}, reasoning: \${V} } }`,
  `agents: { a: { type: a2a, url: \${V}, dialect: \${V} }, b: { type: code, module: \${V} } }`,
  `session_stores: { s: { type: postgres, url: \${V} } }`,
  `server: { port: \${V}, allowed_origins: [\${V}], auth: { tokens: [{ name: \${V}, token: \${V}, scopes: [\${V}] }] } }`,
  `\${V}: 1`,
  `x: \${V}`,
];

test("what a variable holds is never shown, whatever is wrong with it", () => {
  const secret = fc.stringMatching(/^S3CR[A-Za-z0-9 ():/@.*+-]{6,20}T$/);
  fc.assert(
    fc.property(fc.constantFrom(...PLACES), secret, fc.boolean(), (text, value, failing) => {
      const read = () => (failing ? { why: "no such file" } : { text: "a: [" });
      const loaded = parseConfig({
        file: "h.yaml",
        path: "/h/h.yaml",
        text: `${text}\n`,
        environment: { V: value },
        dataFolder: "/h/data",
        read,
      });
      expect(loaded.ok).toBe(false);
      expect(seen(loaded)).not.toContain("S3CR");
    }),
    { numRuns: 1_000 },
  );
});
