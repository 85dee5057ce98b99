/**
 * Words of a command line that lead to what no tool may touch. What a word means is known to its program alone, so
 * every part of it that could be a path is followed as one. A program that finds files by itself (a list in a file, a
 * pattern, its own configuration) is not held back by this.
 */
import type { Commands } from "../ports/commands.ts";
import { isInside } from "../ports/inside.ts";

export interface Reach {
  readonly gated: boolean;
  /** The configured folder, by its real path: an operator may have put it inside of a protected one. */
  readonly home: string;
  readonly cwd: string;
  readonly protectedPaths: readonly string[];
}

/** In one word; more is made to be overlooked. */
const PARTS_MAX = 64;
/** Options that stand together before a path: `-rnf../x`. */
const CLUSTER_MAX = 32;

/**
 * Other processes of this user, ours among them, stand here with their variables and open files; and links that mean
 * another place to the program than to us.
 */
const OF_PROCESSES = /^\/proc\/.*\/(cwd|root|exe|fd|fdinfo|map_files|mem|environ|auxv)(\/|$)|^\/dev\/fd(\/|$)/;

/** Why these words may not be given to a program, or undefined. */
export async function findForbiddenWord(
  commands: Pick<Commands, "followPath">,
  argv: readonly string[],
  { gated, home, cwd, protectedPaths }: Reach,
): Promise<string | undefined> {
  const follow = async (path: string) => (await commands.followPath(path))?.path ?? path;
  const guards = (await Promise.all(protectedPaths.map(follow))).map((path) => ({
    path,
    // What lies in the tool's own folder is its work, even where that folder lies in a protected one.
    isAroundHome: isInside(home, path) && home !== path,
  }));
  for (const word of argv) {
    const parts = partsOf(word);
    if (parts.length > PARTS_MAX && !gated) return `${shown(word)} has too many parts to be looked at`;
    for (const part of parts.slice(0, PARTS_MAX)) {
      const found = await commands.followPath(part.startsWith("/") ? part : `${cwd}/${part}`);
      if (!found) continue;
      const { path, passed } = found;
      const through = passed.find((place) => OF_PROCESSES.test(place));
      if (through !== undefined) return `${shown(word)} leads through ${through}, which belongs to a running process`;
      const guard = guards.find(
        ({ path: kept, isAroundHome }) => isInside(path, kept) && !(isAroundHome && isInside(path, home)),
      );
      if (guard) return `${shown(word)} is protected: configuration, data and tokens of the server are out of reach`;
      // A program that goes through folders would find it; a person sees the folder, nobody else does.
      if (!gated && guards.some(({ path: kept }) => isInside(kept, path))) {
        return `${shown(word)} is a folder that holds configuration or data of the server, and this tool asks nobody`;
      }
    }
  }
  return undefined;
}

/** Everything in a word that a program may take for a path: `--file=x`, `@x`, `host:x`, `a:x:y`, `-fx`, `file:///x`. */
export function partsOf(word: string): readonly string[] {
  const parts = new Set([word]);
  for (const text of new Set([word, decoded(word)])) {
    parts.add(text);
    for (const { index } of text.matchAll(/[=@:,]/g)) parts.add(text.slice(index + 1));
    for (const segment of text.split(/[=@:,]/)) parts.add(segment);
    parts.add(/:\/\/[^/]*(\/.*)$/s.exec(text)?.[1] ?? "");
    if (!text.startsWith("-")) continue;
    for (let i = 1; i < Math.min(text.length, CLUSTER_MAX); i++) parts.add(text.slice(i));
    const path = text.search(/[./]/);
    if (path > 0) parts.add(text.slice(path));
  }
  parts.delete("");
  return [...parts];
}

/** As a program reads it that takes addresses. */
function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

function shown(word: string): string {
  return JSON.stringify(word.length > 200 ? `${word.slice(0, 200)}…` : word);
}
