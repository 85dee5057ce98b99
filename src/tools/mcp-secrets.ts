/** What a server was given in confidence, kept out of every text that comes from it: for models, people and the log. */
import type { McpConfig } from "../config/config.ts";
import type { Json, JsonObject } from "../task/json.ts";

/** Names with values; a value that is found is replaced by its name. */
export type Secrets = readonly (readonly [name: string, value: string])[];

/** Shorter values are words, not secrets. */
const LENGTH_MIN = 6;

export function secretsOf(transport: McpConfig["transport"]): Secrets {
  if (transport.type !== "stdio") return Object.entries(transport.headers);
  return [...Object.entries(transport.env), ...Object.entries(transport.variables ?? {})];
}

export function createRedaction(secrets: Secrets): (text: string) => string {
  const known = secrets
    .flatMap(([name, value]) => formsOf(value).map((form) => ({ form, mark: `[${name}]` })))
    .filter(({ form }) => form.length >= LENGTH_MIN)
    // One value may hold another.
    .sort((a, b) => b.form.length - a.form.length);
  if (known.length === 0) return (text) => text;
  return (text) => {
    const whole = known.reduce((rest, { form, mark }) => rest.replaceAll(form, mark), text);
    return known.reduce((rest, { form, mark }) => withoutCutOne(rest, form, mark), whole);
  };
}

/** A credential is told without its scheme too (`Bearer x`), and line by line or in one line. */
function formsOf(value: string): readonly string[] {
  const trimmed = value.trim();
  const credential = /^(?:bearer|basic|token|digest|apikey) +(.+)$/i.exec(trimmed)?.[1] ?? trimmed;
  return [...new Set([value, trimmed, credential, trimmed.replace(/\s+/g, " ")])];
}

/** Texts are cut to a length, at their beginning or end: what is left of a value there is still most of it. */
function withoutCutOne(text: string, value: string, mark: string): string {
  let rest = text;
  for (let length = Math.min(value.length - 1, rest.length); length >= LENGTH_MIN; length--) {
    if (!rest.endsWith(value.slice(0, length))) continue;
    rest = rest.slice(0, -length) + mark;
    break;
  }
  for (let length = Math.min(value.length - 1, rest.length); length >= LENGTH_MIN; length--) {
    if (!rest.startsWith(value.slice(-length))) continue;
    return mark + rest.slice(length);
  }
  return rest;
}

/** The same for every text in a value, and in its keys. */
export function redactJson(value: JsonObject, redact: (text: string) => string): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [redact(key), redactEach(each, redact)]));
}

function redactEach(value: Json, redact: (text: string) => string): Json {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map((each: Json) => redactEach(each, redact));
  // Neither text nor list, so what is left of an object type is an object.
  if (typeof value === "object" && value !== null) return redactJson(value as JsonObject, redact);
  return value;
}
