import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Script, ScriptTurn } from "../config/config.ts";
import { type Clock, systemClock } from "../ports/clock.ts";
import type { Prompt, PromptMessage } from "./model.ts";
import { createScriptedModel } from "./scripted.ts";

const user = (text: string): PromptMessage => ({ role: "user", text });
const assistant = (text: string, ...tools: string[]): PromptMessage => ({
  role: "assistant",
  text,
  calls: tools.map((tool, i) => ({ callId: `call-1-${i + 1}`, tool, args: {} })),
});
type Result = Extract<PromptMessage, { role: "tool" }>;
const result = (text: string, outcome: Result["outcome"] = "done", tool = "ls"): PromptMessage => {
  return { role: "tool", callId: "call-1-1", tool, text, outcome };
};

function promptOf(turn: number, messages: readonly PromptMessage[] = [], opening = "go"): Prompt {
  return { system: "", messages: [user(opening), ...messages], tools: [], opening, turn };
}

const scriptOf = (...turns: ScriptTurn[]): Script => ({ scenarios: [{ match: ".", turns }] });
const never = new AbortController().signal;
const play = (script: Script, prompt: Prompt) =>
  createScriptedModel(script, systemClock).reply(prompt, { signal: never });

describe("the scenario", () => {
  const script: Script = {
    scenarios: [
      { match: "three", turns: [{ say: "first" }] },
      { match: "THREE|four", turns: [{ say: "second" }] },
    ],
  };

  test.each([
    ["the first that matches, whatever the case", "Delete THREE files", "first"],
    ["a later one when the first does not match", "four", "second"],
    ["none", "five", "The script has nothing for this."],
  ])("is %s", async (_what, opening, text) => {
    expect(await play(script, promptOf(1, [], opening))).toEqual({ text, calls: [] });
  });

  test("is chosen by what opened the task, not by what was said later", async () => {
    const messages = [user("four"), user("five")];
    expect((await play(script, promptOf(1, messages, "three"))).text).toBe("first");
    expect((await play(script, promptOf(7, messages, "nothing"))).text).toBe("The script has nothing for this.");
  });
});

describe("a turn", () => {
  test("answers the model call of its number; beyond the last the task completes with its words", async () => {
    const script = scriptOf({ say: "one", call: [{ tool: "ls", args: { a: 1 } }] }, { say: "two" });
    const later = [assistant("one", "ls"), result("x")];
    expect(await play(script, promptOf(1))).toEqual({ text: "one", calls: [{ tool: "ls", args: { a: 1 } }] });
    expect(await play(script, promptOf(2, later))).toEqual({ text: "two", calls: [] });
    expect(await play(script, promptOf(3, later))).toEqual({ text: "two", calls: [] });
  });

  test("without words says nothing beside its calls, and Done. when it has none", async () => {
    expect((await play(scriptOf({ call: [{ tool: "ls", args: {} }] }), promptOf(1))).text).toBe("");
    expect((await play(scriptOf({}), promptOf(1))).text).toBe("Done.");
  });

  test("asks by one call of ask_user, after its other calls", async () => {
    const ask = { question: "Which database?", choices: ["pg", "sqlite"], multiple: false };
    expect(await play(scriptOf({ ask }), promptOf(1))).toEqual({
      text: "",
      calls: [{ tool: "ask_user", args: { questions: [ask] } }],
    });
    const both = scriptOf({ call: [{ tool: "ls", args: {} }], ask: { question: "Why?" } });
    expect((await play(both, promptOf(1))).calls).toEqual([
      { tool: "ls", args: {} },
      { tool: "ask_user", args: { questions: [{ question: "Why?" }] } },
    ]);
  });
});

describe("a turn for a denial", () => {
  const script = scriptOf(
    { call: [{ tool: "rm", args: {} }] },
    { say: "Finished.", denied: { say: "Understood.", call: [{ tool: "ls", args: {} }] } },
    { say: "End.", denied: { say: "Not again." } },
  );

  test.each([
    [
      "used when one of the calls was not run",
      [assistant("", "rm", "rm"), result("ok"), result("no", "not-run")],
      "Understood.",
    ],
    ["left out when all were run", [assistant("", "rm"), result("ok")], "Finished."],
    ["left out when a call failed", [assistant("", "rm"), result("bad", "failed")], "Finished."],
    ["left out when a call was refused", [assistant("", "rm"), result("bad", "refused")], "Finished."],
  ] as const)("is %s", async (_what, messages, text) => {
    expect((await play(script, promptOf(2, messages))).text).toBe(text);
  });

  test("looks at the previous turn only", async () => {
    const messages = [assistant("", "rm"), result("no", "not-run"), assistant("Understood.", "ls"), result("a b")];
    expect((await play(script, promptOf(3, messages))).text).toBe("End.");
  });

  test("does not see what was denied in an earlier task of the conversation", async () => {
    const first = scriptOf({ say: "Hello.", denied: { say: "Sorry." } });
    const earlier = [assistant("", "rm"), result("no", "not-run")];
    expect((await play(first, promptOf(1, earlier))).text).toBe("Hello.");
  });
});

