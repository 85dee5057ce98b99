/** Server processes that die, flood and babble. */
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { type McpServer, openMcpServer } from "../../src/tools/mcp.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { call, ruleFor } from "./calls.ts";

const SCRIPT = fileURLToPath(new URL("./hostile-process.ts", import.meta.url));
/** Waits a tenth of what it is asked to. */
const hasty = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 10, signal) };

let server: McpServer | undefined;
afterEach(() => server?.close());

function start(mode: string, timeoutMs = 5_000): Tool {
  const transport = { type: "stdio", command: process.execPath, args: [SCRIPT, mode], env: {} } as const;
  server = openMcpServer("evil", ruleFor(transport, { timeoutMs }), { clock: hasty });
  return server.tool("evil/act") as Tool;
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("in the middle of a call, a server that", () => {
  test("dies: the outcome is unknown, with its last words", async () => {
    const finished = await call(start("dies"), {});
    expect(finished).toEqual({
      outcome: "unknown",
      why: expect.stringMatching(/may have run.*the server is gone: it ended with code 7: out of memory/),
    });
  });

  test("answers before it dies has answered", async () => {
    expect(await call(start("answers-and-dies"), {})).toEqual({ outcome: "done", result: "" });
  });

  test("floods without end is ended", async () => {
    const before = process.memoryUsage().rss;
    const finished = await call(start("floods"), {});
    expect(finished).toMatchObject({ outcome: "unknown", why: expect.stringContaining("exceeded maximum size") });
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
  });

  test("hangs is given up and killed", async () => {
    expect(await call(start("hangs", 300), {})).toMatchObject({ outcome: "unknown" });
  });

  test("babbles is heard when it talks sense", async () => {
    expect(await call(start("garbage"), {})).toEqual({ outcome: "done", result: "and yet" });
  });
});

test("after a death the next call starts a new process", async () => {
  const tool = start("answers-and-dies");
  await call(tool, {});
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await call(tool, {})).toMatchObject({ outcome: "done" });
});

test("one process serves all calls, and closing ends it", async () => {
  const tool = start("");
  const [one, two] = [await call(tool, {}), await call(tool, {})] as { result: string }[];
  expect(one?.result).toBe(two?.result);
  const pid = Number(one?.result);
  expect(isAlive(pid)).toBe(true);
  await server?.close();
  expect(isAlive(pid)).toBe(false);
});

test("one that dies at start is not available, and says why", async () => {
  await expect(start("dies-at-start").prepare({})).rejects.toMatchObject({
    code: "tool-unavailable",
    message: expect.stringContaining("it ended with code 3: no licence"),
  });
});

test("one that does not exist is not available, and says why", async () => {
  const transport = { type: "stdio", command: "/no/such/server", args: [], env: {} } as const;
  server = openMcpServer("evil", ruleFor(transport), { clock: hasty });
  expect(await server.list()).toEqual({ tools: [], problems: [expect.stringContaining("ENOENT")] });
});

test("one that never answers is not available after a bounded time", async () => {
  const startMs = performance.now();
  await expect(start("never-answers").prepare({})).rejects.toMatchObject({ code: "tool-unavailable" });
  expect(performance.now() - startMs).toBeLessThan(10_000);
});

test.each(["dies-when-asked-for-news", "silent-about-news"])(
  "an older one that %s is spoken to as such",
  async (mode) => {
    expect(await call(start(mode), {})).toMatchObject({ outcome: "done" });
  },
);
