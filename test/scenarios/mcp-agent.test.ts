/** A real MCP server process behind an agent: one tool asks, another does not, and the server restarts in between. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FILESYSTEM } from "../mcp/everything.ts";
import { decide, isOver, isPaused, openWorld, reaches, say } from "./world.ts";

const config = (host: string, folder: string) => `
llms:
  gpt: { type: openai, model: gpt-4o, api_key: \${OPENAI_API_KEY}, host: ${host} }
tools:
  files:
    type: mcp
    transport: stdio
    command: ${process.execPath}
    args: [${JSON.stringify(FILESYSTEM)}, ${JSON.stringify(join(folder, "workspace"))}]
    tools: [read_text_file, write_file]
    require_approval: [write_file]
agents:
  assistant: { llm: gpt, tools: [files], session_store: here }
session_stores:
  here: { type: sqlite, database: ./test.db }
`;

test("gated and ungated calls of one turn, with a restart at the pause", async () => {
  const world = await openWorld((request) => {
    const { messages, tools } = request.body;
    const nameOf = (tool: string) =>
      tools
        .map((each: { function: { name: string } }) => each.function.name)
        .find((name: string) => name.includes(tool));
    if (messages.some(({ role }: { role: string }) => role === "tool")) return { text: "Copied." };
    const workspace = join(world.folder, "workspace");
    return {
      text: "I copy it.",
      calls: [
        { name: nameOf("read_text_file"), args: { path: join(workspace, "from.txt") } },
        { name: nameOf("write_file"), args: { path: join(workspace, "to.txt"), content: "hello\n" } },
      ],
    };
  }, config);
  const to = join(world.folder, "workspace", "to.txt");
  writeFileSync(join(world.folder, "workspace", "from.txt"), "hello\n");

  const first = await world.start();
  const id = await say(first, "Copy from.txt to to.txt");
  const task = await reaches(first, id, isPaused);
  expect(Object.values(task.effects).map(({ callId, status }) => [callId, status.type])).toEqual([
    ["call-1-1", "done"],
  ]);
  expect(task.requests.map(({ request }) => request.title)).toEqual(["files/write_file"]);
  expect(existsSync(to)).toBe(false);
  await first.stop();

  const second = await world.start();
  await decide(second, await reaches(second, id, isPaused), { choice: "approve" });
  const ended = await reaches(second, id, isOver);
  expect(ended.end).toEqual({ state: "completed", message: "Copied." });
  expect(readFileSync(to, "utf8")).toBe("hello\n");
  expect(Object.values(ended.effects).map(({ callId, attempt }) => [callId, attempt])).toEqual([
    ["call-1-1", 1],
    ["call-1-2", 1],
  ]);
  expect(world.warnings).toEqual([]);
});
