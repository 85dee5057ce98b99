import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { spawnPiped } from "./piped-process.ts";

const NODE = process.execPath;

function start(script: string, env: Record<string, string> = {}) {
  let text = "";
  const gone = vi.fn();
  const onData = (chunk: Buffer) => {
    text += chunk.toString();
  };
  const child = spawnPiped(NODE, ["-e", script], env, { onData, onGone: gone });
  return { child, gone, text: () => text };
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    // A killed orphan stays a zombie until somebody reaps it; that is dead enough.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};

test("it hears what is written, and is heard", async () => {
  const { child, text } = start("process.stdin.pipe(process.stdout)");
  await child.write("hello\n");
  await vi.waitFor(() => expect(text()).toBe("hello\n"));
  await child.end();
});

test("its environment is the search path and what it was given, nothing of ours", async () => {
  process.env.HOLDPOINT_TEST_SECRET = "ours";
  const { child, text } = start("console.log(JSON.stringify(Object.keys(process.env)))", { GIVEN: "1" });
  await vi.waitFor(() => expect(text()).toContain("\n"));
  delete process.env.HOLDPOINT_TEST_SECRET;
  const names = (JSON.parse(text()) as string[]).filter((name) => name !== "__CF_USER_TEXT_ENCODING");
  expect(names.sort()).toEqual(["GIVEN", "PATH"]);
  await child.end();
});

test("a program that does not exist is gone at once, with the reason", async () => {
  const onGone = vi.fn();
  const child = spawnPiped("/no/such/program", [], {}, { onData: () => {}, onGone });
  await vi.waitFor(() => expect(onGone).toHaveBeenCalledWith(expect.stringContaining("ENOENT")));
  await child.end();
});

test("the end takes its children with it, even those that do not listen", async () => {
  const script = `
    const { spawn } = require("node:child_process");
    process.on("SIGTERM", () => {});
    const child = spawn(process.execPath, ["-e", "process.on('SIGTERM',()=>{});setInterval(()=>{},1000)"], { stdio: "inherit" });
    console.log(child.pid);
    setInterval(() => {}, 1000);`;
  const { child, gone, text } = start(script);
  await vi.waitFor(() => expect(text()).toContain("\n"));
  const grandchild = Number(text());
  expect([isAlive(child.pid), isAlive(grandchild)]).toEqual([true, true]);
  await child.end();
  expect(gone).toHaveBeenCalledTimes(1);
  await vi.waitFor(() => expect([isAlive(child.pid), isAlive(grandchild)]).toEqual([false, false]));
});

test("its last words are kept, and only the last", async () => {
  const { child, gone } = start(
    'process.stderr.write("x".repeat(100000)); console.error("no licence"); process.exit(3)',
  );
  await vi.waitFor(() => expect(gone).toHaveBeenCalledWith("it ended with code 3"));
  await vi.waitFor(() => expect(child.lastWords()).toMatch(/no licence\n$/));
  expect(child.lastWords().length).toBeLessThanOrEqual(2_000);
  await child.end();
});
