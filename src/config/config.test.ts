/** What may stand in `holdpoint.yaml`, what it means, and what is said about each mistake. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Config } from "./config.ts";
import { type Loaded, loadConfig } from "./load.ts";
import { formatProblem } from "./problem.ts";
import type { Environment } from "./variables.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdpoint-config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const path = () => join(folder, "holdpoint.yaml");
const SCRIPT = "scenarios: [ { match: ., turns: [ { say: Hello } ] } ]\n";
const LLM = `llms:
  demo: { type: scripted, script: ./demo.script.yaml }
`;
const BASE = `${LLM}agents: { a: { llm: demo } }\n`;

function load(text: string, environment: Environment = {}, script = SCRIPT): Loaded {
  writeFileSync(path(), text);
  writeFileSync(join(folder, "demo.script.yaml"), script);
  return loadConfig(path(), environment, join(folder, ".holdpoint"));
}

function problemsOf(loaded: Loaded) {
  return loaded.ok ? [] : loaded.problems;
}

const textsOf = (loaded: Loaded) => problemsOf(loaded).map(({ text }) => text);

function accepted(text: string, environment: Environment = {}): Config {
  const loaded = load(text, environment);
  if (!loaded.ok) throw new Error(textsOf(loaded).join("\n"));
  return loaded.config;
}

describe("one message for each mistake, under the caret", () => {
  for (const { group, before, cases } of readMistakes()) {
    describe(group, () => {
      test.each(cases)("$what", ({ marked, text, consequence }) => {
        const start = marked.indexOf("«");
        const written = marked.replace(/[«»]/g, "");
        const inScript = group.endsWith("script");
        const file = inScript ? written : before + written;
        const loaded = inScript ? load(BASE, {}, file) : load(file, { EMPTY: "" });
        const lines = (before + marked.slice(0, Math.max(0, start))).split("\n");
        expect(problemsOf(loaded)).toEqual([
          expect.objectContaining({
            level: "error",
            file: inScript ? join(folder, "demo.script.yaml") : path(),
            line: start < 0 ? 1 : lines.length,
            column: start < 0 ? 1 : (lines.at(-1)?.length ?? 0) + 1,
            length: start < 0 ? 0 : marked.indexOf("»") - start - 1,
            text: text.replace("{folder}", folder),
            ...(consequence !== undefined && { consequence }),
          }),
        ]);
        if (consequence === undefined) expect(problemsOf(loaded)[0]).not.toHaveProperty("consequence");
      });
    });
  }

  /** The groups of `mistakes.txt`, which explains its own form. */
  function readMistakes() {
    const text = readFileSync(new URL("mistakes.txt", import.meta.url), "utf8");
    const [, ...groups] = text.split(/^=== /m);
    return groups.map((part) => {
      const [head = "", ...cases] = part.split(/^## /m);
      const [group = "", ...before] = head.trimEnd().split("\n");
      return {
        group,
        before: before.map((line) => `${line}\n`).join(""),
        cases: cases.map((mistake) => {
          const [what = "", ...lines] = mistake.trimEnd().split("\n");
          const first = lines.findIndex((line) => line.startsWith("> "));
          const [message = "", consequence] = lines.slice(first).map((line) => line.slice(2));
          return { what, marked: `${lines.slice(0, first).join("\n")}\n`, text: message, consequence };
        }),
      };
    });
  }

  test.each([
    ["a noncharacter", `${BASE}# \uFDD0\n`, "this character is not text (a Unicode noncharacter); remove it"],
    ["nested beyond reason", "[".repeat(100_000), "not readable as YAML: nested too deeply"],
    ["far too large", `#${"x".repeat(1024 * 1024)}`, "the file is larger than 1048576 characters"],
    ["far too many aliases", `${BASE}x: [&a 1, ${"*a, ".repeat(201)}]\n`, "more than 200 aliases (*name)"],
    [
      "far too many entries",
      `${BASE}tools: { ${Array.from({ length: 1_001 }, (_, i) => `t${i}: { type: ask_user }`).join(", ")} }\n`,
      '"tools" has 1001 entries; at most 1000 are taken',
    ],
  ])("%s", (_what, text, expected) => {
    expect(textsOf(load(text))).toEqual([expected]);
  });

  test("nested as deep as anybody likes", () => {
    for (const depth of [100, 500, 1_000, 2_000, 3_000, 5_000, 10_000]) {
      expect(load(`${BASE}x: ${"[".repeat(depth)}${"]".repeat(depth)}\n`).ok).toBe(false);
      expect(load(`${BASE}x: ${"{ a: ".repeat(depth)}1${" }".repeat(depth)}\n`).ok).toBe(false);
    }
  });

  test("aliases of aliases that would fill the memory", () => {
    const levels = Array.from({ length: 15 }, (_, i) => `l${i}: &l${i} [${`*l${i - 1}, `.repeat(i === 0 ? 0 : 10)}]`);
    const args = `{ ${levels.join(", ")} }`;
    const script = `scenarios: [ { match: ., turns: [ { call: [ { tool: t, args: ${args} } ] } ] } ]`;
    expect(textsOf(load(BASE, {}, script))[0]).toBe('"args" holds more than 10000 values');
  });

  test("a file that is not there", () => {
    const [problem] = problemsOf(loadConfig(join(folder, "none.yaml"), {}, folder));
    expect(problem).toMatchObject({ line: 1, column: 1, text: "no such file" });
  });

  test("a link that leads to itself", () => {
    symlinkSync(path(), path());
    expect(textsOf(loadConfig(path(), {}, folder))).toEqual(["cannot be read (ELOOP)"]);
  });

  test("a folder instead of a file", () => {
    expect(textsOf(loadConfig(folder, {}, folder))).toEqual(["this is a folder, not a file"]);
  });

  // Root may read everything.
  test.skipIf(process.getuid?.() === 0)("a file that may not be read", () => {
    writeFileSync(path(), BASE);
    chmodSync(path(), 0);
    expect(textsOf(loadConfig(path(), {}, folder))).toEqual(["cannot be read: permission denied"]);
  });
});

