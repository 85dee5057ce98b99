/** The real provider code against a provider on loopback. */
import { afterEach, describe, expect, test } from "vitest";
import { type OpenAiScript, type OpenAiServer, startOpenAi } from "../../test/openai/server.ts";
import { type Clock, systemClock } from "../ports/clock.ts";
import { systemFetch } from "../ports/network.ts";
import { TEXT_CHARACTERS_MAX } from "./live-text.ts";
import { type Model, ModelBusy, ModelFailed, type Prompt, type PromptMessage } from "./model.ts";
import { createModel } from "./models.ts";
import { createProviderModel } from "./provider.ts";
import type { ProviderConfig } from "./provider-package.ts";

const KEY = "sk-secret-0123456789";
const servers: OpenAiServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

async function start(script: OpenAiScript): Promise<OpenAiServer> {
  const server = await startOpenAi(script);
  servers.push(server);
  return server;
}

/** Short pauses take no time and are written down; long ones are real. */
function hurriedClock(): Clock & { readonly slept: number[] } {
  const slept: number[] = [];
  return {
    ...systemClock,
    slept,
    sleep: async (ms, signal) => {
      if (ms > 10_000) return systemClock.sleep(ms, signal);
      slept.push(ms);
    },
  };
}

function modelAt(host: string, more: Partial<ProviderConfig> = {}, clock: Clock = hurriedClock()): Model {
  const config: ProviderConfig = {
    type: "openai",
    model: "gpt-4o",
    apiKey: KEY,
    host,
    temperature: undefined,
    maxTokens: undefined,
    api: "chat",
    ...more,
  };
  return createProviderModel("gpt", config, { clock, fetch: systemFetch });
}

const TOOLS = ["execute_command", "k8s/get_pod"].map((name) => ({
  name,
  description: `runs ${name}`,
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
}));

function promptOf(
  messages: readonly PromptMessage[] = [{ role: "user", text: "Hello" }],
  more: Partial<Prompt> = {},
): Prompt {
  return { system: "Be brief.", messages, tools: TOOLS, opening: "Hello", turn: 1, ...more };
}

const never = new AbortController().signal;
const ask = (model: Model, prompt = promptOf()) => model.reply(prompt, { signal: never });
const caught = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    (value) => expect.unreachable(`replied ${JSON.stringify(value).slice(0, 100)}`),
    (error) => error,
  );

const APIS = [
  ["openai, chat", { type: "openai", api: "chat" }],
  ["openai, responses", { type: "openai", api: "responses" }],
  ["openai-compatible", { type: "openai-compatible" }],
] as const satisfies [string, Partial<ProviderConfig>][];

