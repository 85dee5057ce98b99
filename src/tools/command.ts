/** The tool that runs one program: without a shell, exactly the words that were shown. */
import type { ToolConfig } from "../config/config.ts";
import { COMMAND_ENVIRONMENT, type CommandEnd, type Commands } from "../ports/commands.ts";
import { isInside } from "../ports/inside.ts";
import { canonicalJson, type JsonObject } from "../task/json.ts";
import { splitCommandLine } from "./command-line.ts";
import { findForbiddenWord } from "./command-paths.ts";
import { createCommandRule, findRefusal, findUnwatched } from "./command-rules.ts";
import { findWarnings } from "./command-warnings.ts";
import { builtinCheck, builtinFacts, COUNT, createPlanReader, exactly, SHA256, TEXT, TEXTS } from "./plan.ts";
import { renderPrompt } from "./prompt.ts";
import { CallRefused, type Finished, type Tool } from "./tool.ts";

export type CommandConfig = ToolConfig & { readonly type: "command" };

export interface CommandParts {
  readonly commands: Commands;
  /** Configuration, data folder and token: absolute paths, each with everything below it. */
  readonly protectedPaths: readonly string[];
}

/** Everything about one run. What was shown, was hashed; what was hashed, runs. */
export type CommandPlan = {
  readonly action: "run";
  readonly argv: readonly string[];
  /** The real path of the program. */
  readonly executable: string;
  /** Of its bytes: another program at the same path is another plan. */
  readonly executableSha256: string;
  /** The real path of the folder. */
  readonly cwd: string;
  /** All variables that the program finds, by name. */
  readonly env: readonly string[];
  /** The value of PATH. */
  readonly searchPath: string;
  readonly timeoutMs: number;
  readonly outputMax: number;
  /** What a person should know before approving. */
  readonly warnings: readonly string[];
};

const OUTPUT_BYTES_MAX = 1024 * 1024;
const COMMAND_LENGTH_MAX = 32 * 1024;
const PATH_LENGTH_MAX = 4096;

const PARAMETERS: JsonObject = exactly(
  {
    command: {
      type: "string",
      minLength: 1,
      maxLength: COMMAND_LENGTH_MAX,
      description: "One program and its arguments. Quotes work as in a shell; nothing is expanded.",
    },
    working_directory: {
      type: "string",
      minLength: 1,
      maxLength: PATH_LENGTH_MAX,
      description: "Folder to run in, inside the configured one.",
    },
  },
  ["working_directory"],
);

const check = builtinCheck(PARAMETERS);

const readPlan = createPlanReader<CommandPlan>(
  exactly({
    action: { const: "run" },
    argv: { ...TEXTS, minItems: 1 },
    executable: { type: "string", pattern: "^/" },
    executableSha256: SHA256,
    cwd: { type: "string", pattern: "^/" },
    env: TEXTS,
    searchPath: TEXT,
    timeoutMs: { type: "integer", minimum: 1 },
    outputMax: COUNT,
    warnings: TEXTS,
  }),
);

