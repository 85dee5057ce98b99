/** The lines of a scripted model: a YAML file of its own, checked as strictly as the configuration. */
import { isMap, isScalar, isSeq } from "yaml";
import { findJsonProblem, type Json, type JsonObject } from "../task/json.ts";
import type { Scenario, Script, ScriptTurn } from "./config.ts";
import { checkPattern } from "./pattern.ts";
import { entriesOf, Section } from "./section.ts";
import { parseSource, type Report, type Value, valueAt } from "./source.ts";

const NO_EFFECT = {} as const;
const SCRIPT_KEYS = { scenarios: { lost: "The model would have nothing to say." } } as const;
const SCENARIO_KEYS = { match: NO_EFFECT, turns: { lost: "The model would have nothing to say." } } as const;
const TURN_KEYS = {
  say: { lost: "The model would say nothing here." },
  call: { lost: "The model would call no tool here." },
  ask: { lost: "The model would ask nothing here." },
  delay_ms: NO_EFFECT,
} as const;
const DENIABLE_TURN_KEYS = {
  ...TURN_KEYS,
  denied: { lost: "The model would go on as if nothing had been denied." },
} as const;
const CALL_KEYS = { tool: NO_EFFECT, args: { lost: "The tool would be called without arguments." } } as const;
const ASK_KEYS = {
  question: NO_EFFECT,
  choices: { lost: "Any answer would be taken." },
  multiple: { lost: "One answer would be taken." },
} as const;

const DELAY_MAX_MS = 600_000;

export function parseScript(file: string, text: string, report: Report): Script | undefined {
  const root = parseSource(file, text, undefined, report);
  if (!root) return undefined;
  const script = new Section(root, root.span, { keys: SCRIPT_KEYS, what: "a script" }, report);
  script.require("scenarios");
  const scenarios = script.items("scenarios") ?? [];
  return { scenarios: scenarios.map((value) => readScenario(value, report)) };
}

function readScenario(value: Value, report: Report): Scenario {
  const scenario = new Section(value, value.span, { keys: SCENARIO_KEYS, what: "a scenario" }, report);
  scenario.require("match", ': a pattern for the first message, "." for any');
  scenario.require("turns");
  const match = scenario.text("match") ?? "";
  checkPattern(match, scenario.valueSpanOf("match"), "i", report);
  const turns = scenario.items("turns") ?? [];
  return { match, turns: turns.map((turn) => readDeniableTurn(turn, report)) };
}

function readDeniableTurn(value: Value, report: Report): ScriptTurn {
  const turn = new Section(value, value.span, { keys: DENIABLE_TURN_KEYS, what: "a turn" }, report);
  if (turn.size === 0 && isMap(value.node)) report.error(value.span, "a turn without say, call or ask does nothing");
  const denied = turn.section("denied", TURN_KEYS);
  return { ...readTurn(turn, report), ...(denied && { denied: readTurn(denied, report) }) };
}

/** The part that a turn and its `denied` have in common. */
function readTurn(turn: Section<keyof typeof TURN_KEYS>, report: Report): ScriptTurn {
  const say = turn.text("say");
  const call = turn.items("call")?.map((value) => readCall(value, report));
  const ask = readAsk(turn);
  const delayMs = turn.number("delay_ms", { min: 0, max: DELAY_MAX_MS });
  return {
    ...(say !== undefined && { say }),
    ...(call && { call }),
    ...(ask && { ask }),
    ...(delayMs !== undefined && { delayMs }),
  };
}

function readCall(value: Value, report: Report): { tool: string; args: JsonObject } {
  const call = new Section(value, value.span, { keys: CALL_KEYS, what: "a call" }, report);
  call.require("tool");
  const budget = { values: ARGS_VALUES_MAX };
  const entries = call.entries("args") ?? [];
  const args = Object.fromEntries(entries.map((entry) => [entry.key, toJson(entry.value, 1, budget, report)]));
  if (budget.values < 0) report.error(call.spanOf("args"), `"args" holds more than ${ARGS_VALUES_MAX} values`);
  const problem = findJsonProblem(args);
  if (problem) report.error(call.valueSpanOf("args"), `"args"${problem.pointer}: ${problem.text}`);
  return { tool: call.text("tool") ?? "", args };
}

function readAsk(turn: Section<keyof typeof TURN_KEYS>): ScriptTurn["ask"] {
  const ask = turn.section("ask", ASK_KEYS);
  if (!ask) return undefined;
  ask.require("question");
  const question = ask.text("question") ?? "";
  const choices = ask.texts("choices")?.map(({ text }) => text);
  const multiple = ask.flag("multiple");
  return { question, ...(choices && { choices }), ...(multiple !== undefined && { multiple }) };
}

const ARGS_DEPTH_MAX = 32;
/** Aliases of aliases can make a small file very large. */
const ARGS_VALUES_MAX = 10_000;

/** Free values: what a tool gets as its arguments. */
function toJson(value: Value, depth: number, budget: { values: number }, report: Report): Json {
  const { node, span } = value;
  if (depth > ARGS_DEPTH_MAX) {
    report.error(span, `"args" is nested deeper than ${ARGS_DEPTH_MAX}`);
    return null;
  }
  if (budget.values-- <= 0) return null;
  if (isMap(node)) {
    const entries = entriesOf(value, '"args"', report);
    return Object.fromEntries(entries.map((entry) => [entry.key, toJson(entry.value, depth + 1, budget, report)]));
  }
  if (isSeq(node)) return node.items.map((item) => toJson(valueAt(item, value, span), depth + 1, budget, report));
  if (!isScalar(node)) return null;
  const { value: scalar } = node;
  if (typeof scalar === "string" || typeof scalar === "number" || typeof scalar === "boolean") return scalar;
  return scalar === null ? null : String(scalar);
}
