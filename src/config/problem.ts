/** A mistake in a configuration file, and how a person sees it. Never shows a secret. */
import { hideSecrets, hideTokens } from "./secrets.ts";

export interface Problem {
  readonly level: "error" | "warning";
  readonly file: string;
  /** From 1; a column counts UTF-16 units, as editors do. */
  readonly line: number;
  readonly column: number;
  /** Of the key or value that is wrong; 0 when it is the file as a whole. */
  readonly length: number;
  readonly text: string;
  /** What would have happened had the mistake been let through. */
  readonly consequence?: string;
  /** The word that was probably meant. */
  readonly nearest?: string;
}

/** `<file>:<line>:<column>  error  <text>`, the line, a caret under what is wrong, and the consequence. */
export function formatProblem(problem: Problem, source: string | undefined): string {
  const { file, line, column, level, text, consequence } = problem;
  const head = `${visible(file)}:${line}:${column}  ${level}  ${visible(hideTokens(text))}`;
  const excerpt = source === undefined || problem.length === 0 ? [] : excerptOf(problem, source);
  return [head, ...excerpt, ...(consequence ? [`  ${visible(consequence)}`] : [])].join("\n");
}

const LINE_SHOWN_MAX = 160;
const BEFORE_CARET = 60;
/** A line above is worth showing only if it names what the mistake belongs to. */
const KEY_LINE = /^\s*(- +)*["']?[\w./-]+["']?\s*:/;

function excerptOf({ line, column, length }: Problem, source: string): string[] {
  const lines = hideSecrets(source).split(/\r\n|\n|\r/);
  const wrong = lines[line - 1];
  if (wrong === undefined) return [];
  const cut = wrong.length > LINE_SHOWN_MAX ? Math.max(0, column - 1 - BEFORE_CARET) : 0;
  const shown = visible(wrong.slice(cut, cut + LINE_SHOWN_MAX));
  const start = Math.min(column - 1 - cut, shown.length);
  const marked = shown.slice(start, start + length);
  const before = lines[line - 2];
  return [
    ...(before !== undefined && KEY_LINE.test(before)
      ? [`${gutter(line - 1)}${visible(before.slice(0, LINE_SHOWN_MAX))}`]
      : []),
    `${gutter(line)}${shown}`,
    `${" ".repeat(gutter(line).length + widthOf(shown.slice(0, start)))}${"^".repeat(Math.max(1, widthOf(marked)))}`,
  ];
}

function gutter(line: number): string {
  return `${String(line).padStart(5)} | `;
}

/** Control and direction characters as something that can be seen and does nothing; one for one. */
function visible(text: string): string {
  return text.replaceAll("\t", "→").replaceAll(/[\p{Cc}\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/gu, "\uFFFD");
}

const WIDE = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60]|\p{Emoji_Presentation}/u;
/** \p{Mn} holds the variation selectors, \p{Cf} the joiners. */
const WIDTHLESS = /\p{Mn}|\p{Cf}/u;

/** Columns of a terminal. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    if (WIDTHLESS.test(character)) continue;
    width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}
