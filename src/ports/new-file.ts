/** Files that are made once: whoever comes second is told, and nothing that is there is ever overwritten. */
import { linkSync, rmSync, writeFileSync } from "node:fs";

/** Whole or not at all; false when there is one already. `beside` names the unfinished file, so that two never share one. */
export function createFile(path: string, text: string, beside: string, mode = 0o644): boolean {
  const unfinished = `${path}.${beside}`;
  writeFileSync(unfinished, text, { mode, flag: "wx" });
  try {
    linkSync(unfinished, path);
    return true;
  } catch (error) {
    // The world's own errors carry a code; anything else is a bug and goes on.
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(unfinished, { force: true });
  }
}
