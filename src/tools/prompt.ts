/** What a person is asked about a tool call, in words; and text made so that nothing in it hides. Pure. */

/** DESIGN §4: the text of seed 002. */
const APPROVAL_TEXT =
  "🔐 Tool Approval Required\n\nTool: {tool}\nInput: {input}\n\nPlease respond with: approve or deny";

/**
 * The question, from `approval_prompt` or the usual text. One pass: a value that contains "{tool}" stays as it is. The
 * input takes one line, so that it cannot pretend to be more of the question.
 */
export function renderPrompt(template: string | undefined, tool: string, input: string): string {
  const values = { "{tool}": makeVisible(tool), "{input}": makeVisible(input) } as const;
  return (template ?? APPROVAL_TEXT).replace(/\{tool\}|\{input\}/g, (name) => values[name as keyof typeof values]);
}

export interface Kept {
  /** Characters that the reader's place can show as they are. */
  readonly newlines?: boolean;
  readonly tabs?: boolean;
}

/**
 * The same text, with every character that is invisible, moves others about or passes for a space named like
 * `⟦U+202E⟧`, and long blank stretches counted like `⟨3,998 spaces⟩`. Nothing is ever cut, and two different texts never
 * look the same: the brackets themselves are named too.
 */
export function makeVisible(text: string, kept: Kept = {}): string {
  const named = text.replace(HIDDEN, (characters) => {
    if (characters === "\n" && kept.newlines) return characters;
    if (characters === "\t" && kept.tabs) return characters;
    return Array.from(characters, nameOf).join("");
  });
  return named.replace(BLANK_LINES, countRuns).replace(BLANKS, countRuns);
}

/**
 * Categories alone miss variation selectors, fillers and the braille blank; five marks on one letter can cover what
 * stands beside it.
 */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800⟦⟧⟨⟩]|(?! )\p{Zs}|\p{M}{5,}/gu;
/** More than 10 newlines, blanks between them or not, push the rest out of sight; so do more than 40 blanks. */
const BLANK_LINES = /\n(?:[ \t]*\n){10,}/g;
const BLANKS = /[ \t]{41,}/g;

function nameOf(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `⟦U+${code}⟧`;
}

const RUN_NAMES: Readonly<Record<string, string>> = { " ": "space", "\t": "tab", "\n": "newline" };

function countRuns(blanks: string): string {
  return blanks.replace(/( +|\t+|\n+)/g, (run) => {
    const count = String(run.length).replace(/\B(?=(\d{3})+$)/g, ",");
    return `⟨${count} ${RUN_NAMES[run.charAt(0)]}${run.length === 1 ? "" : "s"}⟩`;
  });
}

const LOOKALIKES = ["Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Lisu"] as const;
const LOOKALIKE_SCRIPTS = LOOKALIKES.map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")] as const);

/** Why a word may not be what it seems; undefined when nothing is odd about it. */
export function findDisguise(word: string): string | undefined {
  if (/[\uff01-\uff5e]|[\u{1d400}-\u{1d7ff}]/u.test(word)) return "uses letters that only look like ASCII";
  if (!/\p{Script=Latin}/u.test(word)) return undefined;
  const [script] = LOOKALIKE_SCRIPTS.find(([, pattern]) => pattern.test(word)) ?? [];
  return script && `mixes Latin and ${script} letters, which can look alike`;
}
