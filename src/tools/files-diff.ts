/** What a write changes, for people: the whole difference or the reason why there is none to show. Pure. */
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";

export type Difference =
  /** Unified, whole, never cut. */
  | { readonly type: "unified"; readonly text: string }
  /** There is no file yet: the content is what is new. */
  | { readonly type: "new-file" }
  | { readonly type: "not-shown"; readonly why: string };

/** Beyond this a person compares nothing line by line. */
export const OLD_BYTES_MAX = 256 * 1024;
/** Looking for the shortest difference takes the square of this; beyond it all is taken out and all is put in. */
const EDITS_MAX = 1_000;

export function findDifference(path: string, before: Buffer | undefined, bytes: number, after: string): Difference {
  if (before === undefined || bytes > OLD_BYTES_MAX) {
    return { type: "not-shown", why: `the old file is larger than ${OLD_BYTES_MAX} bytes (${bytes})` };
  }
  const old = textOf(before);
  if (old === undefined) return { type: "not-shown", why: `the old file is not text (${bytes} bytes)` };
  return { type: "unified", text: unifiedDiff(path, old, after) };
}

/** UTF-8 without NUL, with everything that is in it: a byte order mark is a difference too. */
export function textOf(content: Buffer): string | undefined {
  if (content.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}

function unifiedDiff(path: string, before: string, after: string): string {
  const options = { context: 3, maxEditLength: EDITS_MAX, headerOptions: FILE_HEADERS_ONLY } as const;
  const found = createTwoFilesPatch(`a/${path}`, `b/${path}`, before, after, undefined, undefined, options);
  return found ?? replaceAll(path, before, after);
}

function replaceAll(path: string, before: string, after: string): string {
  const [out, put] = [linesOf(before, "-"), linesOf(after, "+")];
  const range = ({ count }: { count: number }) => `${count === 0 ? 0 : 1},${count}`;
  return `--- a/${path}\n+++ b/${path}\n@@ -${range(out)} +${range(put)} @@\n${out.text}${put.text}`;
}

function linesOf(text: string, sign: "-" | "+"): { text: string; count: number } {
  if (text === "") return { text: "", count: 0 };
  const lines = text.split("\n");
  const isClosed = lines.at(-1) === "";
  if (isClosed) lines.pop();
  const shown = lines.map((line) => `${sign}${line}\n`).join("");
  return { text: isClosed ? shown : `${shown}\\ No newline at end of file\n`, count: lines.length };
}
