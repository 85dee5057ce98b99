/**
 * Breaks lines before the terminal does. A line that a terminal wraps goes on at the very left, where text from outside
 * could pass for ours; so every continuation bears a mark.
 */

const COLUMNS_MIN = 20;
const TAB_COLUMNS = 8;
const WIDE = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60]|\p{Emoji_Presentation}/u;

/** Without `columns` nobody wraps it; a terminal that does not know its width says 0. */
export function wrapLines(text: string, columns: number | undefined): string {
  if (!columns) return text;
  const width = Math.max(COLUMNS_MIN, columns - 1);
  return text
    .split("\n")
    .flatMap((line) => (isOurs(line) ? [line] : wrapLine(line, width)))
    .join("\n");
}

/** Text from outside never holds an escape: what does is a title of ours, and short. */
function isOurs(line: string): boolean {
  return line.includes("\u001b");
}

function wrapLine(line: string, width: number): string[] {
  const [indent = ""] = /^\s*/.exec(line) ?? [];
  const mark = `${indent}${line.startsWith("│", indent.length) ? "" : "  "}┆ `;
  const lines: string[] = [];
  let current = "";
  let used = 0;
  for (const character of line) {
    const size = character === "\t" ? TAB_COLUMNS : WIDE.test(character) ? 2 : 1;
    if (used + size > width) {
      lines.push(current);
      current = mark;
      used = mark.length;
    }
    current += character;
    used += size;
  }
  return [...lines, current];
}
