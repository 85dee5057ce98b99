/** `holdpoint check` and `holdpoint init`: what a configuration gates, and one to begin with. */
import { dirname, join } from "node:path";
import { DEMO_FILES, DEMO_SCRIPT_YAML, DEMO_YAML, demoConfig } from "../config/demo.ts";
import { formatGates, listGates } from "../config/gates.ts";
import { loadConfig } from "../config/load.ts";
import { formatProblem, type Problem } from "../config/problem.ts";
import { fileExists, makePrivateFolder } from "../ports/files.ts";
import { systemIds } from "../ports/ids.ts";
import { createFile } from "../ports/new-file.ts";
import { CONFIG_FILE } from "../server/compose.ts";
import { dataFolder } from "./data-folder.ts";
import { Ending, EXIT, type ExitCode } from "./exit.ts";
import { type Terminal, toJsonLine } from "./terminal.ts";
import { COMMAND } from "./words.ts";

export interface CheckFlags {
  readonly data: string;
  readonly json?: boolean;
}

/** Every problem at once; without any, every gate. */
export function checkCommand(file: string | undefined, flags: CheckFlags, { env, out, note }: Terminal): ExitCode {
  const data = dataFolder(flags.data).path;
  if (file === undefined && !fileExists(CONFIG_FILE)) {
    note(`There is no ${CONFIG_FILE} here; this is the built-in demo. "${COMMAND} init" saves it.\n\n`);
    const gates = listGates(demoConfig(data));
    out(flags.json ? toJsonLine({ ok: true, problems: [], gates }) : `${formatGates(gates)}\n`);
    if (!flags.json) note(NO_MISTAKES);
    return EXIT.done;
  }
  const loaded = loadConfig(file ?? CONFIG_FILE, env, data);
  const problems = loaded.ok ? loaded.warnings : loaded.problems.map(adviseCheck);
  const gates = loaded.ok ? listGates(loaded.config) : [];
  if (flags.json) out(toJsonLine({ ok: loaded.ok, problems, gates }));
  else {
    const told = problems.map((problem) => `${formatProblem(problem, loaded.sources.get(problem.file))}\n\n`).join("");
    // What is wrong is what was asked for: it is the data of this command.
    out(loaded.ok ? `${told}${formatGates(gates)}\n` : `${told}${count(problems.length, "error")}.\n`);
    if (loaded.ok) note(problems.length === 0 ? NO_MISTAKES : `\n${count(problems.length, "warning")}, no errors.\n`);
  }
  return loaded.ok ? EXIT.done : EXIT.config;
}

const NO_MISTAKES = "\nNo mistakes.\n";

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

/** A file that cannot be read is named to this command without a flag. */
function adviseCheck(problem: Problem): Problem {
  const advice = problem.consequence?.replace(
    "Name another with --config",
    `Name another with "${COMMAND} check <file>"`,
  );
  return advice === undefined ? problem : { ...problem, consequence: advice };
}

const FILES: readonly (readonly [name: string, text: string])[] = [
  [CONFIG_FILE, DEMO_YAML],
  ["demo.script.yaml", DEMO_SCRIPT_YAML],
  [".gitignore", ".holdpoint/\n"],
  // Something to lose: the script is about these.
  ...Object.entries(DEMO_FILES).map(([name, text]) => [join("workspace", name), text] as const),
];

/** Writes what is not there yet, and never over anything. */
export function initCommand({ out, note }: Terminal): ExitCode {
  if (fileExists(CONFIG_FILE)) throw new Ending(EXIT.conflict, `${CONFIG_FILE} is there already; nothing was written`);
  for (const [name, text] of FILES) {
    makePrivateFolder(dirname(name));
    if (createFile(name, text, systemIds.token())) out(`wrote ${name}\n`);
    else note(`${name} is there already and stays as it is\n`);
  }
  note(`\nNow: ${COMMAND} check, then ${COMMAND} dev\n`);
  return EXIT.done;
}
