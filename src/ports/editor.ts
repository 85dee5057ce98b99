/** The person's own editor as a port: a text goes out to it and comes back. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The text as it was left, or undefined when the editor could not be started or said that it failed. */
export function editText(editor: string, name: string, text: string): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-"));
  try {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    // As git and others do: the variable may hold arguments ("code --wait").
    const [command = "", ...args] = editor.split(/\s+/).filter(Boolean);
    const { status } = spawnSync(command, [...args, file], { stdio: "inherit" });
    return status === 0 ? readFileSync(file, "utf8") : undefined;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
