/** The tool that asks a person: its call is a question, and the answer is its result. It never runs. */
import type { ToolConfig } from "../config/config.ts";
import { sha256 } from "../task/digest.ts";
import { canonicalJson, type JsonObject } from "../task/json.ts";
import { createArgumentCheck, schemaHash } from "./schema.ts";
import { CallRefused, type Question, type Tool } from "./tool.ts";

export type AskUserRule = Extract<ToolConfig, { readonly type: "ask_user" }>;

const QUESTIONS_MAX = 20;
const QUESTION_LENGTH_MAX = 2_000;
const CHOICES_MAX = 50;
const CHOICE_LENGTH_MAX = 200;

interface Asked {
  readonly question: string;
  readonly choices?: readonly string[];
  readonly multiple?: boolean;
}

const PARAMETERS: JsonObject = {
  type: "object",
  additionalProperties: false,
  required: ["questions"],
  properties: {
    questions: {
      type: "array",
      minItems: 1,
      maxItems: QUESTIONS_MAX,
      items: {
        type: "object",
        additionalProperties: false,
        required: ["question"],
        properties: {
          question: { type: "string", minLength: 1, maxLength: QUESTION_LENGTH_MAX },
          choices: {
            type: "array",
            description: "The answers to choose from; without it any text is an answer.",
            minItems: 1,
            maxItems: CHOICES_MAX,
            uniqueItems: true,
            items: { type: "string", minLength: 1, maxLength: CHOICE_LENGTH_MAX },
          },
          multiple: { type: "boolean", description: "Whether several choices may be taken." },
        },
      },
    },
  },
};

const DESCRIPTION =
  "Asks the person you work for, and waits for the answer. Use it when something is unclear or when they must choose.";

export function createAskUserTool(rule: AskUserRule): Tool {
  const check = createArgumentCheck(PARAMETERS);
  const { risk, onAmbiguous, place } = rule;
  const policyVersion = sha256(canonicalJson({ type: "ask_user", risk }));

  return {
    name: rule.name,
    description: DESCRIPTION,
    parameters: PARAMETERS,
    gated: true,
    risk,
    // What a person changes about a question is the answer.
    editable: false,
    idempotent: true,
    onAmbiguous,
    rule: { file: place.file, line: place.line },
    async prepare(args) {
      const plan = { questions: readQuestions(check, args) };
      return { identity: "builtin:ask_user", schemaHash: schemaHash(PARAMETERS), policyVersion, plan };
    },
    promptFor: (args) => describeQuestions(readQuestions(check, args)),
    question: (args) => toQuestion(readQuestions(check, args)),
    run: async () => {
      throw new Error("ask_user does not run: a person answers it");
    },
  };
}

type Questions = readonly (Asked & JsonObject)[];

function readQuestions(check: (args: JsonObject) => void, args: JsonObject): Questions {
  check(args);
  // The check has just said so.
  const questions = args.questions as Questions;
  const i = questions.findIndex(({ multiple, choices }) => multiple && !choices);
  if (i >= 0) throw new CallRefused("arguments-invalid", `/questions/${i}/multiple: needs choices`);
  return questions;
}

function toQuestion(questions: Questions): Question {
  const [first] = questions;
  const nameOf = (i: number) => (questions.length === 1 ? "answer" : `answer${i + 1}`);
  const names = questions.map((_, i) => nameOf(i));
  return {
    title: questions.length === 1 && first ? first.question : `${questions.length} questions`,
    prompt: describeQuestions(questions),
    schema: {
      type: "object",
      additionalProperties: false,
      required: names,
      properties: Object.fromEntries(questions.map((asked, i) => [nameOf(i), answerSchema(asked)])),
    },
  };
}

function answerSchema({ question, choices, multiple }: Asked): JsonObject {
  if (!choices) return { type: "string", title: question };
  const one = { type: "string", enum: choices };
  if (!multiple) return { ...one, title: question };
  return { type: "array", title: question, items: one, uniqueItems: true };
}

function describeQuestions(questions: Questions): string {
  const [first] = questions;
  if (questions.length === 1 && first) return describeOne(first);
  return questions.map((asked, i) => `${i + 1}. ${describeOne(asked)}`).join("\n");
}

function describeOne({ question, choices, multiple }: Asked): string {
  if (!choices) return question;
  return `${question}\n   ${multiple ? "Any of" : "One of"}: ${choices.join(" | ")}`;
}