test("all problems come at once, in the order of the lines, those of the script after them", () => {
  const text = `llms:
  demo: { type: scripted, script: ./demo.script.yaml }
  gpt: { type: openai, modle: gpt-4o, api_key: \${NO_KEY}, temperature: 9 }
tools:
  rm: { type: delete_file, require_approval: true, timeout: soon }
  sh: { type: command, allowed_commands: [bash, "git log"] }
  k8s: { type: mcp, tools: [a], require_approval: [b] }
agents:
  a: { llm: gtp, tools: [rn, sh], sub_agents: [b], task: { hitl: { mode: async } } }
  b: { llm: demo, sub_agents: [a] }
server: { port: -1, auth: { tokens: [ { name: x } ] } }
`;
  const problems = problemsOf(load(text, {}, 'scenarios: [ { match: "(", turns: [ { sya: Hi } ] } ]'));
  expect(problems.map(({ line, column }) => `${line}:${column}`)).toEqual([
    ...["3:24", "3:48", "3:72", "5:28", "5:61", "6:43", "6:49", "7:3", "7:52", "9:13", "9:26", "9:74", "10:32"],
    ...["11:17", "11:39", "11:39"],
    ...["1:23", "1:39"],
  ]);
});

describe("an ungated tool that could open its own gate", () => {
  const tool = (text: string) => `${BASE}tools:\n  t: ${text}\n`;

  test.each(
    `sh bash dash zsh /bin/bash python python3.12 node perl ruby php env xargs find sudo nice timeout ssh awk gawk sed
     busybox git npx make BASH.EXE tar vim choom prlimit chrt taskset ionice setsid unshare nsenter setpriv runuser flock
     script uclampset hyperfine watchexec curl wget nc ncat telnet socat http`.split(/\s+/),
  )("%s, allowed bare", (command) => {
    const problems = problemsOf(load(tool(`{ type: command, allowed_commands: [ls, ${command}] }`)));
    expect(problems).toEqual([
      expect.objectContaining({
        line: 5,
        column: 46,
        length: command.length,
        text: expect.stringMatching(/^"\S+" (is an? |can |runs |reaches ).*, and this tool asks nobody\./),
        consequence: "The agent could do anything with it WITHOUT approval.",
      }),
    ]);
  });

  test("an interpreter whose patterns let anything through", () => {
    const text = '{ type: command, allowed_commands: [ { command: bash, args: ["-c", ".*"] } ] }';
    expect(textsOf(load(tool(text)))).toEqual([
      expect.stringContaining("is a shell: it runs whatever its arguments say"),
    ]);
  });

  test.each([
    ["with an approval", "{ type: command, requires_approval: true, allowed_commands: [bash] }"],
    ["with its arguments listed", '{ type: command, allowed_commands: [ { command: git, args: ["status"] } ] }'],
    ["on a tool that is off", "{ type: command, enabled: false, allowed_commands: [bash] }"],
    ["where it is none", "{ type: command, allowed_commands: [ls, cat, wc, grep, echo] }"],
  ])("but an interpreter is taken %s", (_what, text) => {
    expect(textsOf(load(tool(text)))).toEqual([]);
  });

  test("but an interpreter is taken when every agent that has it gates all its tools", () => {
    const text = (gated: boolean) => `${LLM}agents:
  a: { llm: demo, tools: [t], requires_approval: true }
  b: { llm: demo, tools: [t], requires_approval: ${gated} }
tools: { t: { type: command, allowed_commands: [bash] } }
`;
    expect(textsOf(load(text(true)))).toEqual([]);
    expect(textsOf(load(text(false)))).toHaveLength(1);
  });

  test.each([
    ["the configuration", "{ type: read_file, root: . }"],
    ["the configuration", "{ type: write_file, root: .. }"],
    ["the configuration", "{ type: delete_file, root: / }"],
    ["the configuration", "{ type: command, allowed_commands: [ls], working_directory: ./a/.. }"],
    ["the data folder", "{ type: read_file, root: ./.holdpoint }"],
  ])("a folder that holds %s: %s", (held, text) => {
    expect(problemsOf(load(tool(text)))).toEqual([
      expect.objectContaining({
        line: 5,
        text: `the folder of tool "t" holds ${held}, and this tool asks nobody. Give it "requires_approval: true", or another folder`,
        consequence: "The agent could read or change its own rules WITHOUT approval.",
      }),
    ]);
  });

  test("a folder that holds the database", () => {
    const text = `${LLM}agents: { a: { llm: demo, session_store: s } }
tools: { t: { type: read_file, root: ./db } }
session_stores: { s: { type: sqlite, database: ./db/tasks.db } }
`;
    expect(textsOf(load(text))).toEqual([expect.stringContaining("holds the database")]);
  });

  test.each([
    ['the script of llm "demo"', "write_file"],
    ['the script of llm "demo"', "delete_file"],
    ['the module of agent "c"', "write_file"],
    ['the module of agent "c"', "command"],
  ])("a folder that holds %s: %s", (held, type) => {
    mkdirSync(join(folder, "inside"), { recursive: true });
    writeFileSync(join(folder, "inside", "c.js"), "export default 1;");
    writeFileSync(join(folder, "inside", "s.yaml"), SCRIPT);
    const script = held.includes("script") ? "./inside/s.yaml" : "./demo.script.yaml";
    const place = type === "command" ? "allowed_commands: [ls], working_directory: ./inside" : "root: ./inside";
    const text = (rule: string) => `llms: { demo: { type: scripted, script: ${script} } }
agents: { a: { llm: demo, tools: [t] }${held.includes("module") ? ", c: { type: code, module: ./inside/c.js }" : ""} }
tools: { t: { ${rule} } }
`;
    expect(textsOf(load(text(`type: ${type}, ${place}`)))).toEqual([expect.stringContaining(`holds ${held}`)]);
    expect(textsOf(load(text(`type: ${type}, ${place}, requires_approval: true`)))).toEqual([]);
    expect(textsOf(load(text("type: read_file, root: ./inside")))).toEqual([]);
  });

  test("the default folder, when the data folder lies in it", () => {
    writeFileSync(path(), tool("{ type: read_file }"));
    writeFileSync(join(folder, "demo.script.yaml"), SCRIPT);
    const loaded = loadConfig(path(), {}, join(folder, "workspace", "data"));
    expect(textsOf(loaded)).toEqual([expect.stringContaining("holds the data folder")]);
  });

  test.each([
    ["with an approval", "{ type: write_file, root: ., requires_approval: true }"],
    ["that only sounds alike", "{ type: write_file, root: ./.holdpoint-2 }"],
    ["below them", "{ type: write_file, root: ./.holdpoint/workspace }"],
  ])("but a folder is taken %s", (_what, text) => {
    expect(textsOf(load(tool(text)))).toEqual([]);
  });
});

