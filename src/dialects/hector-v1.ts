/** Hector v1 (seed 002): `interaction_type` asks, one word in `decision` answers. */
import { z } from "zod";
import { unreachable } from "../errors.ts";
import { isObject, type JsonObject, parseJson } from "../task/json.ts";
import { IN_DOUBT_ANSWERS } from "../task/request.ts";
import {
  type Answer,
  type Asked,
  type Decoded,
  type Dialect,
  decoded,
  malformed,
  NOT_MINE,
  type Question,
  type Reply,
} from "./dialect.ts";
import { encodeField, fieldsOf, schemaOf, WireField } from "./fields.ts";
import { decodeKeyword, decodeText } from "./plain-text.ts";
import { AnyObject, answerOf, hasKey, Id, objectOf, Reason, readShape, Sha256, Text, Texts } from "./shape.ts";

export const hectorV1: Dialect = {
  name: "hector-v1",
  encodeRequests: (asked) => asked.map((one) => ({ data: encodeInteraction(one) })),
  decodeRequests(data) {
    if (!hasKey(data, "interaction_type") || hasKey(data, "decision")) return NOT_MINE;
    const read = readShape(Interaction, data);
    return read.outcome === "decoded" ? decoded([toAsked(read.value)]) : read;
  },
  encodeAnswers: (replies) =>
    replies.flatMap((reply) => {
      const data = encodeDecision(reply);
      return data ? [{ data }] : [];
    }),
  decodeAnswers(data, find) {
    // With a type it is somebody else's: Hector v2 has a decision too.
    if (!hasKey(data, "decision") || hasKey(data, "type")) return NOT_MINE;
    const read = readShape(Decision, data);
    if (read.outcome !== "decoded") return read;
    const answer = toAnswer(read.value, find(read.value.request_id ?? undefined));
    return answer.outcome === "decoded" ? decoded([answer.value]) : answer;
  },
};

/** Only `tool_approval` is Hector's own; the others say in its manner what it never asks. */
const Interaction = z.discriminatedUnion("interaction_type", [
  z.object({
    interaction_type: z.literal("tool_approval"),
    tool_name: Text,
    tool_input: Text.nullish(),
    options: Texts.nullish(),
    request_id: Id.nullish(),
  }),
  z.object({
    interaction_type: z.literal("in_doubt"),
    tool_name: Text,
    tool_input: Text.nullish(),
    request_id: Id.nullish(),
  }),
  z.object({
    interaction_type: z.literal("user_input"),
    tool_name: Text.nullish(),
    tool_input: Text.nullish(),
    request_id: Id.nullish(),
    fields: z.array(WireField).nullish(),
    schema: AnyObject.nullish(),
    url: Text.nullish(),
  }),
]);

function encodeInteraction(asked: Asked): JsonObject {
  const request_id = asked.requestId;
  switch (asked.kind) {
    case "approval": {
      const { tool: tool_name, input: tool_input } = asked;
      const options = ["approve", "deny"];
      return objectOf({ interaction_type: "tool_approval", tool_name, tool_input, options, request_id });
    }
    case "in-doubt": {
      const { tool: tool_name, input: tool_input } = asked;
      return objectOf({ interaction_type: "in_doubt", tool_name, tool_input, options: IN_DOUBT_ANSWERS, request_id });
    }
    case "input": {
      const { title: tool_name, prompt: tool_input, schema } = asked;
      const fields = fieldsOf(schema);
      const options = fields.length === 1 ? fields[0]?.options : undefined;
      const form = { fields: fields.map(encodeField), schema };
      return objectOf({ interaction_type: "user_input", tool_name, tool_input, options, request_id, ...form });
    }
    case "auth": {
      const { title: tool_name, prompt: tool_input, url } = asked;
      return objectOf({ interaction_type: "user_input", tool_name, tool_input, options: ["done"], request_id, url });
    }
    default:
      return unreachable(asked);
  }
}

