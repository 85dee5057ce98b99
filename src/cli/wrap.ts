/**
 * Breaks lines before the terminal does. A line that a terminal wraps goes on at the very left, where text from outside
 * could pass for ours; so every continuation bears a mark. Paint takes no room, and never reaches a mark.
 */

const COLUMNS_MIN = 20;
const TAB_COLUMNS = 8;
const WIDE = /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFF60]|\p{Emoji_Presentation}/u;
/** Text from outside never holds it: what does is paint of ours. */
const ESCAPE = "\u001b";
const UNPAINT = `${ESCAPE}[0m`;

/** Without `columns` nobody wraps it; a terminal that does not know its width says 0. */
export function wrapLines(text: string, columns: number | undefined): string {
  const width = widthOf(columns);
  return text
    .split("\n")
    .flatMap((line) => wrapLine(line, width))
    .join("\n");
}

/** How much of a line can be used. */
export function widthOf(columns: number | undefined): number {
  return columns ? Math.max(COLUMNS_MIN, columns - 1) : Number.POSITIVE_INFINITY;
}

/** How many columns a character takes, or more. */
export function sizeOf(character: string): number {
  if (character === "\t") return TAB_COLUMNS;
  return WIDE.test(character) ? 2 : 1;
}

function wrapLine(line: string, width: number): string[] {
  const [indent = ""] = /^\s*/.exec(line) ?? [];
  const mark = `${indent}${line.startsWith("│", indent.length) ? "" : "  "}┆ `;
  const lines: string[] = [];
  let current = "";
  let used = 0;
  let paint = "";
  for (const piece of piecesOf(line)) {
    if (piece.startsWith(ESCAPE)) {
      paint = piece === UNPAINT ? "" : piece;
      current += piece;
      continue;
    }
    const size = sizeOf(piece);
    if (used + size > width) {
      lines.push(paint === "" ? current : current + UNPAINT);
      current = mark + paint;
      used = mark.length;
    }
    current += piece;
    used += size;
  }
  return [...lines, current];
}

/** Characters, and paint in one piece. */
function* piecesOf(line: string): Iterable<string> {
  const [plain = "", ...painted] = line.split(ESCAPE);
  yield* plain;
  for (const part of painted) {
    const end = part.indexOf("m") + 1;
    yield ESCAPE + part.slice(0, end);
    yield* part.slice(end);
  }
}