describe("what is not said", () => {
  test("seed 002's complete example is taken as it is", () => {
    const seed = readFileSync(new URL("../../test/seeds/002-complete-example.yaml", import.meta.url), "utf8");
    const loaded = load(seed, { OPENAI_API_KEY: "sk-1" });
    expect(loaded).toMatchObject({ ok: true, warnings: [] });
    if (!loaded.ok) return;
    const { config } = loaded;
    expect(config.llms.get("gpt-4o")).toMatchObject({ type: "openai", model: "gpt-4o", apiKey: "sk-1", api: "chat" });
    expect(
      [...config.tools.values()].map(({ name, requiresApproval, risk }) => [name, requiresApproval, risk]),
    ).toEqual([
      ["execute_command", true, "high"],
      ["write_file", true, "medium"],
      ["read_file", false, "low"],
    ]);
    expect(config.agents.get("assistant")).toMatchObject({
      type: "model",
      tools: ["execute_command", "write_file", "read_file"],
      maxIterations: 50,
      streaming: true,
      task: {
        enabled: true,
        mode: "blocking",
        workerPool: 5,
        inputTimeoutMs: 600_000,
        onTimeout: "fail",
        checkpoint: { autoResume: false },
      },
    });
    expect(config.store).toBeUndefined();
  });

  test("a tool gets the rule of its type, and the workspace beside the configuration", () => {
    const { tools } = accepted(`${BASE}tools:
  c: { type: command, allowed_commands: [ls, { command: git, args: [status] }] }
  d: { type: delete_file }
  w: { type: write_file }
  r: { type: read_file }
  q: { type: ask_user }
  m: { type: mcp, url: "http://h/mcp" }
  s: { type: mcp, command: npx, args: [-y, server, -y], env: { A: b } }
`);
    expect([...tools.values()].map(({ name, risk, idempotent }) => [name, risk, idempotent])).toEqual([
      ["c", "high", false],
      ["d", "high", false],
      ["w", "medium", false],
      ["r", "low", true],
      ["q", "low", true],
      ["m", "medium", false],
      ["s", "medium", false],
    ]);
    expect(tools.get("c")).toMatchObject({
      enabled: true,
      requiresApproval: false,
      place: { file: path(), line: 5 },
      approvalPrompt: undefined,
      editable: true,
      onAmbiguous: "ask",
      timeoutMs: 60_000,
      allowedCommands: [
        { command: "ls", args: undefined },
        { command: "git", args: ["status"] },
      ],
      workingDirectory: join(folder, "workspace"),
    });
    expect(tools.get("d")).toMatchObject({ root: join(folder, "workspace") });
    expect(tools.get("m")).toMatchObject({
      transport: { type: "streamable_http", url: "http://h/mcp", headers: {} },
      tools: undefined,
      requireApproval: [],
      allowedHeaders: [],
    });
    expect(tools.get("s")).toMatchObject({
      transport: { type: "stdio", command: "npx", args: ["-y", "server", "-y"], env: { A: "b" } },
    });
  });

  test("the place of a rule is the line that gates", () => {
    const { tools, agents } = accepted(`${LLM}agents:
  a:
    llm: demo
    requires_approval: true
tools:
  d:
    type: delete_file
    requires_approval: true
  m:
    type: mcp
    url: http://h/mcp
    tools: [x, y]
    require_approval: [y]
    allowed_headers: [X-User]
`);
    expect([tools.get("d")?.place.line, tools.get("m")?.place.line]).toEqual([10, 15]);
    expect(agents.get("a")).toMatchObject({ requiresApproval: true, approvalPlace: { line: 6 } });
    expect(tools.get("m")).toMatchObject({ tools: ["x", "y"], requireApproval: ["y"], allowedHeaders: ["x-user"] });
  });

  test("a tool that is off does not exist, and nobody who names it is blamed", () => {
    const { tools, agents } = accepted(`${LLM}agents: { a: { llm: demo, tools: [d, q] } }
tools: { d: { type: delete_file, enabled: false }, q: { type: ask_user } }
`);
    expect([...tools.keys()]).toEqual(["q"]);
    expect(agents.get("a")).toMatchObject({ tools: ["q"] });
  });

  const STORE = "session_stores: { s: { type: sqlite, database: ./s.db } }\n";
  test.each([
    ["nothing at all is said", "{}", "async", null, true],
    ["a store is named", "{ session_store: s }", "async", null, true],
    ["a store is named and memory", "{ session_store: s, task: { backend: memory } }", "async", null, true],
    ["only something about tasks is said", "{ task: { worker_pool: 9 } }", "blocking", 600_000, false],
    ["the backend is sql without a store", "{ task: { backend: sql } }", "blocking", 600_000, false],
    ["auto is said", "{ task: { hitl: { mode: auto } } }", "blocking", 600_000, false],
    ["blocking is said", "{ session_store: s, task: { hitl: { mode: blocking } } }", "blocking", 600_000, false],
    ["async is said", "{ session_store: s, task: { hitl: { mode: async } } }", "async", null, true],
    ["a deadline is said", "{ session_store: s, task: { input_timeout: 1.5 } }", "async", 1_500, true],
    ["no deadline is said", "{ task: { input_timeout: 0 } }", "blocking", null, false],
    ["no checkpoint is said", "{ session_store: s, task: { checkpoint: { enabled: false } } }", "async", null, false],
    [
      "no resuming is said",
      "{ session_store: s, task: { checkpoint: { recovery: { auto_resume: false } } } }",
      "async",
      null,
      false,
    ],
    [
      "resuming is said in blocking mode",
      "{ task: { checkpoint: { recovery: { auto_resume: true } } } }",
      "blocking",
      600_000,
      false,
    ],
  ])("mode, deadline and resuming where %s", (_what, agent, mode, inputTimeoutMs, autoResume) => {
    const text = `${LLM}agents: { a: ${agent.replace("{", "{ llm: demo, ").replace(", }", "}")} }\n${STORE}`;
    const task = accepted(text).agents.get("a")?.task;
    expect(task).toMatchObject({ mode, inputTimeoutMs, checkpoint: { autoResume } });
  });

  test("the other rules of a task", () => {
    const text = `${LLM}${STORE}agents:
  a:
    llm: demo
    session_store: s
    task:
      enabled: false
      on_timeout: deny
      checkpoint: { strategy: event, interval: { every_n_iterations: 5 }, recovery: { auto_resume_hitl: true, resume_timeout: 3600 } }
`;
    expect(accepted(text).agents.get("a")?.task).toMatchObject({
      enabled: false,
      onTimeout: "deny",
      checkpoint: { autoResumeHitl: true, resumeTimeoutMs: 3_600_000 },
    });
    expect(accepted(BASE).agents.get("a")?.task).toMatchObject({
      enabled: true,
      onTimeout: "fail",
      workerPool: 5,
      checkpoint: { autoResumeHitl: false, resumeTimeoutMs: null },
    });
  });

  test("the server", () => {
    expect(accepted(BASE).server).toEqual({
      host: undefined,
      port: undefined,
      grpcPort: undefined,
      allowedHosts: [],
      allowedOrigins: [],
      auth: { tokens: [], jwt: undefined, selfApproval: "allow" },
      answersWithoutId: "allow",
      a2a: { profile: "1.0.1", legacy: true, messageIds: "unique" },
      push: { allow: [] },
      limits: { rate: 1_000, burst: 2_000 },
      agUi: { tanstack: false },
      trustedProxy: false,
    });
  });

  test("everything at once, as the documentation shows it", () => {
    writeFileSync(join(folder, "deployer.js"), "");
    const text = /```yaml\n(# Everything[\s\S]*?)```/.exec(
      readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8"),
    )?.[1];
    const environment = {
      OPENAI_API_KEY: "k",
      ANTHROPIC_API_KEY: "k",
      ANA_TOKEN: "t",
      REMOTE_TOKEN: "r",
      DATABASE_URL: "postgres://u:p@h/db",
    };
    const config = accepted(text ?? "", environment);
    expect(config.store).toEqual({ name: "sqlite", type: "sqlite", database: join(folder, "holdpoint.db") });
    expect([...config.agents.values()].map(({ type }) => type)).toEqual(["model", "model", "a2a", "code"]);
    expect(config.server.auth.tokens).toEqual([
      { name: "ana", token: "t", scopes: ["task:read", "decide"], tenant: "default" },
    ]);
  });
});

