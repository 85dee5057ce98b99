/** The reference servers of the protocol, as real processes, over all three transports. */
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type McpRule, type McpServer, openMcpServer } from "../../src/tools/mcp.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { call, named, ruleFor, run } from "./calls.ts";
import { EVERYTHING, FILESYSTEM, type HttpServerProcess, startEverything } from "./everything.ts";

const opened: McpServer[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.close()));
});

function open(rule: McpRule): McpServer {
  const server = openMcpServer("every", rule);
  opened.push(server);
  return server;
}

const stdio = (script: string, ...args: string[]): McpRule["transport"] => ({
  type: "stdio",
  command: process.execPath,
  args: [script, ...args],
  env: { GIVEN: "by the config" },
});

describe.each(["stdio", "streamable_http", "sse"] as const)("everything over %s", (type) => {
  let process: HttpServerProcess | undefined;
  beforeAll(async () => {
    if (type !== "stdio") process = await startEverything(type === "sse" ? "sse" : "streamableHttp");
  });
  afterAll(() => process?.kill());

  const transport = (): McpRule["transport"] => {
    if (type === "stdio") return stdio(EVERYTHING, "stdio");
    const url = `http://127.0.0.1:${process?.port}/${type === "sse" ? "sse" : "mcp"}`;
    return { type, url, headers: {} };
  };

  test("its tools bear its name, and only those that the rule names ask a person", async () => {
    const rule = ruleFor(transport(), { tools: ["echo", "get-sum", "nothing"], requireApproval: ["get-sum"] });
    const { tools, problems } = await open(rule).list();
    expect(tools.map(({ name, gated }) => [name, gated])).toEqual([
      ["every/echo", false],
      ["every/get-sum", true],
    ]);
    expect(problems).toEqual(["every/nothing: the server has no such tool"]);
    expect(named(tools, "every/get-sum")).toMatchObject({
      risk: "medium",
      rule: { file: "holdpoint.yaml", line: 7 },
      parameters: { type: "object", required: ["a", "b"] },
    });
  });

  test("a call is planned in full, and does what was planned", async () => {
    const { tools } = await open(ruleFor(transport(), { requiresApproval: true })).list();
    expect(tools.length).toBeGreaterThan(8);
    expect(tools.every(({ gated }) => gated)).toBe(true);
    const sum = named(tools, "every/get-sum");
    const facts = await sum.prepare({ a: 2, b: 40 });
    expect(facts.plan).toMatchObject({ server: "every", tool: "get-sum", transport: type, arguments: { a: 2, b: 40 } });
    expect(await run(sum, { a: 2, b: 40 }, facts)).toEqual({ outcome: "done", result: expect.stringContaining("42") });
    expect(sum.promptFor({ b: 1, a: 2 })).toContain('Tool: every/get-sum\nInput: {"a":2,"b":1}');
  });

  test("arguments that do not fit its schema are refused before anything is sent", async () => {
    const { tools } = await open(ruleFor(transport())).list();
    await expect(named(tools, "every/get-sum").prepare({ a: 1, b: "2" })).rejects.toMatchObject({
      code: "arguments-invalid",
      message: "/b: must be number",
    });
  });

  test("pictures and resources are named, not carried", async () => {
    const { tools } = await open(ruleFor(transport())).list();
    const image = await call(named(tools, "every/get-tiny-image"), {});
    expect(image).toEqual({
      outcome: "done",
      result: expect.stringMatching(/\[image, image\/png, \d+ bytes, not shown\]/),
    });
  });

  test("a call that takes too long is given up, and its outcome is unknown", async () => {
    const { tools } = await open(ruleFor(transport(), { timeoutMs: 300 })).list();
    const startMs = performance.now();
    const finished = await call(named(tools, "every/trigger-long-running-operation"), { duration: 20, steps: 2 });
    expect(finished).toMatchObject({ outcome: "unknown", why: expect.stringContaining("no answer within 300 ms") });
    expect(performance.now() - startMs).toBeLessThan(3_000);
  });

  test("a canceled call ends at once, its outcome unknown, and the next one works", async () => {
    const { tools } = await open(ruleFor(transport())).list();
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    const slow = named(tools, "every/trigger-long-running-operation");
    const finished = await call(slow, { duration: 20, steps: 2 }, { signal: abort.signal });
    expect(finished).toMatchObject({ outcome: "unknown", why: expect.stringContaining("canceled") });
    expect(await call(named(tools, "every/echo"), { message: "still here" })).toMatchObject({ outcome: "done" });
  });

  test("a call that was canceled before is not sent", async () => {
    const { tools } = await open(ruleFor(transport())).list();
    const finished = await call(named(tools, "every/echo"), { message: "a" }, { signal: AbortSignal.abort() });
    expect(finished).toEqual({ outcome: "failed", result: "the call was not sent: it was canceled" });
  });

  test("ten calls at once", async () => {
    const { tools } = await open(ruleFor(transport())).list();
    const echo = named(tools, "every/echo");
    const all = await Promise.all(Array.from({ length: 10 }, (_, i) => call(echo, { message: `no ${i}` })));
    expect(all.map(({ outcome }) => outcome)).toEqual(Array(10).fill("done"));
  });

  test("what the server wants of us is not offered: it lists no tools for elicitation or sampling", async () => {
    const { tools } = await open(ruleFor(transport())).list();
    expect(tools.filter(({ name }) => /elicitation|sampling|roots/.test(name))).toEqual([]);
  });
});

