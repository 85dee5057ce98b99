/** The command line: what can be called, and how it ends. Data goes to stdout, everything else to stderr. */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { isFault } from "../errors.ts";
import { auditHead, auditVerify } from "./audit.ts";
import { type ServeFlags, serveCommand } from "./serve.ts";

/** Exit codes, the same for every command. */
const EXIT = { failed: 1, usage: 2, config: 3 } as const;

const program = new Command("holdpoint")
  .description("The human gate for AI agents: an agent stops, a person decides, the agent goes on.")
  .version("0.1.0")
  .showHelpAfterError("(holdpoint --help shows what there is)")
  .exitOverride();

for (const [name, description] of [
  ["dev", "start a server, and play a task that is paused, killed, decided and finished"],
  ["serve", "start a server"],
] as const) {
  program
    .command(name)
    .description(description)
    .addOption(new Option("--config <file>", "holdpoint.yaml to use").hideHelp())
    .option("--host <host>", "address to listen on", "127.0.0.1")
    .option("--port <n>", "port to listen on; 0 takes a free one", parsePort, 4141)
    .option("--data <dir>", "folder for the database and everything else that is kept", ".holdpoint")
    .addOption(new Option("--no-open", "do not open a browser").hideHelp())
    .action((flags: ServeFlags) => serveCommand(name, flags));
}

const audit = program
  .command("audit")
  .description("prove what was decided, by whom, and that nothing was changed since");
audit
  .command("verify")
  .description("check every event and every seal; with --head also that the chain still holds a head exported earlier")
  .option("--data <dir>", "data folder", ".holdpoint")
  .option("--head <file>", 'what "audit head" printed earlier ("-" reads it from standard input)')
  .option("--json", "print one JSON object")
  .action(async (flags) => process.exit((await auditVerify(flags)) ? 0 : EXIT.failed));
audit
  .command("head")
  .description("print the newest seal; keep it somewhere else")
  .option("--data <dir>", "data folder", ".holdpoint")
  .action((flags) => auditHead(flags));

function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError("a port is a number from 0 to 65535.");
  return port;
}

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exit(error.exitCode === 0 ? 0 : EXIT.usage);
  if (!isFault(error)) throw error;
  process.stderr.write(`holdpoint: ${error.message}\n`);
  process.exit(error.code === "usage-invalid" ? EXIT.usage : EXIT.failed);
}