describe.each(APIS)("%s", (_name, api) => {
  test("replies with text, piece by piece and whole, and counts tokens", async () => {
    const { url } = await start([{ text: ["Three", " files", " then."], usage: { input: 120, output: 3 } }]);
    const heard: string[] = [];
    const reply = await modelAt(url, api).reply(promptOf(), { signal: never, onText: (delta) => heard.push(delta) });
    expect(heard).toEqual(["Three", " files", " then."]);
    expect(reply).toEqual({ text: "Three files then.", calls: [], usage: { inputTokens: 120, outputTokens: 3 } });
  });

  test("replies with one call, whose arguments came in pieces", async () => {
    const args = { command: "ls -la 'my files'", deep: { list: [1, 2, { a: null }] }, é: "😀" };
    const { url } = await start([{ text: "Looking.", calls: [{ name: "execute_command", args }] }]);
    const { text, calls } = await ask(modelAt(url, api));
    expect(text).toBe("Looking.");
    expect(calls).toEqual([{ tool: "execute_command", args, modelCallId: "theirs_1" }]);
  });

  test("replies with three calls in their order", async () => {
    const calls = ["a", "b", "c"].map((command) => ({ name: "execute_command", args: { command } }));
    const { url } = await start([{ calls }]);
    const reply = await ask(modelAt(url, api));
    expect(reply.text).toBe("");
    expect(reply.calls.map(({ args }) => args.command)).toEqual(["a", "b", "c"]);
  });

  test.each([
    ["no JSON", "{not json", /cannot be read/],
    ["cut JSON", '{"command": "rm', /cannot be read/],
    ["a list", '["rm"]', /not a JSON object/],
    ["a text", '"rm"', /not a JSON object/],
    ["null", "null", /not a JSON object/],
    ["a key that stands twice", '{"command":"ls","command":"rm"}', /at \/command: the key stands twice/],
    ["a key of every object", '{"__proto__":{"a":1}}', /__proto__/],
    ["a number that would change", '{"n":9007199254740993}', /2\^53/],
    ["half a character", '{"a":"\\ud800"}', /surrogate/],
  ])("says what is wrong with arguments that are %s", async (_what, args, problem) => {
    const { url } = await start([{ calls: [{ name: "execute_command", args }] }]);
    const { calls } = await ask(modelAt(url, api));
    expect(calls).toEqual([
      { tool: "execute_command", args: {}, modelCallId: "theirs_1", problem: expect.stringMatching(problem) },
    ]);
  });

  test("takes no arguments at all for none", async () => {
    const { url } = await start([{ calls: [{ name: "execute_command", args: "" }] }]);
    expect((await ask(modelAt(url, api))).calls).toEqual([
      { tool: "execute_command", args: {}, modelCallId: "theirs_1" },
    ]);
  });

  test("passes on a tool that nobody offered, also when none was offered", async () => {
    const made = [{ calls: [{ name: "rm -rf /", args: { all: true } }] }];
    const { url } = await start([...made, ...made]);
    const calls = [{ tool: "rm -rf /", args: { all: true }, modelCallId: "theirs_1" }];
    expect((await ask(modelAt(url, api))).calls).toEqual(calls);
    expect((await ask(modelAt(url, api), promptOf(undefined, { tools: [] }))).calls).toEqual(calls);
  });

  test("keeps calls apart to which the model gave the same id", async () => {
    const same = (command: string) => ({ id: "twin", name: "execute_command", args: { command } });
    const { url } = await start([{ calls: [same("a"), same("b")] }]);
    expect((await ask(modelAt(url, api))).calls.map(({ args }) => args.command)).toEqual(["a", "b"]);
  });

  test("replies with nothing when the model said nothing", async () => {
    const { url } = await start([{}]);
    expect(await ask(modelAt(url, api))).toMatchObject({ text: "", calls: [] });
  });

  test("keeps what came before the model's own limit", async () => {
    const { url } = await start([{ text: "Once upon a", finish: "length" }]);
    expect((await ask(modelAt(url, api))).text).toBe("Once upon a");
  });

  test("gives a tool its name back that no provider would take", async () => {
    const { url, requests } = await start(({ body }) => {
      const tools: { name?: string; function?: { name: string } }[] = body.tools;
      const name = tools.map((tool) => tool.function?.name ?? tool.name ?? "").find((name) => name.startsWith("k8s"));
      return { calls: [{ name: name ?? "", args: {} }] };
    });
    expect((await ask(modelAt(url, api))).calls[0]?.tool).toBe("k8s/get_pod");
    expect(JSON.stringify(requests[0]?.body)).not.toContain('"k8s/get_pod"');
  });

  test("cuts five megabytes of text, and hangs up", async () => {
    const server = await start([{ text: Array.from({ length: 5_000 }, () => "a".repeat(1024)) }]);
    let heard = 0;
    const onText = (delta: string) => {
      heard += delta.length;
    };
    const { text } = await modelAt(server.url, api).reply(promptOf(), { signal: never, onText });
    expect(text.length).toBe(TEXT_CHARACTERS_MAX);
    expect(heard).toBe(TEXT_CHARACTERS_MAX);
    await expect.poll(() => server.requests[0]?.aborted).toBe(true);
  });

  test("cuts five megabytes that come as one piece", async () => {
    const { url } = await start([{ text: "a".repeat(5 * 1024 * 1024) }]);
    expect((await ask(modelAt(url, api))).text.length).toBe(TEXT_CHARACTERS_MAX);
  });

  test("takes no more than 128 calls of one turn", async () => {
    const calls = Array.from({ length: 200 }, (_, n) => ({ id: `id-${n}`, name: "execute_command", args: { n } }));
    const { url } = await start([{ calls }]);
    const reply = await ask(modelAt(url, api));
    expect(reply.calls.map(({ args }) => args.n)).toEqual(calls.slice(0, 128).map((_, n) => n));
  });

  test("rejects at once when it is aborted: before, at the start and in mid-stream", async () => {
    const server = await start(() => ({
      text: ["one ", "two ", "three"],
      hangAfter: api.type === "openai" && api.api === "responses" ? 5 : 3,
    }));
    const before = AbortSignal.abort(new Error("canceled"));
    await expect(modelAt(server.url, api).reply(promptOf(), { signal: before })).rejects.toThrow("canceled");
    expect(server.requests.length).toBe(0);

    const abort = new AbortController();
    const heard: string[] = [];
    const onText = (delta: string) => {
      heard.push(delta);
      if (heard.length === 2) abort.abort(new Error("canceled"));
    };
    await expect(modelAt(server.url, api).reply(promptOf(), { signal: abort.signal, onText })).rejects.toThrow(
      "canceled",
    );
    expect(heard).toEqual(["one ", "two "]);
    await expect.poll(() => server.requests[0]?.aborted).toBe(true);
    expect(server.requests.length).toBe(1);

    const mute = await start([{ hang: true }]);
    const later = new AbortController();
    const reply = modelAt(mute.url, api).reply(promptOf(), { signal: later.signal });
    await expect.poll(() => mute.requests.length).toBe(1);
    later.abort(new Error("canceled"));
    await expect(reply).rejects.toThrow("canceled");
    await expect.poll(() => mute.requests[0]?.aborted).toBe(true);
  });

  test("sends the key in its header and nowhere else", async () => {
    const { url, requests } = await start([{}]);
    await ask(modelAt(url, api));
    expect(requests[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(requests[0]?.path).not.toContain(KEY);
    expect(JSON.stringify(requests[0]?.body)).not.toContain(KEY);
  });

  test("makes up no key for a host of one's own", async () => {
    process.env.OPENAI_API_KEY = "sk-from-the-environment";
    try {
      const { url, requests } = await start([{}]);
      await ask(modelAt(url, { ...api, apiKey: undefined }));
      expect(requests[0]?.headers.authorization).toBeUndefined();
    } finally {
      delete process.env.OPENAI_API_KEY;
    }
  });
});

describe("what is sent", () => {
  const edited = 'Edited by ana before it ran: {"command":"ls"}\n---\na b';
  const history: PromptMessage[] = [
    { role: "user", text: "Clean up" },
    { role: "assistant", text: "", calls: [{ callId: "call-1-1", tool: "execute_command", args: { command: "old" } }] },
    { role: "tool", callId: "call-1-1", tool: "execute_command", text: "earlier task", outcome: "done" },
    { role: "assistant", text: "", calls: [] },
    { role: "user", text: "" },
    {
      role: "assistant",
      text: "Three calls.",
      calls: [
        { callId: "call-1-1", tool: "execute_command", args: { command: "rm" } },
        { callId: "call-1-2", tool: "k8s/get_pod", args: {} },
        { callId: "call-1-3", tool: "gone/tool", args: { a: [1] } },
      ],
    },
    { role: "user", text: "Are you there?" },
    { role: "tool", callId: "call-1-3", tool: "gone/tool", text: "There is no such tool.", outcome: "refused" },
    { role: "tool", callId: "call-1-1", tool: "execute_command", text: "Denied by ana: too risky", outcome: "not-run" },
    { role: "tool", callId: "call-1-2", tool: "k8s/get_pod", text: edited, outcome: "done" },
    { role: "tool", callId: "call-9-9", tool: "execute_command", text: "nobody asked", outcome: "done" },
  ];

  test("is the whole conversation: every call with one result right behind it, ids unique", async () => {
    const { url, requests } = await start([{ text: "ok" }]);
    await ask(modelAt(url, { temperature: 0.5, maxTokens: 77 }), promptOf(history));
    const { messages, tools, ...settings } = requests[0]?.body ?? {};
    expect(requests[0]?.path).toBe("/v1/chat/completions");
    expect(settings).toMatchObject({ model: "gpt-4o", temperature: 0.5, max_tokens: 77, stream: true });
    const call = (id: string, name: unknown, args: object) => {
      return { id, type: "function", function: { name, arguments: JSON.stringify(args) } };
    };
    const pod = expect.stringMatching(/^k8s_get_pod_[0-9a-f]{8}$/);
    expect(messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Clean up" },
      expect.objectContaining({
        role: "assistant",
        tool_calls: [call("call00001", "execute_command", { command: "old" })],
      }),
      { role: "tool", tool_call_id: "call00001", content: "earlier task" },
      { role: "user", content: "(no text)" },
      {
        role: "assistant",
        content: "Three calls.",
        tool_calls: [
          call("call00002", "execute_command", { command: "rm" }),
          call("call00003", pod, {}),
          call("call00004", expect.stringMatching(/^gone_tool_[0-9a-f]{8}$/), { a: [1] }),
        ],
      },
      { role: "tool", tool_call_id: "call00002", content: "Denied by ana: too risky" },
      { role: "tool", tool_call_id: "call00003", content: edited },
      { role: "tool", tool_call_id: "call00004", content: "There is no such tool." },
      { role: "user", content: "Are you there?" },
    ]);
    expect(tools).toEqual([
      { type: "function", function: { ...TOOLS[0] } },
      { type: "function", function: { ...TOOLS[1], name: pod } },
    ]);
  });

  test("has a result also for a call whose own was lost", async () => {
    const { url, requests } = await start([{ text: "ok" }]);
    await ask(modelAt(url), promptOf(history.slice(0, 2)));
    expect(requests[0]?.body.messages.at(-1)).toEqual({
      role: "tool",
      tool_call_id: "call00001",
      content: "There is no result of this call.",
    });
  });

  test("has an object as schema also for a tool without arguments", async () => {
    const { url, requests } = await start([{ text: "ok" }]);
    await ask(
      modelAt(url),
      promptOf(undefined, { system: "", tools: [{ name: "now", description: "", parameters: {} }] }),
    );
    expect(requests[0]?.body.tools[0].function.parameters).toEqual({ type: "object", properties: {} });
    expect(requests[0]?.body.messages.map(({ role }: { role: string }) => role)).toEqual(["user"]);
  });

  test("is warned about by nobody: a setting that the model does not know is left out", async () => {
    const warnings: string[] = [];
    const listen = ({ message }: Error) => warnings.push(message);
    process.on("warning", listen);
    try {
      const { url, requests } = await start([{ text: "ok" }]);
      await ask(modelAt(url, { model: "o3", temperature: 0.5 }));
      await new Promise((resolve) => setImmediate(resolve));
      expect(requests[0]?.body.temperature).toBeUndefined();
      expect(warnings).toEqual([]);
    } finally {
      process.off("warning", listen);
    }
  });

  test("goes to the Responses API when that is chosen, which keeps nothing", async () => {
    const { url, requests } = await start([{ text: "ok" }]);
    await ask(modelAt(url, { api: "responses" }), promptOf(history));
    const { path, body } = requests[0] ?? {};
    expect(path).toBe("/v1/responses");
    expect(body).toMatchObject({ model: "gpt-4o", store: false, stream: true });
    const ids = (type: string) =>
      body.input
        .filter((item: { type?: string }) => item.type === type)
        .map((item: { call_id: string }) => item.call_id);
    expect(ids("function_call")).toEqual(["call00001", "call00002", "call00003", "call00004"]);
    expect(ids("function_call_output")).toEqual(ids("function_call"));
  });

  test("takes the address from the configuration, not from the environment", async () => {
    process.env.OPENAI_BASE_URL = "http://127.0.0.1:9/elsewhere";
    try {
      const { url, requests } = await start([{ text: "ok" }]);
      await ask(modelAt(url));
      expect(requests.length).toBe(1);
      const error = await caught(ask(modelAt("", { host: undefined, apiKey: undefined })));
      expect(error).toBeInstanceOf(ModelFailed);
      expect(error.message).toBe('llm "gpt": no key for api.openai.com. Set llms.gpt.api_key.');
    } finally {
      delete process.env.OPENAI_BASE_URL;
    }
  });
});

describe("a provider that is busy", () => {
  test.each([
    ["seconds", { "retry-after": "7" }, 7_000],
    ["milliseconds", { "retry-after-ms": "1500", "retry-after": "99" }, 1_500],
    ["a date", { "retry-after": "Sun, 06 Nov 2033 08:49:37 GMT" }, 37_000],
    ["a date that has passed", { "retry-after": "Sun, 06 Nov 1994 08:49:37 GMT" }, 0],
    ["no time", {}, undefined],
    ["nonsense", { "retry-after": "soon" }, undefined],
    ["a year, cut to an hour", { "retry-after": "31536000" }, 3_600_000],
  ])("says when to ask again: %s", async (_what, headers, retryAfterMs) => {
    const clock = { ...hurriedClock(), nowMs: () => Date.UTC(2033, 10, 6, 8, 49, 0) };
    const { url, requests } = await start([{ status: 429, headers, body: { error: { message: "Slow down" } } }]);
    const error = await caught(ask(modelAt(url, {}, clock)));
    expect(error).toBeInstanceOf(ModelBusy);
    expect(error).toMatchObject({ retryAfterMs });
    expect(error.message).toContain('llm "gpt"');
    expect(error.message).toContain("Slow down");
    expect(requests.length).toBe(1);
  });

  test.each([
    ["503 with a time", { status: 503, headers: { "retry-after": "2" } }, 2_000],
    ["500 with a time", { status: 500, headers: { "retry-after": "2" } }, 2_000],
    ["529", { status: 529 }, undefined],
    ["503, overloaded", { status: 503, body: { error: { message: "The model is overloaded" } } }, undefined],
  ])("is busy, not broken: %s", async (_what, reply, retryAfterMs) => {
    const { url, requests } = await start([reply]);
    const error = await caught(ask(modelAt(url)));
    expect(error).toBeInstanceOf(ModelBusy);
    expect(error).toMatchObject({ retryAfterMs });
    expect(requests.length).toBe(1);
  });

  test.each(["openai", "openai-compatible"] as const)(
    "is busy also when it says so in the stream (%s)",
    async (type) => {
      const frame = {
        error: { message: "Rate limit reached", type: "rate_limit_exceeded", code: "rate_limit_exceeded" },
      };
      const { url } = await start([{ garbage: `data: ${JSON.stringify(frame)}\n\n` }]);
      expect(await caught(ask(modelAt(url, { type })))).toBeInstanceOf(ModelBusy);
    },
  );
});

describe("a provider that fails for a moment", () => {
  test.each([
    ["500", { status: 500 }],
    ["502", { status: 502 }],
    ["503", { status: 503 }],
    ["408", { status: 408 }],
    ["a line that is cut before anything was shown", { text: "x", cutAfter: 1 }],
    ["a stream that just ends", { garbage: "" }],
    ["a page instead of an answer", { garbage: "<html>Welcome</html>" }],
    ["broken JSON", { garbage: 'data: {"choices": [{\n\n' }],
  ])("is asked again: %s", async (_what, reply) => {
    const clock = hurriedClock();
    const { url, requests } = await start([reply, reply, { text: "There." }]);
    expect((await ask(modelAt(url, {}, clock))).text).toBe("There.");
    expect(requests.length).toBe(3);
    expect(clock.slept).toEqual([500, 2_000]);
  });

  test.each([
    ["500", { status: 500, body: { error: { message: "boom" } } }, /answered 500: boom/],
    ["a page instead of an answer", { garbage: "<html>Welcome</html>" }, /broke off/],
    ["JSON of something else", { garbage: 'data: {"hello": 1}\n\n' }, /no whole answer.*check llms\.gpt\.host/],
  ])("is given up after three attempts, with a plain error: %s", async (_what, reply, words) => {
    const { url, requests } = await start(() => reply);
    const error = await caught(ask(modelAt(url)));
    expect(error.name).toBe("Error");
    expect(error.message).toMatch(words);
    expect(error.message).toMatch(/llm "gpt".*127\.0\.0\.1/);
    expect(requests.length).toBe(3);
  });

  test("cannot be reached: says so, with the host", async () => {
    const { url, stop } = await startOpenAi([]);
    await stop();
    const error = await caught(ask(modelAt(url)));
    expect(error.name).toBe("Error");
    expect(error.message).toContain(`llm "gpt": ${new URL(url).host} cannot be reached: `);
    expect(error.message).toContain("ECONNREFUSED");
  });

  test("is not asked again once its words were shown", async () => {
    const { url, requests } = await start([{ text: ["Half ", "a "], cutAfter: 2 }, { text: "Whole." }]);
    const heard: string[] = [];
    const reply = modelAt(url).reply(promptOf(), { signal: never, onText: (delta) => heard.push(delta) });
    expect((await caught(reply)).name).toBe("Error");
    expect(heard).toEqual(["Half "]);
    expect(requests.length).toBe(1);
  });

  test("never makes half of a call a call", async () => {
    const calls = [{ name: "execute_command", args: { command: "rm -rf ./build" } }];
    const { url, requests } = await start([{ calls, cutAfter: 3 }, { text: "Better not." }]);
    expect(await ask(modelAt(url))).toMatchObject({ text: "Better not.", calls: [] });
    expect(requests.length).toBe(2);
  });

  test("is given up when its answer does not end", async () => {
    const server = await start(() => ({
      raw: async (_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const piece = `: ${"a".repeat(1024 * 1024)}\n\n`;
        while (!response.destroyed) {
          response.write(piece);
          await new Promise((resolve) => setImmediate(resolve));
        }
      },
    }));
    expect((await caught(ask(modelAt(server.url)))).message).toContain("longer than 67108864 bytes");
    await expect.poll(() => server.requests.every(({ aborted }) => aborted)).toBe(true);
  });

  test("stops waiting for the next attempt when it is aborted", async () => {
    const abort = new AbortController();
    const clock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms * 1000, signal) };
    const { url, requests } = await start(() => ({ status: 500 }));
    const reply = modelAt(url, {}, clock).reply(promptOf(), { signal: abort.signal });
    await expect.poll(() => requests.length).toBe(1);
    abort.abort(new Error("canceled"));
    await expect(reply).rejects.toThrow("canceled");
    expect(requests.length).toBe(1);
  });

  test("that says nothing for five minutes is given up, and hung up on", async () => {
    let nowMs = 0;
    const { requests, url } = await start([{ hang: true }]);
    const clock: Clock = {
      ...systemClock,
      nowMs: () => nowMs,
      sleep: async (ms) => {
        while (requests.length === 0) await systemClock.turn();
        nowMs += ms;
      },
    };
    expect((await caught(ask(modelAt(url, {}, clock)))).message).toBe('llm "gpt" said nothing for 300 s');
    await expect.poll(() => requests[0]?.aborted).toBe(true);
  });
});