test("a server that was restarted in a pause is reached again, by a tool made without asking it", async () => {
  const first = await startEverything("streamableHttp");
  const transport = { type: "streamable_http", url: `http://127.0.0.1:${first.port}/mcp`, headers: {} } as const;
  const server = open(ruleFor(transport));
  const echo = named((await server.list()).tools, "every/echo");
  const before = await echo.prepare({ message: "a" });
  await first.kill();

  await new Promise((resolve) => setTimeout(resolve, 2_100));
  await expect(echo.prepare({ message: "a" })).rejects.toMatchObject({ code: "tool-unavailable" });
  expect((await server.list()).problems).toEqual([expect.stringContaining("cannot be used now")]);

  const second = await startEverything("streamableHttp", first.port);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  const resumed = open(ruleFor(transport)).tool("every/echo") as Tool;
  const after = await resumed.prepare({ message: "a" });
  expect(after).toEqual(before);
  expect(await run(resumed, { message: "a" }, before)).toMatchObject({ outcome: "done" });
  expect(await call(echo, { message: "b" })).toMatchObject({ outcome: "done" });
  await second.kill();
});

test("a process gets the search path and the configured environment, and nothing of ours", async () => {
  process.env.HOLDPOINT_TEST_SECRET = "ours";
  const { tools } = await open(ruleFor(stdio(EVERYTHING, "stdio"))).list();
  const { result } = (await call(named(tools, "every/get-env"), {})) as { result: string };
  delete process.env.HOLDPOINT_TEST_SECRET;
  expect(Object.keys(JSON.parse(result) as object).sort()).toEqual(["GIVEN", "PATH"]);
});

test("closing ends the process", async () => {
  const server = open(ruleFor(stdio(EVERYTHING, "stdio")));
  await server.list();
  const count = () => childrenOf(process.pid).filter((line) => line.includes("server-everything")).length;
  expect(count()).toBe(1);
  await server.close();
  expect(count()).toBe(0);
  expect(
    await call(server.tool("every/echo") as Tool, { message: "x" }).catch((error: Error) => error.message),
  ).toContain("closed by us");
});

describe("the file system server", () => {
  let folder = "";
  beforeAll(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "holdpoint-")));
    writeFileSync(join(folder, "a.txt"), "what is in it");
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test("reads without asking, writes what was approved, and fails where the server says no", async () => {
    const rule = ruleFor(stdio(FILESYSTEM, folder), {
      tools: ["read_text_file", "write_file"],
      requireApproval: ["write_file"],
    });
    const { tools, problems } = await open(rule).list();
    expect(problems).toEqual([]);
    const [read, write] = [named(tools, "every/read_text_file"), named(tools, "every/write_file")];
    expect([read.gated, write.gated]).toEqual([false, true]);
    expect(await call(read, { path: join(folder, "a.txt") })).toEqual({ outcome: "done", result: "what is in it" });
    const args = { path: join(folder, "b.txt"), content: "new" };
    expect(await call(write, args)).toMatchObject({ outcome: "done" });
    expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("new");
    expect(await call(read, { path: "/etc/passwd" })).toMatchObject({
      outcome: "failed",
      result: expect.stringContaining("denied"),
    });
  });

  test("takes its arguments from the plan alone", async () => {
    const { tools } = await open(ruleFor(stdio(FILESYSTEM, folder))).list();
    const write = named(tools, "every/write_file");
    const shown = { path: join(folder, "c.txt"), content: "shown" };
    const facts = await write.prepare(shown);
    await run(write, { ...shown, content: "swapped" }, facts);
    expect(readFileSync(join(folder, "c.txt"), "utf8")).toBe("shown");
    const elsewhere = { ...facts, plan: { ...facts.plan, tool: "move_file" } };
    expect(await run(write, shown, elsewhere)).toMatchObject({
      outcome: "failed",
      result: expect.stringContaining("plan"),
    });
  });
});

function childrenOf(pid: number): string[] {
  const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return ids.map((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, "utf8");
    } catch {
      return "";
    }
  });
}
