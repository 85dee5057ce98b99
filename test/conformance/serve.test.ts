/** `npm run tck:serve` as a program: it says where it is, serves, and stops when it is told to. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";

const SERVE = join(import.meta.dirname, "..", "tck", "serve.ts");
const exitOf = async (child: ChildProcess) => (await once(child, "exit"))[0];

test("it says where it is, serves its card, and ends at SIGTERM", async () => {
  const child = spawn(process.execPath, [SERVE, "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  const exited = exitOf(child);
  try {
    const [line] = await once(createInterface(child.stdout), "line");
    const [url = ""] = /http:\/\/localhost:\d+/.exec(line) ?? [];
    expect((await fetch(`${url}/.well-known/agent-card.json`)).status).toBe(200);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await exited).toBe(0);
});

test("it refuses flags that it does not know, and values that make no sense", async () => {
  const wrong = [["--port", "many"], ["--profile", "2.0"], ["--nonsense"]];
  const exits = wrong.map((flags) => exitOf(spawn(process.execPath, [SERVE, ...flags], { stdio: "ignore" })));
  expect(await Promise.all(exits)).toEqual([2, 2, 2]);
});