test("every example of the documentation is right", () => {
  writeFileSync(join(folder, "deployer.js"), "");
  const documentation = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
  const examples = [...documentation.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text ?? "");
  expect(examples.length).toBeGreaterThan(5);
  const names = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANA_TOKEN", "REMOTE_TOKEN", "MODEL", "HOST"];
  const environment = {
    ...Object.fromEntries(names.map((name) => [name, "x"])),
    TEMP: "1",
    DATABASE_URL: "postgres://h",
  };
  for (const text of examples) {
    const isScript = text.startsWith("scenarios:");
    const missing = [
      text.includes("llms:\n") ? "" : LLM,
      text.includes("agents:\n") ? "" : `agents: { a: { llm: ${text.includes("gpt:") ? "gpt" : "demo"} } }\n`,
    ];
    expect(textsOf(isScript ? load(BASE, {}, text) : load(text + missing.join(""), environment))).toEqual([]);
  }
});

describe("what is allowed but odd is a warning", () => {
  test.each([
    [
      "a command tool without commands",
      "tools: { t: { type: command } }",
      'tool "t" can run nothing: nothing is listed in "allowed_commands"; name there what may be proposed, such as [ls, git]',
    ],
    [
      "a command tool with no command in its list, gated or not",
      "tools: { t: { type: command, requires_approval: true, allowed_commands: [] } }",
      'tool "t" can run nothing: nothing is listed in "allowed_commands"; name there what may be proposed, such as [ls, git]',
    ],
    [
      "a store that nobody names",
      "session_stores: { s: { type: sqlite, database: ./s.db } }",
      'no agent names the session store "s"',
    ],
    ["a port that nobody listens on yet", "server: { grpc_port: 4142 }", '"grpc_port" is not read by this version'],
    [
      "an issuer that nobody asks yet",
      "server: { auth: { jwt: { issuer: i, audience: a, jwks_url: https://h/jwks } } }",
      '"jwt" is not read by this version',
    ],
  ])("%s", (_what, text, expected) => {
    const loaded = load(`${BASE}${text}\n`);
    expect(loaded.ok && loaded.warnings.map(({ level, text: said }) => [level, said])).toEqual([["warning", expected]]);
  });
});

