/** What a server process was given in confidence is in no text about it: not for the model, not for people, not logged. */
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { type McpServer, openMcpServer } from "../../src/tools/mcp.ts";
import { createRedaction } from "../../src/tools/mcp-secrets.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { call, ruleFor } from "./calls.ts";

const SCRIPT = fileURLToPath(new URL("./hostile-process.ts", import.meta.url));
const KEY = "kestrel-4711-secret";
const TOKEN = "wren-0815-secret";
const BY_NAME = `--token=\${SERVICE_TOKEN}`;

let server: McpServer | undefined;
afterEach(() => server?.close());

function start(mode: string): McpServer {
  server = openMcpServer(
    "indiscreet",
    ruleFor({
      type: "stdio",
      command: process.execPath,
      args: [SCRIPT, mode, `--token=${TOKEN}`],
      env: { API_KEY: KEY },
      // As the configuration gives them for an argument with a variable in it.
      shownArgv: [process.execPath, SCRIPT, mode, BY_NAME],
      variables: { SERVICE_TOKEN: TOKEN },
    }),
  );
  return server;
}

const toolOf = (mode: string) => start(mode).tool("indiscreet/act") as Tool;
const told = (value: unknown) => JSON.stringify(value);
const SECRET = /kestrel|wren|secret/;

test("a server that tells them at its start: listing and preparing say it without them", async () => {
  const { problems } = await start("tells-at-start").list();
  expect(problems).toEqual([expect.stringContaining("boot with key [API_KEY] --token=[SERVICE_TOKEN]")]);
  await expect(toolOf("tells-at-start").prepare({})).rejects.toMatchObject({
    message: expect.stringContaining("boot with key [API_KEY] --token=[SERVICE_TOKEN]"),
  });
});

test("what is left of a value where a text was cut is not told either", async () => {
  const { problems } = await start("tells-much-at-start").list();
  expect(problems).toEqual([expect.stringContaining("it ended with code 3")]);
  expect(told(problems)).not.toMatch(/secret/);
});

test.each(["tells", "tells-in-an-error", "tells-and-dies"])("in a call, a server that %s", async (mode) => {
  const finished = await call(toolOf(mode), {});
  expect(told(finished)).toContain("[API_KEY] --token=[SERVICE_TOKEN]");
  expect(told(finished)).not.toMatch(SECRET);
});

test("descriptions and schemas", async () => {
  const { tools } = await start("tells").list();
  expect(tools).toHaveLength(1);
  expect(tools[0]?.description).toContain("[API_KEY]");
  expect(told(tools)).not.toMatch(SECRET);
});

test("the plan and the identity name variables; other values are another server", async () => {
  const facts = await toolOf("").prepare({});
  expect(told(facts)).not.toMatch(SECRET);
  expect(facts.plan.argv).toContain(BY_NAME);
  await server?.close();
  const transport = { type: "stdio", command: process.execPath, args: [SCRIPT, "", "--token=other-value"] } as const;
  const shownArgv = [process.execPath, SCRIPT, "", BY_NAME];
  const variables = { SERVICE_TOKEN: "other-value" };
  server = openMcpServer("indiscreet", ruleFor({ ...transport, env: { API_KEY: KEY }, shownArgv, variables }));
  const other = await server.tool("indiscreet/act")?.prepare({});
  expect(other?.plan).toEqual(facts.plan);
  expect(other?.identity).not.toBe(facts.identity);
});

describe("a redaction", () => {
  test.each([
    ["key abcdef!", "key [A]!"],
    ["abcde", "abcde"],
    ["Bearer t0ken-t0ken", "[H]"],
    ["t0ken-t0ken", "[H]"],
    ["line one line two", "[P]"],
    ["line one\nline two", "[P]"],
    ["the end: t0ken-t", "the end: [H]"],
    ["ken-t0ken: it began", "[H]: it began"],
  ])("of %j is %j", (text, expected) => {
    const secrets = [
      ["A", "abcdef"],
      ["S", "abcde"],
      ["H", "Bearer t0ken-t0ken"],
      ["P", "line one\nline two"],
    ] as const;
    expect(createRedaction(secrets)(text)).toBe(expected);
  });
});
