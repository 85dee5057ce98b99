/** A command line as words, by POSIX quoting and nothing else: no variable, wildcard, tilde or brace is expanded. Pure. */

export const WORDS_MAX = 1_000;

export type Split =
  | { readonly ok: true; readonly words: readonly string[] }
  | { readonly ok: false; readonly code: "arguments-invalid" | "not-allowed"; readonly text: string };

/** Characters that only a shell gives a meaning to, where no quotes take it away. */
const SHELL_ONLY: ReadonlySet<string> = new Set("|&;<>()$`\n");

export function splitCommandLine(line: string): Split {
  if (line.includes("\0")) return invalid("the command contains a NUL character, which no argument can");
  if (!line.isWellFormed()) return invalid("the command contains a lone surrogate, which is not valid text");
  const words: string[] = [];
  let word: string | undefined;
  for (let i = 0; i < line.length; i++) {
    const character = line.charAt(i);
    if (character === " " || character === "\t") {
      if (word !== undefined) words.push(word);
      word = undefined;
      continue;
    }
    if (SHELL_ONLY.has(character)) return shellOnly(character, i);
    if (character === "'" || character === '"') {
      const quoted = character === "'" ? singleQuoted(line, i) : doubleQuoted(line, i);
      if (!quoted) return invalid(`the quote ${character} at position ${i + 1} is never closed`);
      word = (word ?? "") + quoted.text;
      i = quoted.end;
      continue;
    }
    if (character !== "\\") {
      word = (word ?? "") + character;
      continue;
    }
    if (i + 1 >= line.length) return invalid("the command ends with a backslash that has nothing to quote");
    i++;
    // POSIX 2.2.1: a backslash before the end of a line joins the lines.
    if (line.charAt(i) !== "\n") word = (word ?? "") + line.charAt(i);
  }
  if (word !== undefined) words.push(word);
  if (!words[0]) return invalid("the command is empty: name a program and its arguments");
  if (words.length > WORDS_MAX) return invalid(`${words.length} words; at most ${WORDS_MAX} are taken`);
  return { ok: true, words };
}

function singleQuoted(line: string, start: number): { text: string; end: number } | undefined {
  const end = line.indexOf("'", start + 1);
  return end < 0 ? undefined : { text: line.slice(start + 1, end), end };
}

/** POSIX 2.2.3: here a backslash quotes only these, and stays where it stands before anything else. */
const QUOTED_BY_BACKSLASH: ReadonlySet<string> = new Set('$`"\\');

function doubleQuoted(line: string, start: number): { text: string; end: number } | undefined {
  let text = "";
  for (let i = start + 1; i < line.length; i++) {
    const character = line.charAt(i);
    if (character === '"') return { text, end: i };
    const next = line.charAt(i + 1);
    if (character === "\\" && next === "\n") {
      i++;
      continue;
    }
    if (character === "\\" && QUOTED_BY_BACKSLASH.has(next)) {
      text += next;
      i++;
      continue;
    }
    text += character;
  }
  return undefined;
}

function invalid(text: string): Split {
  return { ok: false, code: "arguments-invalid", text };
}

function shellOnly(character: string, index: number): Split {
  const name = character === "\n" ? "a line break" : `"${character}"`;
  const text = `${name} at position ${index + 1} would need a shell, and there is none. Run one program with its
arguments in each call; to pass the character on as text, put it in single quotes.`.replace("\n", " ");
  return { ok: false, code: "not-allowed", text };
}