describe("variables", () => {
  const llm = (text: string) => `agents: { a: { llm: x } }\nllms: { x: { type: openai, ${text} } }\n`;

  test("stand unquoted in flow style, quoted, and in the middle of a text", () => {
    const text = llm(
      `model: \${M}, api_key: "\${K}", host: http://\${H}:\${P}/v1, temperature: \${T}, max_tokens: \${N}`,
    );
    const config = accepted(text, { M: "123", K: "k", H: "h", P: "8080", T: "0.5", N: "100" });
    expect(config.llms.get("x")).toMatchObject({
      model: "123",
      apiKey: "k",
      host: "http://h:8080/v1",
      temperature: 0.5,
      maxTokens: 100,
    });
  });

  test("switch things on and off", () => {
    const text = `${BASE}tools: { d: { type: delete_file, requires_approval: \${ASK} } }\n`;
    expect(accepted(text, { ASK: "true" }).tools.get("d")?.requiresApproval).toBe(true);
    expect(textsOf(load(text, { ASK: "yes" }))).toEqual([`"requires_approval" must be true or false, not "\${ASK}"`]);
  });

  test("in comments are not read", () => {
    expect(textsOf(load(`${BASE}# api_key: \${NO_KEY}\n`))).toEqual([]);
  });

  test("are written out with two dollars", () => {
    const text = BASE.replace("llm: demo", () => `llm: demo, instruction: "Say $\${HOME}"`);
    expect(accepted(text, { HOME: "/root" }).agents.get("a")).toMatchObject({ instruction: `Say \${HOME}` });
  });

  test("are nothing in a script", () => {
    const loaded = load(BASE, { A: "x" }, `scenarios: [ { match: ., turns: [ { say: "\${A}" } ] } ]`);
    expect(loaded.ok && loaded.config.llms.get("demo")).toMatchObject({
      script: { scenarios: [{ turns: [{ say: `\${A}` }] }] },
    });
  });

  test("of a prototype do not exist", () => {
    expect(textsOf(load(llm(`model: \${toString}`)))).toEqual(["the environment variable toString is not set"]);
  });
});