describe("what a person must mend", () => {
  test.each([
    [401, `Incorrect API key provided: ${KEY}`, "Check llms.gpt.api_key."],
    [403, "Not yours", 'The key in llms.gpt.api_key may not use "gpt-4o".'],
    [404, "No such model", 'Check llms.gpt.model ("gpt-4o") and host.'],
    [400, "Too long for the overloaded\u001b[31m", "Check llms.gpt"],
    [413, "Too large", "Check llms.gpt"],
    [307, "Moved", "put the address into llms.gpt.host"],
  ])("is said once, with llm, host and what to do, without the key: %i", async (status, message, todo) => {
    const headers = { location: "http://127.0.0.1:9/" };
    const { url, requests } = await start([{ status, headers, body: { error: { message } } }]);
    const error = await caught(ask(modelAt(url)));
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error.message).toContain(`llm "gpt": ${new URL(url).host} answered ${status}: `);
    expect(error.message).toContain(todo);
    expect(error.message).not.toMatch(/\p{Cc}/u);
    expect(JSON.stringify([error.message, error.stack, error.cause])).not.toContain(KEY);
    expect(requests.length).toBe(1);
  });

  test("is a quota that is used up, which no waiting mends", async () => {
    const body = { error: { message: "You exceeded your current quota", code: "insufficient_quota" } };
    const { url } = await start([{ status: 429, headers: { "retry-after": "1" }, body }]);
    const error = await caught(ask(modelAt(url)));
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error.message).toContain("quota");
  });
});

