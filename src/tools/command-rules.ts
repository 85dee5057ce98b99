/** Which commands may be proposed at all. `allowed_commands` is a closed set; it never means "approved". */
import { NOTHING_ALLOWED } from "../config/commands.ts";
import type { AllowedCommand } from "../config/config.ts";
import { TIME_OVER, withinMs } from "../ports/watchdog.ts";
import type { Warning } from "./command-warnings.ts";

const MATCH_MS_MAX = 250;

export interface CommandRule {
  readonly gated: boolean;
  readonly allowed: readonly Entry[];
}

export interface Entry {
  readonly command: string;
  /** One for each argument; undefined: any arguments. */
  readonly patterns: readonly RegExp[] | undefined;
}

export function createCommandRule(gated: boolean, allowed: readonly AllowedCommand[]): CommandRule {
  return {
    gated,
    allowed: allowed.map(({ command, args }) => ({ command, patterns: args?.map(anchored) })),
  };
}

/** The whole argument has to match. Compiled alone first: "a)|(b" must not climb out of the brackets. */
function anchored(source: string): RegExp {
  new RegExp(source);
  return new RegExp(`^(?:${source})$`);
}

/** Why this may not be proposed, or undefined. */
export function findRefusal(rule: CommandRule, argv: readonly string[]): string | undefined {
  const [word = "", ...args] = argv;
  if (word.includes("/") && !word.startsWith("/")) {
    return `${JSON.stringify(word)} is a path that depends on the folder; give the program's name or its absolute path`;
  }
  // An empty set is closed too, whoever is asked.
  if (rule.allowed.length === 0) return `this tool ${NOTHING_ALLOWED}`;
  const named = rule.allowed.filter(({ command }) => command === word);
  if (named.length === 0) return `${JSON.stringify(word)} is not allowed; allowed are ${list(rule.allowed)}`;
  if (named.some((entry) => fits(entry, args))) return undefined;
  return `these arguments of ${word} are not allowed; allowed are ${list(named)}`;
}

/**
 * Why something that nobody looks at may not run: it runs other programs or reaches the network. An entry that says every argument may name
 * such a program (`npm test`), but no option that runs one more.
 */
export function findUnwatched(rule: CommandRule, argv: readonly string[], warnings: readonly Warning[]) {
  if (rule.gated) return undefined;
  const [word = "", ...args] = argv;
  const pinned = rule.allowed.some((entry) => entry.command === word && entry.patterns && fits(entry, args));
  const reason = warnings.find(({ about }) => about === "option" || (about === "program" && !pinned));
  return reason && `${reason.text}, and this tool asks nobody; it needs requires_approval: true`;
}

function fits({ patterns }: Entry, args: readonly string[]): boolean {
  if (!patterns) return true;
  if (patterns.length !== args.length) return false;
  // A pattern that backtracks for ever on what an agent made up is one that does not match.
  const matched = withinMs(MATCH_MS_MAX, () => patterns.every((pattern, i) => pattern.test(args[i] ?? "")));
  return matched !== TIME_OVER && matched;
}

function list(entries: readonly Entry[]): string {
  const shown = entries.map(({ command, patterns }) =>
    [command, ...(patterns?.map(({ source }) => `/${source}/`) ?? ["…"])].join(" "),
  );
  return shown.join(", ");
}
