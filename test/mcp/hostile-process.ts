/** An MCP server over pipes that misbehaves as its first argument says. */
import { createInterface } from "node:readline";

const mode = process.argv[2] ?? "";
/** All that it was given: what an indiscreet server says. */
const told = mode.startsWith("tells") ? `${process.env.API_KEY} ${process.argv.slice(3).join(" ")}` : "";
const TOOL = {
  name: "act",
  description: `Does something.${told}`,
  inputSchema: { type: "object", properties: { a: { type: "string", description: told } } },
};

if (mode === "tells-at-start") {
  console.error(`boot with key ${told}`);
  process.exit(3);
}
if (mode === "tells-much-at-start") {
  // The key's beginning is cut off by us.
  const key = String(process.env.API_KEY);
  console.error(`${key}${"x".repeat(2_000 - key.length)}`);
  process.exit(3);
}

if (mode === "dies-at-start") {
  console.error("no licence");
  process.exit(3);
}
if (mode === "never-answers") setInterval(() => {}, 1_000);

const send = (body: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...body })}\n`);

function call(id: unknown): void {
  switch (mode) {
    case "dies":
      console.error("out of memory");
      process.exit(7);
      break;
    case "tells":
      send({ id, result: { content: [{ type: "text", text: told }] } });
      break;
    case "tells-in-an-error":
      send({ id, error: { code: -32000, message: told } });
      break;
    case "tells-and-dies":
      console.error(told);
      process.exit(7);
      break;
    case "answers-and-dies":
      process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } })}\n`, () =>
        process.exit(0),
      );
      break;
    case "floods":
      flood(50);
      break;
    case "hangs":
      process.on("SIGTERM", () => {});
      break;
    case "garbage":
      for (let i = 0; i < 1_000; i++) process.stdout.write(`not json ${i}\n{"jsonrpc":"1.0"}\n[]\nnull\n`);
      send({ id, result: { content: [{ type: "text", text: "and yet" }] } });
      break;
    default:
      send({ id, result: { content: [{ type: "text", text: String(process.pid) }] } });
  }
}

function flood(megabytes: number): void {
  if (megabytes > 0) process.stdout.write("x".repeat(1024 * 1024), () => flood(megabytes - 1));
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line) as {
    id?: unknown;
    method?: string;
    params?: { protocolVersion?: string };
  };
  if (mode === "never-answers") return;
  if (method === "server/discover") {
    if (mode === "dies-when-asked-for-news") process.exit(1);
    // Silence, as some older servers answer what they do not know.
    if (mode === "silent-about-news") return;
    return send({ id, error: { code: -32601, message: "unknown" } });
  }
  if (method === "initialize") {
    const { protocolVersion } = params ?? {};
    return send({
      id,
      result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1" } },
    });
  }
  if (method === "tools/list") return send({ id, result: { tools: [TOOL] } });
  if (method === "tools/call") call(id);
});
