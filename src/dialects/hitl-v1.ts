/**
 * kagent's extension `hitl/v1`, in metadata: all approvals in one request, or one set of questions. With both open,
 * approvals come first; the pause is issued again when they are closed, and then the questions stand there.
 */
import { z } from "zod";
import type { JsonObject } from "../task/json.ts";
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
import { type Field, fieldsOf, schemaOf } from "./fields.ts";
import { AnyObject, answerOf, hasKey, Id, objectOf, Reason, readShape, Text, Texts } from "./shape.ts";

export const hitlV1: Dialect = {
  name: "hitl-v1",
  uri: "https://kagent.dev/extensions/hitl/v1",
  encodeRequests(asked) {
    const approvals = asked.filter((one) => one.kind === "approval");
    if (approvals.length > 0) return [{ data: encodeApprovals(approvals) }];
    return asked.flatMap(encodeQuestions).slice(0, 1);
  },
  decodeRequests(data) {
    if (!hasKey(data, "type") || isOneOf(ANSWERING, data.type)) return NOT_MINE;
    const read = readShape(HitlRequest, data);
    return read.outcome === "decoded" ? decoded(toAsked(read.value)) : read;
  },
  encodeAnswers(replies) {
    const approvals = replies.flatMap(encodeApproval);
    if (approvals.length > 0) return [{ data: { type: "tool_approval_response", approvals } }];
    return replies.flatMap(encodeReply).slice(0, 1);
  },
  decodeAnswers(data, find) {
    if (!hasKey(data, "type") || isOneOf(ASKING, data.type)) return NOT_MINE;
    const read = readShape(HitlResponse, data);
    if (read.outcome !== "decoded") return read;
    if (read.value.type === "tool_approval_response") return toApprovals(read.value.approvals);
    return toAnswer(read.value, find(read.value.id));
  },
};

const ASKING = ["tool_approval_request", "ask_user_request"];
const ANSWERING = ["tool_approval_response", "ask_user_response"];

function isOneOf(words: readonly string[], word: unknown): boolean {
  return words.some((candidate) => candidate === word);
}

const Tool = z.object({ id: Id, call_id: Text.nullish(), name: Text, args: AnyObject.nullish() });
const Asking = z.object({ question: Text, choices: Texts.nullish(), multiple: z.boolean().nullish() });
/** A sub-agent's own calls: its ids are what is decided, not the parent's. */
const Nested = z.object({ subagent_name: Text.nullish(), tools: z.array(Tool).min(1) });
const HitlRequest = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("tool_approval_request"),
    hint: Text.nullish(),
    tools: z.array(Tool).min(1),
    nested: Nested.nullish(),
  }),
  z.object({ type: z.literal("ask_user_request"), id: Id, questions: z.array(Asking).min(1) }),
]);

/** kagent forbids what it does not know, and so do we: half an approval is none. */
const HitlResponse = z.discriminatedUnion(
  "type",
  [
    z.strictObject({
      type: z.literal("tool_approval_response"),
      approvals: z
        .array(z.strictObject({ id: Id, approved: z.boolean(), rejection_reason: Reason.nullish() }))
        .min(1, "names no request"),
    }),
    z.strictObject({
      type: z.literal("ask_user_response"),
      id: Id,
      answers: z.array(z.strictObject({ answer: Texts })).min(1, "contains no answers"),
    }),
  ],
  'must be "tool_approval_response" or "ask_user_response"',
);
type Approvals = Extract<z.infer<typeof HitlResponse>, { type: "tool_approval_response" }>["approvals"];
type Answers = Extract<z.infer<typeof HitlResponse>, { type: "ask_user_response" }>;

// What is asked

function encodeApprovals(approvals: readonly (Asked & { kind: "approval" })[]): JsonObject {
  const tools = approvals.map(({ requestId: id, callId: call_id, tool: name, args = {} }) =>
    objectOf({ id, call_id, name, args }),
  );
  const hint = [...new Set(approvals.flatMap(({ prompt }) => (prompt ? [prompt] : [])))].join("\n\n");
  return { type: "tool_approval_request", hint, tools };
}

function encodeQuestions(asked: Asked): readonly { data: JsonObject }[] {
  const fields = asked.kind === "approval" ? undefined : questionFields(asked);
  if (!fields || asked.requestId === undefined) return [];
  const questions = fields.map(({ type, label, options }) => {
    const question = asked.kind === "in-doubt" ? (asked.prompt ?? label) : label;
    return objectOf({ question, choices: options, multiple: options ? type === "multiselect" : undefined });
  });
  return [{ data: { type: "ask_user_request", id: asked.requestId, questions } }];
}

