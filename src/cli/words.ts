/** Small pieces of text that every command needs: times, tables, follow-up commands. */
import type { DecisionView, RequestView } from "../client/client.ts";
import { describeDecision } from "../task/request-view.ts";
import { makeVisible } from "../tools/prompt.ts";
import { sizeOf } from "./wrap.ts";

export const COMMAND = "npx holdpoint";

/** Text from outside, for a person: nothing in it can hide, move the cursor or colour anything. */
export function visible(text: string): string {
  return makeVisible(text, { newlines: true, tabs: true });
}

/** The same for text that a tool has made visible already: what it named is not named again. */
export function visibleOnce(text: string): string {
  return text
    .split(/(⟦U\+[0-9A-F]{4,6}⟧|⟨[\d,]+ (?:space|tab|newline)s?⟩)/)
    .map((piece, i) => (i % 2 === 1 ? piece : visible(piece)))
    .join("");
}

/** On one line, for lists; the whole stands elsewhere. */
export function summary(text: string, charsMax = 60): string {
  const line = makeVisible(text.replaceAll(/\s+/g, " ").trim());
  const characters = Array.from(line);
  return characters.length > charsMax ? `${characters.slice(0, charsMax - 1).join("")}…` : line;
}

/** Cut to fit into so many columns of a list. */
export function cutTo(text: string, columnsMax: number): string {
  if (columnsOf(text) <= columnsMax) return text;
  let cut = "";
  for (const character of text) {
    if (columnsOf(cut + character) >= columnsMax) break;
    cut += character;
  }
  return `${cut}…`;
}

export function columnsOf(text: string): number {
  return Array.from(text).reduce((sum, character) => sum + sizeOf(character), 0);
}

/** Whether its title and prompt are the agent's own words. */
export function isQuestion({ kind }: RequestView): boolean {
  return kind === "input" || kind === "auth";
}

/** A request's name, which is never the agent's own words: its tool, or what kind of question it is. */
export function titleOf({ kind, title }: RequestView): string {
  if (kind === "input") return "Question";
  return kind === "auth" ? "Sign-in" : makeVisible(title);
}

/** What was decided, by whom and why; a denial without a reason says that it has none. */
export function sayDecision(decision: DecisionView): string {
  const { outcome, cause, reason = "" } = decision;
  const isBare = outcome === "denied" && cause === undefined && reason === "";
  return `${makeVisible(describeDecision(decision))}${isBare ? " (no reason given)" : ""}`;
}

export function describeDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [days, hours, minutes] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600), Math.floor(seconds / 60)];
  if (days > 0) return `${days}d${hours % 24}h`;
  if (hours > 0) return `${hours}h${minutes % 60}m`;
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}

/** Clock time here, of an ISO time. */
export function timeOf(iso: string): string {
  return new Date(iso).toTimeString().slice(0, 8);
}

export function table(rows: readonly (readonly string[])[]): string {
  const widths = rows.reduce<number[]>(
    (known, row) => row.map((cell, i) => Math.max(known[i] ?? 0, columnsOf(cell))),
    [],
  );
  const pad = (cell: string, i: number) => cell + " ".repeat(Math.max(0, (widths[i] ?? 0) - columnsOf(cell)));
  return rows.map((row) => `${row.map(pad).join("  ").trimEnd()}\n`).join("");
}

/**
 * What can be done with a request, ready to be copied. `suffix` names the server or the data, if that is needed. Where
 * nobody can be asked (`isInteractive` false), high risk is approved with its digest only.
 */
export function followUps(request: RequestView, suffix: string, isInteractive: boolean): string[] {
  const digest = request.risk === "high" && !isInteractive ? request.digest : undefined;
  return [`${COMMAND} show ${request.id}${suffix}`, ...decideCommands(request, suffix, digest)];
}

/** With `digest`, for whoever has just seen all of it. */
export function decideCommands({ id, kind, schema }: RequestView, suffix: string, digest?: string): string[] {
  const hash = digest === undefined ? "" : ` --hash ${digest}`;
  if (kind === "approval") {
    return [`${COMMAND} approve ${id}${hash}${suffix}`, `${COMMAND} deny ${id} --reason "…"${suffix}`];
  }
  const names = Object.keys(propertiesOf(schema));
  const sets = names.map((name) => ` --set ${/^[\w.-]+$/.test(name) ? name : JSON.stringify(name)}=…`).join("");
  return [`${COMMAND} answer ${id}${sets}${suffix}`];
}

export function propertiesOf(
  schema: RequestView["schema"],
): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const properties = schema?.properties;
  if (typeof properties !== "object" || properties === null || Array.isArray(properties)) return {};
  // A JSON Schema's properties are schemas; whatever is none is read as one that says nothing.
  return properties as Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}
