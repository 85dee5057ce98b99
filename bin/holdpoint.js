#!/usr/bin/env node
// The launcher: finds a Node that is new enough and the program to run (built, or from source in the repository).
// Plain JavaScript without dependencies and without syntax newer than Node 18.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, "src", "cli", "main.ts");
const fromSource = existsSync(source);
const program = fromSource ? source : join(root, "dist", "cli", "main.js");
// Running TypeScript directly needs 22.18; the built package needs 22.13.
const needed = fromSource ? [22, 18] : [22, 13];
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

// Under npx, npm's shell may die of a signal without passing it on; then nobody is left to stop us.
const parent = process.ppid;
if (process.env.npm_command) {
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, "SIGTERM");
  }, 500).unref();
}

if (major > needed[0] || (major === needed[0] && minor >= needed[1])) {
  if (major < 24) process.removeAllListeners("warning"); // node:sqlite is called experimental there
  await import(pathToFileURL(program).href);
} else {
  const own = join(root, "node_modules", "node", "bin", process.platform === "win32" ? "node.exe" : "node");
  if (!existsSync(own)) {
    process.stderr.write(
      `Holdpoint needs Node ${needed.join(".")} or newer; this is ${process.versions.node}.\n` +
        (fromSource
          ? 'Run "npm ci" here: it brings a newer Node along.\n'
          : "Install a newer Node from https://nodejs.org.\n"),
    );
    process.exit(1);
  }
  // Whoever kills this process means the program: it dies with us, and as suddenly.
  const follow = 'process.on("disconnect", () => process.kill(process.pid, "SIGKILL")); process.channel.unref();';
  const args = ["--import", `data:text/javascript,${encodeURIComponent(follow)}`, program, ...process.argv.slice(2)];
  const child = spawn(own, args, { stdio: ["inherit", "inherit", "inherit", "ipc"] });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("exit", (code, signal) => process.exit(code ?? (signal === "SIGINT" ? 130 : 1)));
}
