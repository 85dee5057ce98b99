/** One YAML file as values that know where they stand, and the report that collects what is wrong with it. */
import { type Alias, type Document, isAlias, isNode, LineCounter, type Node, parseDocument, visit } from "yaml";
import { readText } from "../ports/files.ts";
import type { Place } from "./config.ts";
import type { Problem } from "./problem.ts";
import { hideTokens } from "./secrets.ts";
import { type Environment, findReserved, maskVariables, unmask } from "./variables.ts";

export interface Source {
  /** As a person named it. */
  readonly file: string;
  /** As YAML sees it: as long as what was read, variables masked. */
  readonly text: string;
  readonly lines: LineCounter;
  /** Where `${NAME}` is looked up; undefined: it means nothing in this file. */
  readonly environment: Environment | undefined;
}

/** A stretch of a file. */
export interface Span {
  readonly source: Source;
  readonly start: number;
  readonly end: number;
}

export interface Value {
  readonly span: Span;
  /** Aliases resolved; null where nothing was written. */
  readonly node: Node | null;
  readonly document: Document;
}

type More = { readonly consequence?: string | undefined; readonly nearest?: string | undefined };

/** Collects every problem of a load, each once, whatever file it stands in. */
export class Report {
  readonly #found = new Map<string, Problem & { readonly offset: number }>();
  /** The texts of the files that were read, for `formatProblem`. */
  readonly sources = new Map<string, string>();

  error(at: Span, text: string, more: More = {}): void {
    this.#add("error", at, text, more);
  }

  warn(at: Span, text: string, more: More = {}): void {
    this.#add("warning", at, text, more);
  }

  /** About a file of which nothing is known but its name. */
  fileError(file: string, text: string, consequence?: string): void {
    if (!this.sources.has(file)) this.sources.set(file, "");
    this.error(
      { source: { file, text: "", lines: new LineCounter(), environment: undefined }, start: 0, end: 0 },
      text,
      {
        consequence,
      },
    );
  }

  /** In the order in which a person finds them: file by file, from the top. */
  list(level: Problem["level"]): readonly Problem[] {
    const files = [...this.sources.keys()];
    return [...this.#found.values()]
      .filter((problem) => problem.level === level)
      .toSorted((a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.offset - b.offset)
      .map(({ offset: _, ...problem }) => problem);
  }

  #add(level: Problem["level"], { source, start, end }: Span, text: string, { consequence, nearest }: More): void {
    const { line, col } = positionOf(source, start);
    this.#found.set(`${source.file}\n${start}\n${text}`, {
      level,
      file: source.file,
      line,
      column: col,
      length: lengthOnLine(source.text, start, end),
      text: hideTokens(text),
      ...(consequence === undefined ? {} : { consequence }),
      ...(nearest === undefined ? {} : { nearest }),
      offset: start,
    });
  }
}

export function placeOf({ source, start }: Span): Place {
  return { file: source.file, line: positionOf(source, start).line };
}

const FILE_CHARACTERS_MAX = 1024 * 1024;
const ALIASES_MAX = 200;

/** The text of a file, or in words why there is none. */
export type ReadText = { readonly text: string } | { readonly why: string };

export function tryReadText(path: string): ReadText {
  try {
    return { text: readText(path) };
  } catch (error) {
    return { why: unreadable(error) };
  }
}

export function valueAt(node: unknown, outer: Pick<Value, "document" | "span">, fallback: Span): Value {
  const { document } = outer;
  if (!isNode(node)) return { document, node: null, span: fallback };
  const span = spanOf(node, outer.span.source, fallback);
  return { document, node: isAlias(node) ? (node.resolve(document) ?? null) : node, span };
}

function spanOf(node: Node, source: Source, fallback: Span): Span {
  // Where nothing is written the caret stands under the key.
  if (!node.range || node.range[0] === node.range[1]) return fallback;
  return { source, start: node.range[0], end: node.range[1] };
}

