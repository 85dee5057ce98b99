import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../task/json.ts";
import { type AskUserRule, createAskUserTool } from "./ask-user.ts";
import type { Question } from "./tool.ts";

const rule: AskUserRule = {
  type: "ask_user",
  name: "ask_user",
  enabled: true,
  requiresApproval: false,
  place: { file: "holdpoint.yaml", line: 3 },
  approvalPrompt: undefined,
  risk: "low",
  editable: true,
  idempotent: true,
  onAmbiguous: "ask",
  timeoutMs: 60_000,
};
const tool = createAskUserTool(rule);
const ask = (...questions: JsonObject[]) => tool.question?.({ questions }) as Question;
const accepts = ({ schema }: Question, values: JsonObject) => new Ajv().compile(schema)(values);

test("one question is one answer, any text", () => {
  const question = ask({ question: "Which name?" });
  expect(question).toMatchObject({ title: "Which name?", prompt: "Which name?" });
  expect(accepts(question, { answer: "Ana" })).toBe(true);
  expect([{}, { answer: 1 }, { answer: "a", more: 1 }].map((values) => accepts(question, values))).toEqual([
    false,
    false,
    false,
  ]);
});

test("a question with choices takes one of them", () => {
  const question = ask({ question: "Which database?", choices: ["pg", "sqlite"] });
  expect(question.prompt).toBe("Which database?\n   One of: pg | sqlite");
  expect(accepts(question, { answer: "pg" })).toBe(true);
  expect(accepts(question, { answer: "mysql" })).toBe(false);
});

test("a question with several choices takes each of them once", () => {
  const question = ask({ question: "Which regions?", choices: ["eu", "us"], multiple: true });
  expect(["eu", "us"].map((answer) => accepts(question, { answer: [answer] }))).toEqual([true, true]);
  expect(accepts(question, { answer: ["eu", "eu"] })).toBe(false);
});

test("several questions are numbered, and so are their answers", () => {
  const question = ask({ question: "Name?" }, { question: "Size?", choices: ["s", "m"] });
  expect(question.title).toBe("2 questions");
  expect(question.prompt).toBe("1. Name?\n2. Size?\n   One of: s | m");
  expect(accepts(question, { answer1: "Ana", answer2: "m" })).toBe(true);
  expect(accepts(question, { answer1: "Ana" })).toBe(false);
});

describe("refuses", () => {
  test.each([
    ["no questions", { questions: [] }, "/questions: must NOT have fewer than 1 items"],
    ["21 questions", { questions: Array(21).fill({ question: "?" }) }, "/questions: must NOT have more than 20 items"],
    ["a question without text", { questions: [{ question: "" }] }, "/questions/0/question"],
    ["the same choice twice", { questions: [{ question: "?", choices: ["a", "a"] }] }, "/questions/0/choices"],
    ["several of nothing", { questions: [{ question: "?", multiple: true }] }, "/questions/0/multiple: needs choices"],
    ["what is not known", { question: "?" }, "/questions: is missing"],
  ])("%s", async (_what, args, text) => {
    await expect(tool.prepare(args as JsonObject)).rejects.toMatchObject({ code: "arguments-invalid" });
    await expect(tool.prepare(args as JsonObject)).rejects.toThrow(text);
  });
});

test("it always asks, may be asked again, and never runs", async () => {
  expect(tool).toMatchObject({ gated: true, idempotent: true, editable: false });
  const args = { questions: [{ question: "?" }] };
  const facts = await tool.prepare(args);
  expect(facts.plan).toEqual(args);
  const signal = new AbortController().signal;
  await expect(tool.run({ args, facts, idempotencyKey: "k", signal })).rejects.toThrow("does not run");
});
