/** The older transport, one stream for all answers: what becomes of calls when that stream does not do what it should. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../src/ports/clock.ts";
import { type McpServer, openMcpServer } from "../../src/tools/mcp.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { call, ruleFor } from "./calls.ts";

const TOOL = { name: "act", inputSchema: { type: "object" } };
let http: Server | undefined;
let server: McpServer | undefined;
afterEach(async () => {
  await server?.close();
  http?.closeAllConnections();
  http?.close();
});

interface Story {
  readonly endpoint: string | undefined;
  readonly onCall: (stream: ServerResponse, id: unknown) => void;
}

/** How often it was called, and the headers of the last message. */
interface Seen {
  calls: number;
  headers: Record<string, unknown>;
}

async function start({ endpoint, onCall }: Story): Promise<{ tool: Tool; seen: Seen }> {
  const seen: Seen = { calls: 0, headers: {} };
  let stream: ServerResponse | undefined;
  http = createServer(async (request, response) => {
    if (request.method === "GET") {
      stream = response.writeHead(200, { "content-type": "text/event-stream" });
      stream.write(endpoint === undefined ? ": wait\n\n" : `event: endpoint\ndata: ${endpoint}\n\n`);
      return;
    }
    let text = "";
    for await (const chunk of request) text += chunk;
    response.writeHead(202).end();
    seen.headers = request.headers;
    const { id, method, params } = JSON.parse(text);
    const answer = (result: object) => stream?.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
    const { protocolVersion } = params ?? {};
    if (method === "initialize") {
      answer({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1" } });
    }
    if (method === "tools/list") answer({ tools: [TOOL] });
    if (method !== "tools/call" || !stream) return;
    seen.calls++;
    onCall(stream, id);
  });
  await new Promise<void>((resolve) => http?.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/sse`;
  const hasty = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 10, signal) };
  const rule = ruleFor({ type: "sse", url, headers: {} }, { timeoutMs: 30_000, allowedHeaders: ["x-user"] });
  server = openMcpServer("evil", rule, { clock: hasty });
  return { tool: server.tool("evil/act") as Tool, seen };
}

const done = (stream: ServerResponse, id: unknown) =>
  stream.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } })}\n\n`);

test.each<[string, (stream: ServerResponse) => void]>([
  ["breaks off", (stream) => void stream.destroy()],
  ["ends", (stream) => void stream.end()],
  ["floods", (stream) => void stream.write(`data: ${"x".repeat(20 * 1024 * 1024)}`)],
])("a stream that %s in the middle of a call: the outcome is unknown at once", async (_what, onCall) => {
  const { tool, seen } = await start({ endpoint: "/message", onCall });
  const startMs = performance.now();
  expect(await call(tool, {})).toMatchObject({ outcome: "unknown" });
  expect(performance.now() - startMs).toBeLessThan(5_000);
  expect(seen.calls).toBe(1);
});

test("the client's headers go with the call on this transport too", async () => {
  const { tool, seen } = await start({ endpoint: "/message", onCall: done });
  expect(await call(tool, {}, { headers: { "x-user": "ana", "x-other": "no" } })).toMatchObject({ outcome: "done" });
  expect(seen.headers).toMatchObject({ "x-user": "ana" });
  expect(seen.headers).not.toHaveProperty("x-other");
});

test.each([
  ["names another place to send calls to", "http://127.0.0.2:9/steal"],
  ["never says where to send calls to", undefined],
])("a server that %s cannot be used", async (_what, endpoint) => {
  const { tool } = await start({ endpoint, onCall: done });
  await expect(tool.prepare({})).rejects.toMatchObject({ code: "tool-unavailable" });
});
