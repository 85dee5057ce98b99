/** The server's whole answers, read by the real client; what it streams is read in src/models/provider.test.ts. */
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, jsonSchema } from "ai";
import { expect, test } from "vitest";
import { startOpenAi } from "./server.ts";

test.each(["chat", "responses"] as const)("a whole answer of the %s API has text, calls and usage", async (api) => {
  const args = { command: "ls" };
  const server = await startOpenAi([
    { text: ["Look", "ing."], calls: [{ name: "run", args }], usage: { input: 3, output: 4 } },
  ]);
  try {
    const provider = createOpenAI({ baseURL: server.url, apiKey: "k" });
    const reply = await generateText({
      model: provider[api]("m"),
      prompt: "Hello",
      tools: { run: { description: "", inputSchema: jsonSchema({ type: "object" }) } },
    });
    expect(reply.text).toBe("Looking.");
    expect(reply.toolCalls).toMatchObject([{ toolCallId: "theirs_1", toolName: "run", input: args }]);
    expect(reply.usage).toMatchObject({ inputTokens: 3, outputTokens: 4 });
    expect(server.requests[0]?.body.stream).toBeFalsy();
  } finally {
    await server.stop();
  }
});

test("after its script it says Done., and what it does not know is not found", async () => {
  const server = await startOpenAi([]);
  const post = (path: string) => fetch(`${server.url}${path}`, { method: "POST", body: "{}" });
  try {
    const done = (await (await post("/chat/completions")).json()) as { choices: [{ message: { content: string } }] };
    expect(done.choices[0].message.content).toBe("Done.");
    expect((await post("/embeddings")).status).toBe(404);
    expect(server.requests.map(({ path }) => path)).toEqual(["/v1/chat/completions", "/v1/embeddings"]);
  } finally {
    await server.stop();
  }
});
