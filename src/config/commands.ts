/** `allowed_commands`: the closed set of what may be proposed, and which entries open more than they name. */
import { isMap } from "yaml";
import type { AllowedCommand } from "./config.ts";
import { checkPattern } from "./pattern.ts";
import { findBareDanger, programNames } from "./programs.ts";
import { readTextValue, writtenText } from "./scalar.ts";
import { type Item, Section } from "./section.ts";
import type { Report, Span, Value } from "./source.ts";

export interface ReadCommand extends AllowedCommand {
  /** For people. */
  readonly written: string;
  readonly span: Span;
}

/** Told of a tool whose closed set is empty or absent, when it is loaded and when it is called. */
export const NOTHING_ALLOWED =
  'can run nothing: nothing is listed in "allowed_commands"; name there what may be proposed, such as [ls, git]';

const COMMAND_KEYS = {
  command: {},
  args: { lost: "Any arguments would be allowed." },
} as const;

export function readCommand(value: Value, report: Report): ReadCommand | undefined {
  if (!isMap(value.node)) {
    const text = readTextValue(value, { name: "an allowed command" }, report);
    const item = text === undefined ? undefined : { text, written: writtenText(value), span: value.span };
    return item && checkName(item, report) ? { ...named(item), args: undefined } : undefined;
  }
  const entry = new Section(value, value.span, { keys: COMMAND_KEYS, what: "an allowed command" }, report);
  entry.require("command");
  entry.require("args", ": a pattern for each argument, [] for none");
  const item = entry.item("command");
  const args = entry.items("args")?.flatMap((arg) => {
    const pattern = readTextValue(arg, { name: 'an entry of "args"' }, report);
    return pattern !== undefined && checkPattern(pattern, arg.span, "", report) ? [pattern] : [];
  });
  return item && args && checkName(item, report) ? { ...named(item), args } : undefined;
}

function named({ text, written, span }: Item) {
  return { command: text, written, span };
}

function checkName({ text, written, span }: Item, report: Report): boolean {
  if (!/\s/.test(text)) return true;
  const [command, ...args] = written.trim().split(/\s+/);
  const better = `{ command: ${command}, args: [${args.map((arg) => JSON.stringify(arg)).join(", ")}] }`;
  report.error(span, `an allowed command is the name of a program, not a command line; write ${better}`);
  return false;
}

/** What an entry lets an agent do besides what its name says, in words that follow that name. */
export function findEntryDanger({ command, args }: AllowedCommand): string | undefined {
  if (args !== undefined && !args.some(takesAnything)) return undefined;
  return findBareDanger(programNames(command));
}

/** A pattern that lets through something that nobody would list is as good as none. */
const UNLIKELY = "--any 'thing'; at $(all)/#";

function takesAnything(pattern: string): boolean {
  return new RegExp(`^(?:${pattern})$`).test(UNLIKELY);
}
