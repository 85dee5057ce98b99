/** What a function asks a person, as a question with a JSON Schema; and what was answered, checked against it. */
import { HoldpointError } from "../errors.ts";
import { isObject, type Json, type JsonObject } from "../task/json.ts";
import type { Question } from "../tools/tool.ts";
import { AnswerInvalid, type AskForm, type QuestionsForm, type Schema } from "./define-agent.ts";

type Item = QuestionsForm["questions"][number];

export function toQuestion(key: string, form: AskForm): Question {
  const items = itemsOf(form);
  const prompt = "questions" in form ? form.questions.map(({ question }) => question).join("\n") : form.question;
  const title = form.title ?? (items && items.length > 1 ? `${items.length} questions` : prompt);
  if (!items) return { title, prompt, schema: "schema" in form ? toJsonSchema(key, form.schema) : {} };
  const names = items.map(nameItem);
  if (items.length === 0 || new Set(names).size < names.length) {
    throw new HoldpointError("usage-invalid", `ask("${key}"): give at least one question, and each a name of its own`);
  }
  const properties = Object.fromEntries(items.map((item, i) => [names[i] ?? "", schemaOf(item)]));
  return { title, prompt, schema: { type: "object", additionalProperties: false, required: names, properties } };
}

/** The values as they may be used. The runtime checks answers too; the log may be older than that. */
export async function checkValues(key: string, form: AskForm, values: JsonObject): Promise<unknown> {
  const items = itemsOf(form);
  if (!items) return "schema" in form && isSchema(form.schema) ? checkAgainst(key, form.schema, values) : values;
  for (const [i, item] of items.entries()) {
    const name = nameItem(item, i, items);
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    if (!fits(item, value)) throw new AnswerInvalid(key, `/${name}: ${JSON.stringify(value)} answers nothing asked`);
  }
  return values;
}

export async function checkAgainst<T>(key: string, schema: Schema<T>, value: Json): Promise<T> {
  const result = await schema["~standard"].validate(value);
  if (!result.issues) return result.value;
  const problems = result.issues.map(({ message, path = [] }) => `${path.map(nameSegment).join("")} ${message}`.trim());
  throw new AnswerInvalid(key, problems.join("; "));
}

function itemsOf(form: AskForm): readonly Item[] | undefined {
  if ("questions" in form) return form.questions;
  return "schema" in form ? undefined : [{ ...form, name: "answer" }];
}

function nameItem({ name }: Item, i: number, items: readonly Item[]): string {
  return name ?? (items.length === 1 ? "answer" : `answer${i + 1}`);
}

function schemaOf({ question, choices, multiple = false }: Item): JsonObject {
  const one = choices ? { type: "string", enum: choices } : { type: "string" };
  return multiple ? { title: question, type: "array", items: one, uniqueItems: true } : { title: question, ...one };
}

function fits({ choices, multiple = false }: Item, value: Json | undefined): boolean {
  const isOne = (one: Json | undefined) => typeof one === "string" && (!choices || choices.includes(one));
  return multiple ? Array.isArray(value) && value.every(isOne) : isOne(value);
}

function isSchema(schema: object): schema is Schema<unknown> {
  return "~standard" in schema;
}

function toJsonSchema(key: string, schema: Schema<unknown> | JsonObject): JsonObject {
  if (!isSchema(schema)) return schema;
  const converted = schema["~standard"].jsonSchema?.input({ target: "draft-2020-12" });
  if (converted === undefined) {
    const { vendor } = schema["~standard"];
    const text = `ask("${key}"): this schema (${vendor}) cannot say what it is as JSON Schema; give JSON Schema itself`;
    throw new HoldpointError("usage-invalid", text);
  }
  // It was made to be written as JSON; what hides in it (functions, undefined) does not count.
  return JSON.parse(JSON.stringify(converted)) as JsonObject;
}

function nameSegment(segment: unknown): string {
  return `/${String(isObject(segment) ? segment.key : segment)}`;
}