function toAsked(said: z.infer<typeof Interaction>): Asked {
  const requestId = said.request_id ? { requestId: said.request_id } : {};
  if (said.interaction_type === "user_input") {
    const { tool_name: title, tool_input: prompt, url, schema, fields } = said;
    const named = typeof title === "string" ? { title } : {};
    const ofAll = { ...requestId, ...named, ...(typeof prompt === "string" ? { prompt } : {}) };
    if (typeof url === "string") return { kind: "auth", ...ofAll, url };
    return { kind: "input", ...ofAll, schema: schema ?? schemaOf(fields ?? []) };
  }
  const input = said.tool_input ?? undefined;
  return {
    kind: said.interaction_type === "tool_approval" ? "approval" : "in-doubt",
    ...requestId,
    title: said.tool_name,
    tool: said.tool_name,
    ...(input === undefined ? {} : { input, ...argsIn(input) }),
  };
}

/** Hector writes arguments as JSON in a text; for commands and files there is only the text. */
function argsIn(input: string): { args?: JsonObject } {
  const parsed = parseJson(input);
  // parseJson has made sure that it is JSON all the way down.
  return parsed.ok && isObject(parsed.value) ? { args: parsed.value as JsonObject } : {};
}

/** Strict: a misspelt `edited_args` must not approve what it wanted to change. What was asked may be echoed. */
const Decision = z.strictObject({
  decision: Text,
  request_id: Id.nullish(),
  digest: Sha256.nullish(),
  reason: Reason.nullish(),
  edited_args: AnyObject.nullish(),
  values: AnyObject.nullish(),
  interaction_type: z.unknown().optional(),
  tool_name: z.unknown().optional(),
  tool_input: z.unknown().optional(),
  options: z.unknown().optional(),
});

function toAnswer(said: z.infer<typeof Decision>, question: Question | undefined): Decoded<Answer> {
  const { decision, request_id: requestId, digest, reason, edited_args: editedArgs, values } = said;
  const ofAll = { requestId, digest, reason };
  if (values) {
    if (decision !== "answer") return malformed("/decision", 'must be "answer" where there are values');
    return decoded(answerOf("answer", { ...ofAll, values }));
  }
  const word = readWord(decision, question);
  if ("allowed" in word) return malformed("/decision", `must be ${word.allowed}`);
  return decoded(answerOf(word.choice, { ...ofAll, editedArgs, values: word.values }));
}

function readWord(
  decision: string,
  question: Question | undefined,
): Pick<Answer, "choice" | "values"> | { allowed: string } {
  const text = question?.kind === "input" ? decodeText(decision, question) : undefined;
  const word = decision.trim().toLowerCase();
  // A person who answers a question with "cancel" wants out, unless it is one of the answers to choose from.
  if (word === "cancel" && !(text && isChoice(question))) return { choice: "cancel" };
  if (text) return text;
  switch (question?.kind) {
    case "in-doubt":
      if (IN_DOUBT_ANSWERS.some((answer) => answer === word)) return { choice: "answer", values: { outcome: word } };
      return { allowed: `one of ${IN_DOUBT_ANSWERS.join(", ")}` };
    case "auth":
      return word === "done" ? { choice: "answer", values: {} } : { allowed: '"done" or "cancel"' };
    case "input":
      return { allowed: isChoice(question) ? "one of the options" : '"answer", with values' };
    default: {
      const choice = decodeKeyword(decision);
      return choice ? { choice } : { allowed: '"approve" or "deny"' };
    }
  }
}

function isChoice(question: Question | undefined): boolean {
  return question?.kind === "input" && fieldsOf(question.schema)[0]?.options !== undefined;
}

function encodeDecision({ answer, to }: Reply): JsonObject | undefined {
  const { requestId: request_id, choice, digest, reason, editedArgs: edited_args, values } = answer;
  if (choice === "cancel" && to.kind === "input" && isChoice(to) && decodeText("cancel", to)) return undefined;
  if (choice === "answer" && !values) return undefined;
  return objectOf({ decision: choice, request_id, digest, reason, edited_args, values });
}
