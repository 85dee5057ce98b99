import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

/** In a process of its own: what is loaded to make a model, and to use it. */
function loadedBy(config: object, isUsed: boolean): string[] {
  const program = `
    import { registerHooks } from "node:module";
    const loaded = new Set();
    registerHooks({ resolve(name, context, next) { if (/^(ai$|@ai-sdk\\/)/.test(name)) loaded.add(name); return next(name, context); } });
    const { createModel } = await import(${JSON.stringify(new URL("./models.ts", import.meta.url).href)});
    const { systemClock: clock } = await import(${JSON.stringify(new URL("../ports/clock.ts", import.meta.url).href)});
    const fetch = async () => new Response("{}", { status: 400 });
    const model = createModel("llm", ${JSON.stringify(config)}, { clock, fetch });
    const prompt = { system: "", messages: [{ role: "user", text: "go" }], tools: [], opening: "go", turn: 1 };
    if (${isUsed}) await model.reply(prompt, { signal: new AbortController().signal }).catch(() => {});
    console.log(JSON.stringify([...loaded]));
  `;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" }));
}

const script = { scenarios: [{ match: ".", turns: [{ say: "Hi." }] }] };
const remote = { type: "anthropic", model: "m", apiKey: "k", host: "http://127.0.0.1:9", api: "chat" };

test("who plays a script, or has not asked a provider yet, loads no library", () => {
  expect(loadedBy({ type: "scripted", script }, true)).toEqual([]);
  expect(loadedBy(remote, false)).toEqual([]);
});

test("who asks a provider loads that one", () => {
  const loaded = loadedBy(remote, true);
  expect(loaded).toEqual(expect.arrayContaining(["ai", "@ai-sdk/anthropic"]));
  expect(loaded).not.toContain("@ai-sdk/openai");
});
