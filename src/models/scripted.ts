/** A model that plays a script: no key, no network. Its reply is a pure function of the prompt, so it replays. */
import type { Scenario, Script, ScriptTurn } from "../config/config.ts";
import type { Clock } from "../ports/clock.ts";
import type { Model, ModelReply, Prompt, PromptMessage } from "./model.ts";

const OVER = "Done.";
const NO_MATCH = "The script has nothing for this.";

type Line = Omit<ScriptTurn, "denied">;

export function createScriptedModel(script: Script, clock: Clock): Model {
  const scenarios = script.scenarios.map((scenario) => ({ pattern: new RegExp(scenario.match, "i"), scenario }));
  return {
    async reply(prompt, { signal, onText }) {
      signal.throwIfAborted();
      const line = chooseLine(scenarios.find(({ pattern }) => pattern.test(prompt.opening))?.scenario, prompt);
      if (line.delayMs) await clock.sleep(line.delayMs, signal);
      signal.throwIfAborted();
      const reply = speak(line, messagesOfTask(prompt));
      for (const word of reply.text.match(/\S+\s*|\s+/g) ?? []) onText?.(word);
      return reply;
    },
  };
}

function chooseLine(scenario: Scenario | undefined, prompt: Prompt): Line {
  if (!scenario) return { say: NO_MATCH };
  const turn = scenario.turns[prompt.turn - 1];
  // After the last turn the task completes with its words.
  if (!turn) return { say: scenario.turns.at(-1)?.say ?? OVER };
  return turn.denied && wasDenied(messagesOfTask(prompt)) ? turn.denied : turn;
}

/** Whether a call of the previous turn was denied, expired or canceled. */
function wasDenied(messages: readonly PromptMessage[]): boolean {
  const previous = messages.findLastIndex(({ role }) => role === "assistant");
  return messages.slice(previous + 1).some((message) => message.role === "tool" && message.outcome === "not-run");
}

/** Since this task's first reply: what earlier tasks of the conversation did is none of this script's business. */
function messagesOfTask({ messages, turn }: Prompt): readonly PromptMessage[] {
  const replies = messages.flatMap(({ role }, i) => (role === "assistant" ? [i] : []));
  const first = turn > 1 ? replies.slice(1 - turn)[0] : undefined;
  return first === undefined ? [] : messages.slice(first);
}

function speak(line: Line, messages: readonly PromptMessage[]): ModelReply {
  const { say, call = [], ask } = line;
  const calls = call.map(({ tool, args }) => ({ tool, args }));
  if (ask) {
    const { question, ...options } = ask;
    calls.push({ tool: "ask_user", args: { questions: [{ question: fill(question, messages), ...options }] } });
  }
  // A turn without calls ends the task, which then says at least this.
  const text = say === undefined && calls.length === 0 ? OVER : fill(say ?? "", messages);
  return { text, calls };
}

function fill(text: string, messages: readonly PromptMessage[]): string {
  const results = messages.filter((message) => message.role === "tool");
  const values = {
    answer: results.findLast(({ outcome }) => outcome === "answered")?.text ?? "",
    result: results.at(-1)?.text ?? "",
  };
  // In one pass: an answer that contains "{result}" stays as it was given.
  return text.replace(/\{(answer|result)\}/g, (_, name: "answer" | "result") => values[name]);
}
