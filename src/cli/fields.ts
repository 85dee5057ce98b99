/** Answers as people type them, read by the schema of the question. */
import { nearest } from "../config/nearest.ts";
import { isObject, type Json, type JsonObject, parseJson } from "../task/json.ts";
import { makeVisible } from "../tools/prompt.ts";

type Schema = Readonly<Record<string, unknown>>;

export type Parsed = { readonly value: Json } | { readonly problem: string };

/** One value from its text. */
export function parseField(schema: Schema, text: string): Parsed {
  const choices = choicesOf(schema);
  if (choices) return parseChoice(choices, text);
  switch (schema.type) {
    case "string":
      return { value: text };
    case "integer":
    case "number":
      return parseNumber(text, schema.type === "integer");
    case "boolean":
      if (/^(y|yes|true)$/i.test(text)) return { value: true };
      return /^(n|no|false)$/i.test(text) ? { value: false } : { problem: "Say yes or no" };
    case "array":
      return parseList(schema, text);
    default:
      return parseAny(text);
  }
}

/** What may be chosen, if the schema says so. */
export function choicesOf(schema: Schema): readonly string[] | undefined {
  if (!Array.isArray(schema.enum)) return undefined;
  return schema.enum.every((choice) => typeof choice === "string") ? schema.enum : undefined;
}

/** The schema of one of several choices, if several may be taken. */
export function itemsOf(schema: Schema): Schema | undefined {
  return schema.type === "array" && isObject(schema.items) ? schema.items : undefined;
}

/** A choice by its words, or by its number in the list. */
function parseChoice(choices: readonly string[], text: string): Parsed {
  const wanted = text.trim();
  const exact = choices.find((choice) => choice === wanted) ?? choices.find((choice) => sameWords(choice, wanted));
  if (exact !== undefined) return { value: exact };
  const numbered = /^\d+$/.test(wanted) ? choices[Number(wanted) - 1] : undefined;
  return numbered === undefined ? { problem: `Pick one: ${choices.join(", ")}` } : { value: numbered };
}

function sameWords(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function parseNumber(text: string, isWhole: boolean): Parsed {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value)) return { problem: "Must be a number" };
  return isWhole && !Number.isInteger(value) ? { problem: "Must be a whole number" } : { value };
}

function parseList(schema: Schema, text: string): Parsed {
  const items = itemsOf(schema);
  if (!items || !(choicesOf(items) || typeof items.type === "string")) return parseAny(text);
  const values: Json[] = [];
  for (const piece of text.split(",").map((part) => part.trim())) {
    if (piece === "") continue;
    const parsed = parseField(items, piece);
    if ("problem" in parsed) return parsed;
    if (!values.includes(parsed.value)) values.push(parsed.value);
  }
  return { value: values };
}

function parseAny(text: string): Parsed {
  const parsed = parseJson(text);
  return parsed.ok ? { value: parsed.value } : { problem: `Must be JSON: ${parsed.problem.text}` };
}

/** `name=value` pairs against the properties of a schema. */
export function parseSets(properties: Readonly<Record<string, Schema>>, sets: readonly string[]): Parsed {
  const values: [name: string, value: Json][] = [];
  const known = Object.keys(properties);
  for (const set of sets) {
    const at = set.indexOf("=");
    if (at < 1) return { problem: `--set ${set}: write name=value` };
    const name = set.slice(0, at);
    const schema = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!schema && known.length > 0) return { problem: unknownField(name, known) };
    const parsed = parseField(schema ?? { type: "string" }, set.slice(at + 1));
    if ("problem" in parsed) return { problem: `${name}: ${parsed.problem}` };
    values.push([name, parsed.value]);
  }
  // Not by assignment: a name like "__proto__" is a name, and the server says no to it.
  return { value: Object.fromEntries(values) satisfies JsonObject };
}

function unknownField(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const hint =
    meant === undefined ? `there is ${known.map((one) => `"${one}"`).join(", ")}` : `did you mean "${meant}"?`;
  return makeVisible(`there is no field "${name}"; ${hint}`);
}
