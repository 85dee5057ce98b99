/** The command line: what can be called, and how it ends. Data goes to stdout, everything else to stderr. */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { DATA_FOLDER } from "./data-folder.ts";
import { EXIT, endingOf } from "./exit.ts";
import { createTerminal } from "./terminal.ts";

const terminal = createTerminal();

/** Each command is loaded when it is called: none waits for what only another needs. */
const load = {
  serve: () => import("./serve.ts"),
  run: () => import("./run.ts"),
  inbox: () => import("./inbox.ts"),
  decide: () => import("./decide.ts"),
  check: () => import("./check.ts"),
  audit: () => import("./audit.ts"),
};

const program = new Command("holdpoint")
  .description("The human gate for AI agents: an agent stops, a person decides, the agent goes on.")
  .version("0.1.0")
  .showHelpAfterError("(holdpoint --help shows what there is)")
  .exitOverride();

for (const [name, description] of [
  ["dev", "start a server and show what waits; without a holdpoint.yaml, the demo"],
  ["serve", "start a server"],
] as const) {
  withData(program.command(name).description(description))
    .option("--config <file>", "holdpoint.yaml to use")
    .option("--host <host>", "address to listen on (default: 127.0.0.1)")
    .option("--port <n>", "port to listen on; 0 takes a free one (default: 4141)", parsePort)
    .addOption(new Option("--no-open", "do not open a browser").hideHelp())
    .action(async (flags) => end(await (await load.serve()).serveCommand(name, flags, terminal)));
}

withServer(program.command("run").description("send a message to an agent, follow it, and decide what it asks"))
  .argument("<agent>")
  .argument("<message>")
  .option("--wait <time>", "wait at most this long, also for others to decide (10m, 90s)", parseTime)
  .option("--no-wait", "come back at a pause (exit 10) instead of asking here")
  .option("--json", "print the task as one JSON object")
  .action(async (agent, message, { wait, ...flags }) => {
    // Without either flag commander says true.
    end(await (await load.run()).runCommand(agent, message, wait === true ? flags : { ...flags, wait }, terminal));
  });

withServer(program.command("inbox").description("list what waits for a person"))
  .option("--agent <name>", "only of this agent")
  .addOption(new Option("--risk <risk>", "only of this risk").choices(["low", "medium", "high"]))
  .option("--watch", "go on, and print what is opened and closed")
  .option("--json", "print one JSON object; with --watch, one on each line")
  .action(async (flags) => end(await (await load.inbox()).inboxCommand(flags, terminal)));

withServer(program.command("show").description("print all of a request, or the story of a task"))
  .argument("<id>")
  .option("--json", "print one JSON object")
  .action(async (id, flags) => end(await (await load.inbox()).showCommand(id, flags, terminal)));

withServer(program.command("approve").description("approve a request: exactly what it shows will run"))
  .argument("<id>")
  .option("--edit", "change the arguments in $EDITOR first")
  .option("--args <file>", 'run with the arguments in this JSON file instead ("-" reads standard input)')
  .option("--hash <digest>", "only if this is still its digest; needed for high risk without a terminal")
  .option("--note <text>", "why, for the record")
  .action(async (id, flags) => end(await (await load.decide()).approveCommand(id, flags, terminal)));

withServer(program.command("deny").description("deny a request; the agent goes on and is told why"))
  .argument("<id>")
  .requiredOption("--reason <text>", "why, for the agent and the record")
  .action(async (id, flags) => end(await (await load.decide()).denyCommand(id, flags, terminal)));

withServer(program.command("answer").description("answer a question"))
  .argument("<id>")
  .option("--set <name=value>", "one value; may be repeated", (set: string, sets: string[] = []) => [...sets, set])
  .option("--json <file>", 'all values from this JSON file ("-" reads standard input)')
  .action(async (id, flags) => end(await (await load.decide()).answerCommand(id, flags, terminal)));

withServer(program.command("cancel").description("cancel a task; what it asked is closed, what it did stays"))
  .argument("<task>")
  .action(async (task, flags) => end(await (await load.decide()).cancelCommand(task, flags, terminal)));

program
  .command("init")
  .description("write a holdpoint.yaml that works, with a scripted model and something to lose")
  .action(async () => end((await load.check()).initCommand(terminal)));

withData(program.command("check").description("check a configuration and print every gate"))
  .argument("[file]", "default: holdpoint.yaml")
  .option("--json", "print one JSON object")
  .action(async (file, flags) => end((await load.check()).checkCommand(file, flags, terminal)));

const audit = program
  .command("audit")
  .description("prove what was decided, by whom, and that nothing was changed since");
withData(
  audit
    .command("verify")
    .description(
      "check every event and every seal; with --head also that the chain still holds a head exported earlier",
    ),
)
  .option("--head <file>", 'what "audit head" printed earlier ("-" reads it from standard input)')
  .option("--json", "print one JSON object")
  .action(async (flags) => end((await (await load.audit()).auditVerify(flags)) ? EXIT.done : EXIT.failed));
withData(audit.command("head").description("print the newest seal; keep it somewhere else")).action(async (flags) => {
  await (await load.audit()).auditHead(flags);
  end(EXIT.done);
});

function withData(command: Command): Command {
  return command.option("--data <dir>", "folder for the database and everything else that is kept", DATA_FOLDER);
}

function withServer(command: Command): Command {
  return withData(command)
    .option("--url <url>", "server to talk to (default: HOLDPOINT_URL, else the one that runs on the data folder)")
    .option("--config <file>", "holdpoint.yaml to use when no server runs");
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError("a port is a number from 0 to 65535.");
  return port;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function parseTime(text: string): number {
  const [, count = "", unit = ""] = /^(\d+)(ms|s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(count) * (UNITS_MS[unit] ?? 0);
  if (ms <= 0) throw new InvalidArgumentError("a time is a number and a unit: 500ms, 90s, 10m, 2h, 1d.");
  return ms;
}

/** Ends the process once everything is written. */
function end(code: number): void {
  process.stdout.write("", () => process.exit(code));
}

// Whoever reads us may stop reading ("| head").
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT.done);
});

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) end(error.exitCode === 0 ? EXIT.done : EXIT.usage);
  else {
    const ending = endingOf(error);
    if (!ending) throw error;
    if (ending.message !== "") process.stderr.write(`holdpoint: ${ending.message}\n`);
    end(ending.exitCode);
  }
}
