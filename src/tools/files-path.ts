/** A path that an agent wrote, as a path below the root; or why it is none. Pure: links and races are the port's. */
import { CallRefused } from "./tool.ts";

/** Deeper ones could not be reached by their own path any more. */
const DEPTH_MAX = 64;

export type FileAction = "read" | "write" | "delete";

/** `roots`: the root as it is configured, and its real path; an absolute path may start with either. */
export function pathBelow(roots: readonly string[], path: string, action: FileAction): string {
  // Format characters (bidi, zero-width) and unassigned ones count too: a name has to look like what it is.
  if (/[\p{C}\p{Zl}\p{Zp}]/u.test(path)) throw new CallRefused("arguments-invalid", "/path: has control characters");
  const parts = withoutRoot(roots, path).split("/");
  if (parts.at(-1) === "" || parts.at(-1) === ".") {
    throw new CallRefused("arguments-invalid", "/path: names a folder; name a file");
  }
  if (parts.includes("..")) {
    throw new CallRefused("not-allowed", '/path: ".." is not taken; write the path below the root without it');
  }
  const kept = parts.filter((part) => part !== "" && part !== ".");
  if (kept.length > DEPTH_MAX) {
    throw new CallRefused("arguments-invalid", `/path: ${kept.length} names deep; at most ${DEPTH_MAX} are taken`);
  }
  refuseGit(kept, action);
  return kept.join("/");
}

function withoutRoot(roots: readonly string[], path: string): string {
  if (!path.startsWith("/")) return path;
  for (const root of roots) {
    const folder = root.endsWith("/") ? root : `${root}/`;
    if (path.startsWith(folder)) return path.slice(folder.length);
  }
  throw new CallRefused("not-allowed", `/path: is outside of ${roots[0]}; give a path relative to it`);
}

/** What lies in .git is run by git: hooks at once, and configuration as soon as somebody uses it. */
function refuseGit(parts: readonly string[], action: FileAction): void {
  // Some file systems take other spellings for the same name.
  const names = parts.map((part) => part.normalize("NFKC").toLowerCase());
  const git = names.findIndex((name) => name === ".git" || name === "git~1");
  if (git < 0) return;
  if (action !== "read" || names[git + 1] === "hooks") {
    throw new CallRefused("not-allowed", "/path: .git is protected, because git runs what it finds there");
  }
}