describe("the words", () => {
  const script = scriptOf({}, { say: "You chose {answer}; it said {result}. {other}", ask: { question: "{answer}?" } });

  test("take in the last answer and the last result", async () => {
    const messages = [
      assistant("", "ask_user"),
      result("mysql", "answered", "ask_user"),
      result("pg", "answered", "ask_user"),
      result("a\nb"),
    ];
    const reply = await play(script, promptOf(2, messages));
    expect(reply.text).toBe("You chose pg; it said a\nb. {other}");
    expect(reply.calls[0]?.args).toEqual({ questions: [{ question: "pg?" }] });
  });

  test("take them in literally", async () => {
    const messages = [assistant("", "ask_user"), result("$& {result}", "answered", "ask_user"), result("$1 {answer}")];
    expect((await play(script, promptOf(2, messages))).text).toBe(
      "You chose $& {result}; it said $1 {answer}. {other}",
    );
  });

  test("are empty where there was no answer, also when an earlier task had one", async () => {
    expect((await play(script, promptOf(2, [assistant("", "ls")]))).text).toBe("You chose ; it said . {other}");
    const earlier = [
      assistant("", "ask_user"),
      result("old", "answered", "ask_user"),
      user("again"),
      assistant("", "ls"),
    ];
    expect((await play(script, promptOf(2, earlier))).text).toBe("You chose ; it said . {other}");
  });

  test("stream word by word, and are whole in the end", async () => {
    const heard: string[] = [];
    const model = createScriptedModel(scriptOf({ say: " Three files\n then. " }), systemClock);
    const { text } = await model.reply(promptOf(1), { signal: never, onText: (delta) => heard.push(delta) });
    expect(heard).toEqual([" ", "Three ", "files\n ", "then. "]);
    expect(heard.join("")).toBe(text);
  });
});

describe("a delay", () => {
  test("passes on the clock before anything is said", async () => {
    const events: string[] = [];
    const clock: Clock = {
      ...systemClock,
      sleep: async (ms) => {
        events.push(`slept ${ms}`);
      },
    };
    const model = createScriptedModel(scriptOf({ say: "Hi", delayMs: 50 }), clock);
    await model.reply(promptOf(1), { signal: never, onText: (delta) => events.push(delta) });
    expect(events).toEqual(["slept 50", "Hi"]);
  });

  test("ends at once when the caller aborts, and nothing is said", async () => {
    const abort = new AbortController();
    const heard: string[] = [];
    const model = createScriptedModel(scriptOf({ say: "Hi", delayMs: 60_000 }), systemClock);
    const reply = model.reply(promptOf(1), { signal: abort.signal, onText: (delta) => heard.push(delta) });
    abort.abort(new Error("canceled"));
    await expect(reply).rejects.toThrow("canceled");
    expect(heard).toEqual([]);
    await expect(model.reply(promptOf(1), { signal: abort.signal })).rejects.toThrow("canceled");
  });
});

test("the same prompt has the same reply, from any instance, in any order", async () => {
  const line = fc.record(
    {
      say: fc.constantFrom("Hi.", "{answer}", "{result} and {answer}", ""),
      call: fc.array(fc.record({ tool: fc.constantFrom("ls", "rm"), args: fc.constant({ a: 1 }) }), { maxLength: 2 }),
      ask: fc.record({ question: fc.constantFrom("Why?", "{result}?") }),
    },
    { requiredKeys: [] },
  );
  const turn = fc.tuple(line, fc.option(line, { nil: undefined })).map(([turn, denied]): ScriptTurn => {
    return denied ? { ...turn, denied } : turn;
  });
  const scenario = fc.record({ match: fc.constantFrom("a", "b", "."), turns: fc.array(turn, { maxLength: 4 }) });
  const outcome = fc.constantFrom("done", "failed", "not-run", "refused", "unknown", "answered" as const);
  const message = fc.oneof(
    fc.string().map(user),
    fc.string().map((text) => assistant(text, "ls")),
    fc.tuple(fc.string(), outcome).map(([text, outcome]) => result(text, outcome)),
  );
  const prompt = fc
    .tuple(fc.integer({ min: 1, max: 5 }), fc.array(message, { maxLength: 8 }), fc.constantFrom("a", "b", "c"))
    .map(([turn, messages, opening]) => promptOf(turn, messages, opening));
  await fc.assert(
    fc.asyncProperty(
      fc.array(scenario, { maxLength: 3 }),
      fc.array(prompt, { minLength: 1 }),
      async (scenarios, prompts) => {
        const script = { scenarios };
        const one = createScriptedModel(script, systemClock);
        const replies = new Map<Prompt, unknown>();
        for (const prompt of prompts) replies.set(prompt, await one.reply(prompt, { signal: never }));
        for (const prompt of prompts.toReversed()) {
          const again = structuredClone(prompt);
          expect(await one.reply(again, { signal: never })).toEqual(replies.get(prompt));
          expect(await play(structuredClone(script), again)).toEqual(replies.get(prompt));
        }
      },
    ),
  );
});