test("a script becomes data, word for word", () => {
  const script = `scenarios:
  - match: "three"
    turns:
      - say: "Three files then."
        call: [ { tool: execute_command, args: { command: "ls", deep: { list: [1, null, true, { a: b }] } } } ]
        delay_ms: 50
      - say: "Finished."
        denied: { say: "Understood." }
  - match: "."
    turns:
      - ask: { question: "Which database?", choices: [pg, sqlite], multiple: true }
      - say: "You chose {answer}."
`;
  const loaded = load(BASE, {}, script);
  expect(loaded.ok && loaded.config.llms.get("demo")).toEqual({
    type: "scripted",
    file: join(folder, "demo.script.yaml"),
    script: {
      scenarios: [
        {
          match: "three",
          turns: [
            {
              say: "Three files then.",
              call: [{ tool: "execute_command", args: { command: "ls", deep: { list: [1, null, true, { a: "b" }] } } }],
              delayMs: 50,
            },
            { say: "Finished.", denied: { say: "Understood." } },
          ],
        },
        {
          match: ".",
          turns: [
            { ask: { question: "Which database?", choices: ["pg", "sqlite"], multiple: true } },
            { say: "You chose {answer}." },
          ],
        },
      ],
    },
  });
});

test("anchors and aliases save typing", () => {
  const { agents } = accepted(`${LLM}agents:
  a: &a { llm: demo, task: { worker_pool: 7 } }
  b: *a
`);
  expect(agents.get("b")).toMatchObject({ name: "b", task: { workerPool: 7 } });
});

