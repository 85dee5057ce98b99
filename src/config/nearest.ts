/** Which known word somebody probably meant. */

/** The nearest known word, or undefined when none is near enough to be worth a question. */
export function nearest(word: string, known: Iterable<string>, editsMax?: number): string | undefined {
  const wanted = fold(word);
  let best: string | undefined;
  let bestDistance = (editsMax ?? Math.max(1, Math.floor(wanted.length / 3))) + 1;
  for (const candidate of known) {
    const distance = editDistance(wanted, fold(candidate), bestDistance);
    if (distance < bestDistance && distance < wanted.length) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** "a", "a or b", "a, b or c". */
export function eitherOf(words: readonly string[]): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** `inputTimeout`, `input-timeout` and `INPUT_TIMEOUT` are one word to a person. */
function fold(word: string): string {
  return word
    .slice(0, WORD_MAX)
    .replace(/([a-z])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .replaceAll(/[-\s]/g, "_");
}

const WORD_MAX = 64;

/** Insertions, deletions, substitutions and swaps of neighbours; stops counting at `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      current[j] = Math.min(
        at(previous, j) + 1,
        at(current, j - 1) + 1,
        at(previous, j - 1) + (same ? 0 : 1),
        swap ? at(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, previous] = [previous, current];
  }
  return at(previous, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