export function createCommandTool(config: CommandConfig, { commands, protectedPaths }: CommandParts): Tool {
  const rule = createCommandRule(config.requiresApproval, config.allowedCommands);
  // Through JSON: an entry without patterns must hash like one, not like one with undefined in it.
  const allowedCommands = config.allowedCommands.map(({ command, args }) => ({ command, args: args ?? null }));
  const policy: JsonObject = { allowedCommands, workingDirectory: config.workingDirectory };

  async function plan(args: JsonObject): Promise<CommandPlan> {
    check(args);
    const split = splitCommandLine(textOf(args.command));
    if (!split.ok) throw new CallRefused(split.code, split.text);
    const argv = split.words;
    const refusal = findRefusal(rule, argv);
    if (refusal) throw new CallRefused("not-allowed", refusal);
    const executable = await commands.findProgram(argv[0] ?? "");
    if (executable === undefined) {
      const text = `there is no program ${JSON.stringify(argv[0])} in ${commands.searchPath}`;
      throw new CallRefused("arguments-invalid", text);
    }
    const warnings = findWarnings(argv, executable);
    const unwatched = findUnwatched(rule, argv, warnings);
    if (unwatched) throw new CallRefused("not-allowed", unwatched);
    const executableSha256 = await commands.hashProgram(executable);
    if (executableSha256 === undefined) {
      throw new CallRefused(
        "not-allowed",
        `${executable} cannot be read, so nobody could tell that it is still the same`,
      );
    }
    const home = await folderOf(config.workingDirectory);
    const cwd = await findWorkingDirectory(home, args.working_directory);
    const forbidden = await findForbidden(argv, home, cwd);
    if (forbidden) throw new CallRefused("not-allowed", forbidden);
    const own = isInside(executable, home) ? ["the program lies in the folder that the agent works in"] : [];
    return {
      action: "run",
      argv,
      executable,
      executableSha256,
      cwd,
      env: COMMAND_ENVIRONMENT,
      searchPath: commands.searchPath,
      timeoutMs: config.timeoutMs,
      outputMax: OUTPUT_BYTES_MAX,
      warnings: [...warnings.map(({ text }) => text), ...own],
    };
  }

  function findForbidden(argv: readonly string[], home: string, cwd: string): Promise<string | undefined> {
    return findForbiddenWord(commands, argv, { gated: config.requiresApproval, home, cwd, protectedPaths });
  }

  async function folderOf(path: string): Promise<string> {
    const folder = await commands.findFolder(path);
    if (folder === undefined) throw new CallRefused("not-allowed", `there is no folder ${path}`);
    return folder;
  }

  async function findWorkingDirectory(home: string, wanted: unknown): Promise<string> {
    if (wanted === undefined) return home;
    const path = textOf(wanted);
    if (/\p{C}/u.test(path)) throw new CallRefused("arguments-invalid", "/working_directory: has control characters");
    const folder = await commands.findFolder(path.startsWith("/") ? path : `${home}/${path}`);
    // One text for a folder outside and for none: what exists elsewhere is nobody's business.
    if (folder === undefined || !isInside(folder, home)) {
      throw new CallRefused("not-allowed", `working_directory must be a folder inside ${home}`);
    }
    return folder;
  }

  return {
    name: config.name,
    description:
      "Runs one program with its arguments and returns what it prints. There is no shell: no pipes, redirections, " +
      "variables or wildcards.",
    parameters: PARAMETERS,
    gated: config.requiresApproval,
    risk: config.risk,
    editable: config.editable,
    idempotent: config.idempotent,
    onAmbiguous: config.onAmbiguous,
    rule: config.place,
    prepare: async (args) => builtinFacts(config, policy, PARAMETERS, await plan(args)),
    promptFor: (args) => renderPrompt(config.approvalPrompt, config.name, inputOf(args)),
    async run({ facts, signal }) {
      const { action, env, warnings, ...command } = readPlan(facts.plan);
      const home = (await commands.findFolder(config.workingDirectory)) ?? command.cwd;
      // A link may have been put there since it was looked at.
      const forbidden = await findForbidden(command.argv, home, command.cwd);
      if (forbidden) return { outcome: "failed", result: `not run: ${forbidden}` };
      return report(await commands.run(command, signal), command.timeoutMs);
    },
  };
}

function report(end: CommandEnd, timeoutMs: number): Finished {
  if (end.type === "not-started") return { outcome: "failed", result: `not run: ${end.why}` };
  const { exitCode, signal, stdout, stderr, bytesCut, stoppedBy } = end;
  const result: JsonObject = {
    exitCode,
    ...(signal === null ? {} : { signal }),
    stdout,
    stderr,
    ...(bytesCut > 0 ? { truncated: `${bytesCut} more bytes were printed; the program was ended` } : {}),
    ...(stoppedBy === "timeout" ? { timedOut: `ended after ${timeoutMs} ms` } : {}),
    ...(stoppedBy === "abort" ? { canceled: true } : {}),
  };
  return { outcome: exitCode === 0 && stoppedBy === undefined ? "done" : "failed", result };
}

function inputOf(args: JsonObject): string {
  return typeof args.command === "string" ? args.command : canonicalJson(args);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