describe("a problem on the screen", () => {
  const screen = (text: string) => {
    const loaded = load(text);
    return problemsOf(loaded)
      .map((problem) => formatProblem(problem, loaded.sources.get(problem.file)))
      .join("\n\n")
      .replaceAll(`${folder}/`, "");
  };

  test("shows the line, a caret and the consequence, as the documentation says", () => {
    const documentation = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");
    const seen = screen(`${BASE}tools:\n  delete_file:\n    type: delete_file\n    require_approval: true\n`);
    expect(documentation).toContain(seen);
    expect(seen).toBe(
      `holdpoint.yaml:7:5  error  unknown key "require_approval". Did you mean "requires_approval"?
    6 |     type: delete_file
    7 |     require_approval: true
            ^^^^^^^^^^^^^^^^
  This tool would run WITHOUT approval.`,
    );
  });

  test("puts the caret right after wide characters, and shows what cannot be seen", () => {
    expect(screen(`${BASE}tools: { t: { type: ask_user, approval_prompt: "📝 漢", rsik: low } }\n`)).toContain(
      `
    4 | tools: { t: { type: ask_user, approval_prompt: "📝 漢", rsik: low } }
                                                                ^^^^
`,
    );
    expect(screen(`llms:\n\tdemo: "\u001b[31m\u202e"\n`)).toBe(
      `holdpoint.yaml:2:1  error  a tab cannot indent in YAML: use spaces
    1 | llms:
    2 | →demo: "\uFFFD[31m\uFFFD"
        ^`,
    );
  });

  test("cuts a long line around the caret", () => {
    const lines = screen(
      `${BASE}tools: { t: { type: ask_user, approval_prompt: "${"x".repeat(500)}", rsik: low } }\n`,
    ).split("\n");
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(180);
    const caret = lines.find((line) => /^ +\^+$/.test(line)) ?? "";
    expect(lines[lines.indexOf(caret) - 1]?.slice(caret.indexOf("^"), caret.length)).toBe("rsik");
  });

  test("never shows a secret that stands in the file", () => {
    const text = `llms:
  a: { type: openai, model: m, api_key: hunter2-a, temprature: 1 }
  b:
    type: openai
    api_kee: hunter2-b
    api_key: |
      hunter2-c
    host: 5
agents:
  r: { type: a2a, url: "http://ana:hunter2-d@h", headers: { X-Any: hunter2-e }, dialekt: a }
server:
  auth: { tokens: [ { name: x, token: hunter2-f, scopes: [decide], tennant: y } ] }
session_stores:
  s: { type: postgres, url: "postgres://u:hunter2-g@h/db", databse: x }
  t: { type: sk-hunter2-hhhhhhhh }
`;
    const seen = screen(text);
    expect(problemsOf(load(text)).length).toBeGreaterThan(6);
    expect(seen).toContain("api_kee: •••••••••");
    expect(seen).not.toContain("hunter2");
    expect(JSON.stringify(problemsOf(load(text)))).not.toContain("hunter2");
  });

  test("never shows a secret even where YAML gave up", () => {
    expect(screen('llms:\n  a: { api_key: hunter2, "x\n')).not.toContain("hunter2");
    expect(screen("llms:\n\ttoken: hunter2\n")).not.toContain("hunter2");
  });
});

test("what variables hold is kept apart from the arguments that a server is started with", () => {
  const long = "x".repeat(100);
  const rule = `type: mcp, command: run, args: [serve, "--key=\${KEY}", ${long}], env: { A: "\${KEY}" }`;
  const loaded = load(`${BASE}tools: { m: { ${rule} } }\n`, { KEY: "sk-live-12345678" });
  const tool = loaded.ok ? loaded.config.tools.get("m") : undefined;
  expect(tool).toMatchObject({
    transport: {
      args: ["serve", "--key=sk-live-12345678", long],
      shownArgv: ["run", "serve", `--key=\${KEY}`, long],
      variables: { KEY: "sk-live-12345678" },
    },
  });
});
