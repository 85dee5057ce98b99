// Runs a command of this repository with everything it needs: installs what is missing, then starts it with the
// repository's own Node and tools first in PATH. Plain JavaScript for the Node that happens to be there.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, "node_modules", ".bin");
const windows = process.platform === "win32";

/** A stamp beside the installed packages says which lock file they came from. */
function installIfNeeded() {
  const stamp = join(root, "node_modules", ".holdpoint-install");
  const lock = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  process.stderr.write("Holdpoint: installing packages (once, about half a minute) …\n");
  const { status, stdout, stderr } = spawnSync("npm", ["ci", "--no-fund", "--no-audit", "--loglevel=error"], {
    cwd: root,
    shell: windows,
    encoding: "utf8",
  });
  if (status !== 0) {
    process.stderr.write(`${stdout}${stderr}\nHoldpoint: "npm ci" failed; the lines above say why.\n`);
    process.exit(status ?? 1);
  }
  writeFileSync(stamp, lock);
}

installIfNeeded();
const [command = "node", ...args] = process.argv.slice(2);
const child = spawn(command, args, {
  cwd: root,
  stdio: "inherit",
  shell: windows,
  env: { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ""}` },
});
// A terminal signals the whole group; a supervisor signals only us.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// npm's shell may die of a signal without passing it on; then nobody is left to stop the child.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) child.kill("SIGTERM");
}, 500).unref();
child.on("error", (error) => {
  process.stderr.write(`Holdpoint: cannot start "${command}": ${error.message}\n`);
  process.exit(127);
});
child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