/** The root of a file, or undefined when it is empty or not YAML; the report then says why. */
export function parseSource(
  file: string,
  text: string,
  environment: Environment | undefined,
  report: Report,
): Value | undefined {
  report.sources.set(file, text);
  const source = { file, text: environment ? maskVariables(text) : text, lines: new LineCounter(), environment };
  const at = (start: number, end = start + 1): Span => ({ source, start, end });
  // An offset needs its lines even where parsing does not come that far.
  source.lines.addNewLine(0);
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) source.lines.addNewLine(i + 1);

  if (text.length > FILE_CHARACTERS_MAX) {
    report.error(at(0, 0), `the file is larger than ${FILE_CHARACTERS_MAX} characters`);
    return undefined;
  }
  const reserved = findReserved(text);
  if (reserved >= 0) {
    report.error(at(reserved), "this character is not text (a Unicode noncharacter); remove it");
    return undefined;
  }
  const parsed = parseYaml(source.text);
  if (typeof parsed === "string") {
    report.error(at(0, 0), `not readable as YAML: ${parsed}`);
    return undefined;
  }
  const { document, aliases, dangling } = parsed;
  const seen = new Set<number>();
  for (const { code, message, pos } of [...document.errors, ...document.warnings]) {
    // What follows on the same line is mostly the same mistake once more.
    const { line } = positionOf(source, pos[0]);
    if (seen.has(line)) continue;
    seen.add(line);
    report.error(at(...visiblePart(text, pos)), SYNTAX[code] ?? `not valid YAML: ${unmask(lower(message))}`);
  }
  if (seen.size > 0) return undefined;
  if (aliases > ALIASES_MAX) report.error(at(0, 0), `more than ${ALIASES_MAX} aliases (*name)`);
  for (const alias of dangling) {
    report.error(spanOf(alias, source, at(0, 0)), `nothing is called "&${unmask(alias.source)}" above this line`);
  }
  if (aliases > ALIASES_MAX || dangling.length > 0) return undefined;
  if (document.contents === null) {
    report.error(at(0, 0), "the file is empty", { consequence: "`holdpoint init` writes one that works." });
    return undefined;
  }
  const { contents } = document;
  return { document, node: contents, span: spanOf(contents, source, at(0, 0)) };
}

interface Parsed {
  readonly document: Document;
  readonly aliases: number;
  /** Aliases that stand for nothing; not looked for where there are too many. */
  readonly dangling: readonly Alias[];
}

/** The document, or why the library gave up. */
function parseYaml(text: string): Parsed | string {
  try {
    // Doubled keys are found by the reader, which names both places.
    const document = parseDocument(text, { uniqueKeys: false, prettyErrors: false });
    const aliases: Alias[] = [];
    visit(document, {
      Alias: (_, alias) => {
        aliases.push(alias);
      },
    });
    const dangling = aliases.length > ALIASES_MAX ? [] : aliases.filter((alias) => !alias.resolve(document));
    return { document, aliases: aliases.length, dangling };
  } catch (error) {
    return error instanceof RangeError ? "nested too deeply" : "the parser failed";
  }
}

const SYNTAX: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: "a tab cannot indent in YAML: use spaces",
  BLOCK_AS_IMPLICIT_KEY: 'a second ":" on one line: put the value in quotes, or the inner key on a line of its own',
  RESOURCE_EXHAUSTION: "not readable as YAML: nested too deeply",
  MULTIPLE_DOCS: 'a second document ("---"): one file is one configuration',
};

/** What is missing at the end of a line is shown under its last character. */
function visiblePart(text: string, [start, end]: readonly [number, number]): [number, number] {
  let from = Math.min(start, text.length);
  while (from > 0 && (from === text.length || /[\r\n]/.test(text.charAt(from)))) from--;
  return [from, Math.max(from + 1, end)];
}

/** A caret stays on the line it begins on. */
function lengthOnLine(text: string, start: number, end: number): number {
  const [line = ""] = text.slice(start, end).split(/\r|\n/, 1);
  return end === start ? 0 : Math.max(1, line.trimEnd().length);
}

function positionOf(source: Source, offset: number): { line: number; col: number } {
  const { line, col } = source.lines.linePos(offset);
  return line === 0 ? { line: 1, col: 1 } : { line, col };
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function unreadable(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  switch (code) {
    case "ENOENT":
      return "no such file";
    case "EISDIR":
      return "this is a folder, not a file";
    case "EACCES":
    case "EPERM":
      return "cannot be read: permission denied";
    default:
      return `cannot be read${code ? ` (${code})` : ""}`;
  }
}