describe("other providers", () => {
  const stream = (lines: readonly object[]) => ({
    raw: (_request: unknown, response: import("node:http").ServerResponse) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const line of lines) {
        const event = "type" in line ? `event: ${line.type}\n` : "";
        response.write(`${event}data: ${JSON.stringify(line)}\n\n`);
      }
      response.end();
    },
  });
  const messages: PromptMessage[] = [
    { role: "user", text: "Hello" },
    { role: "assistant", text: "", calls: [{ callId: "call-1-1", tool: "k8s/get_pod", args: { a: 1 } }] },
    { role: "tool", callId: "call-1-1", tool: "k8s/get_pod", text: "Denied by ana", outcome: "not-run" },
  ];
  const pod = expect.stringMatching(/^k8s_get_pod_[0-9a-f]{8}$/);

  test("anthropic: request, reply, calls and usage", async () => {
    const { url, requests } = await start([
      stream([
        {
          type: "message_start",
          message: {
            id: "m",
            type: "message",
            role: "assistant",
            model: "c",
            content: [],
            usage: { input_tokens: 9, output_tokens: 1 },
          },
        },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Look" } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ing." } },
        { type: "content_block_stop", index: 0 },
        {
          type: "content_block_start",
          index: 1,
          content_block: { type: "tool_use", id: "toolu_1", name: "execute_command", input: {} },
        },
        { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: '{"comm' } },
        { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: 'and":"ls"}' } },
        { type: "content_block_stop", index: 1 },
        { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 5 } },
        { type: "message_stop" },
      ]),
    ]);
    const heard: string[] = [];
    const model = modelAt(url, { type: "anthropic", model: "claude-sonnet-4-5" });
    const reply = await model.reply(promptOf(messages), { signal: never, onText: (delta) => heard.push(delta) });
    expect(reply).toEqual({
      text: "Looking.",
      calls: [{ tool: "execute_command", args: { command: "ls" }, modelCallId: "toolu_1" }],
      usage: { inputTokens: 9, outputTokens: 5 },
    });
    expect(heard).toEqual(["Look", "ing."]);
    const { path, headers, body } = requests[0] ?? {};
    expect([path, headers?.["x-api-key"]]).toEqual(["/v1/messages", KEY]);
    expect(body).toMatchObject({
      model: "claude-sonnet-4-5",
      stream: true,
      system: [{ type: "text", text: "Be brief." }],
    });
    expect(body.tools.map(({ name }: { name: string }) => name)).toEqual(["execute_command", pod]);
    expect(body.messages).toMatchObject([
      { role: "user", content: [{ type: "text", text: "Hello" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "call00001", name: pod, input: { a: 1 } }] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "call00001", content: "Denied by ana" }],
      },
    ]);
  });

  test("anthropic: overloaded, as a status and in the stream", async () => {
    const body = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const { url } = await start([{ status: 529, body, headers: { "retry-after": "3" } }, stream([body])]);
    const model = modelAt(url, { type: "anthropic" });
    expect(await caught(ask(model))).toMatchObject({ name: "ModelBusy", retryAfterMs: 3_000 });
    expect(await caught(ask(model))).toMatchObject({ name: "ModelBusy" });
  });

  test("google: request, reply, calls and usage", async () => {
    const candidate = (parts: readonly object[], more: object = {}) => {
      return { candidates: [{ index: 0, content: { role: "model", parts }, ...more }] };
    };
    const { url, requests } = await start([
      stream([
        candidate([{ text: "Look" }]),
        candidate([{ text: "ing." }, { functionCall: { name: "execute_command", args: { command: "ls" } } }]),
        {
          ...candidate([], { finishReason: "STOP" }),
          usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 14 },
        },
      ]),
    ]);
    const heard: string[] = [];
    const model = modelAt(url, { type: "google", model: "gemini-2.5-flash" });
    const reply = await model.reply(promptOf(messages), { signal: never, onText: (delta) => heard.push(delta) });
    expect(reply).toMatchObject({
      text: "Looking.",
      calls: [{ tool: "execute_command", args: { command: "ls" } }],
      usage: { inputTokens: 9, outputTokens: 5 },
    });
    expect(heard).toEqual(["Look", "ing."]);
    const { path, headers, body } = requests[0] ?? {};
    expect(path).toBe("/v1/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    expect(headers?.["x-goog-api-key"]).toBe(KEY);
    expect(body.systemInstruction.parts).toEqual([{ text: "Be brief." }]);
    expect(body.contents).toMatchObject([
      { role: "user", parts: [{ text: "Hello" }] },
      { role: "model", parts: [{ functionCall: { name: pod, args: { a: 1 } } }] },
      { role: "user", parts: [{ functionResponse: { name: pod } }] },
    ]);
    expect(JSON.stringify(body.contents[2])).toContain("Denied by ana");
  });

  test("google: a key that is refused", async () => {
    const body = { error: { code: 403, message: `API key ${KEY} is not valid`, status: "PERMISSION_DENIED" } };
    const { url } = await start([{ status: 403, body }]);
    const error = await caught(ask(modelAt(url, { type: "google" })));
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error.message).not.toContain(KEY);
  });
});

test("the factory makes the model that the configuration names", async () => {
  const { url } = await start([{ text: "From afar." }]);
  const parts = { clock: systemClock, fetch: systemFetch };
  const script = { scenarios: [{ match: ".", turns: [{ say: "From the script." }] }] };
  const base = { model: "m", apiKey: undefined, temperature: undefined, maxTokens: undefined, api: "chat" } as const;
  const scripted = createModel("demo", { type: "scripted", script }, parts);
  const remote = createModel("far", { ...base, type: "openai-compatible", host: url }, parts);
  expect((await ask(scripted)).text).toBe("From the script.");
  expect((await ask(remote)).text).toBe("From afar.");
  const lost = createModel("lost", { ...base, type: "openai-compatible", host: undefined }, parts);
  expect((await caught(ask(lost))).message).toBe('llm "lost": host is missing. Set llms.lost.host.');
});