/** Its questions take texts; a request that wants anything else cannot be asked this way. */
function questionFields(question: Question): readonly Field[] | undefined {
  if (question.kind === "in-doubt") return [OUTCOME];
  if (question.kind !== "input") return undefined;
  const fields = fieldsOf(question.schema);
  const fits = fields.length > 0 && fields.every(({ type }) => /^(text|select|multiselect)$/.test(type));
  return fits ? fields : undefined;
}

const OUTCOME: Field = { name: "outcome", type: "select", label: "outcome", required: true, options: IN_DOUBT_ANSWERS };

function toAsked(said: z.infer<typeof HitlRequest>): readonly Asked[] {
  if (said.type === "ask_user_request") {
    const nameOf = (i: number) => (said.questions.length === 1 ? "answer" : `answer${i + 1}`);
    const fields = said.questions.map(({ question, choices, multiple }, i) => ({
      name: nameOf(i),
      type: multiple ? "multiselect" : "text",
      label: question,
      required: true,
      ...(choices ? { options: choices } : {}),
    }));
    return [{ kind: "input", requestId: said.id, schema: schemaOf(fields) }];
  }
  const { tools, hint, nested } = said;
  const path = nested?.subagent_name ? { path: [nested.subagent_name] } : {};
  return (nested?.tools ?? tools).map(({ id, call_id, name, args }) => ({
    kind: "approval",
    requestId: id,
    title: name,
    ...(hint ? { prompt: hint } : {}),
    tool: name,
    args: args ?? {},
    ...(call_id ? { callId: call_id } : {}),
    ...path,
  }));
}

// What is answered

function encodeApproval({ answer }: Reply): readonly JsonObject[] {
  const { requestId: id, choice, reason, editedArgs } = answer;
  if (id === undefined || editedArgs || (choice !== "approve" && choice !== "deny")) return [];
  const approved = choice === "approve";
  return [objectOf({ id, approved, rejection_reason: approved ? undefined : reason })];
}

function encodeReply({ answer, to }: Reply): readonly { data: JsonObject }[] {
  const { requestId: id, choice, values } = answer;
  const fields = questionFields(to);
  if (!fields || !values || id === undefined || choice !== "answer") return [];
  const answers: { answer: readonly string[] }[] = [];
  for (const { name } of fields) {
    const value = Object.hasOwn(values, name) ? values[name] : [];
    const texts = Array.isArray(value) ? value : [value];
    if (!texts.every((text) => typeof text === "string")) return [];
    answers.push({ answer: texts });
  }
  return [{ data: { type: "ask_user_response", id, answers } }];
}

function toApprovals(approvals: Approvals): Decoded<readonly Answer[]> {
  const seen = new Set<string>();
  for (const [i, { id, approved, rejection_reason }] of approvals.entries()) {
    if (seen.has(id)) return malformed(`/approvals/${i}/id`, "stands twice");
    seen.add(id);
    if (approved && rejection_reason) {
      return malformed(`/approvals/${i}/rejection_reason`, "only what is rejected has a reason");
    }
  }
  return decoded(
    approvals.map(({ id: requestId, approved, rejection_reason }) =>
      answerOf(approved ? "approve" : "deny", { requestId, reason: rejection_reason || undefined }),
    ),
  );
}

/** By position: the n-th answer is that of the n-th question. */
function toAnswer({ id, answers }: Answers, question: Question | undefined): Decoded<readonly Answer[]> {
  if (!question) return decoded([{ requestId: id, choice: "answer", values: {} }]);
  const fields = questionFields(question);
  if (!fields) return malformed("/id", "is no question with texts as answers");
  if (fields.length !== answers.length) return malformed("/answers", `must answer every question: ${fields.length}`);
  const values: [string, string | readonly string[]][] = [];
  for (const [i, { name, type, required }] of fields.entries()) {
    const texts = answers[i]?.answer ?? [];
    const [only] = texts;
    if (type === "multiselect") values.push([name, texts]);
    else if (texts.length > 1) return malformed(`/answers/${i}/answer`, "takes one answer");
    else if (only !== undefined) values.push([name, only]);
    else if (required) return malformed(`/answers/${i}/answer`, "must be answered");
  }
  return decoded([{ requestId: id, choice: "answer", values: Object.fromEntries(values) }]);
}
