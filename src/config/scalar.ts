/** Single values of a configuration: text, numbers, switches and choices, each refused with what would be right. */
import { isMap, isScalar, isSeq } from "yaml";
import { eitherOf, nearest } from "./nearest.ts";
import type { Report, Span, Value } from "./source.ts";
import { fillVariables, findMalformed, hasVariable, maskedName, namesIn, unmask } from "./variables.ts";

export interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly whole?: boolean;
}

/** How a problem speaks of the value; `secret` ones are never quoted. */
export interface Naming {
  readonly name: string;
  readonly secret?: boolean;
  readonly consequence?: string | undefined;
}

type Filled = { readonly value: unknown; readonly fromVariable: boolean };

/** A text that says something. */
export function readTextValue(value: Value, naming: Naming, report: Report): string | undefined {
  const filled = fill(value, naming, report);
  if (!filled) return undefined;
  if (typeof filled.value !== "string") {
    const quoted = naming.secret ? "" : `: "${writtenText(value)}"`;
    report.error(value.span, `${naming.name} must be text; put it in quotes${quoted}`);
    return undefined;
  }
  if (filled.value.trim() === "") {
    report.error(value.span, `${naming.name} must not be empty`);
    return undefined;
  }
  return filled.value;
}

export function readNumber(value: Value, naming: Naming, bounds: Bounds, report: Report): number | undefined {
  const filled = fill(value, naming, report);
  if (!filled) return undefined;
  const number = filled.fromVariable ? numberFrom(filled.value) : filled.value;
  const kind = bounds.whole ? "a whole number" : "a number";
  if (typeof number !== "number" || Number.isNaN(number) || (bounds.whole && !Number.isInteger(number))) {
    report.error(value.span, `${naming.name} must be ${kind}, not ${shown(value, naming)}`);
    return undefined;
  }
  if (number < bounds.min || number > bounds.max) {
    const range = `between ${bounds.min} and ${bounds.max}`;
    report.error(value.span, `${naming.name} must be ${kind} ${range}, not ${shown(value, naming)}`);
    return undefined;
  }
  return number;
}

export function readFlag(value: Value, naming: Naming, report: Report): boolean | undefined {
  const filled = fill(value, naming, report);
  if (!filled) return undefined;
  if (typeof filled.value === "boolean") return filled.value;
  if (filled.fromVariable && (filled.value === "true" || filled.value === "false")) return filled.value === "true";
  const { consequence } = naming;
  report.error(value.span, `${naming.name} must be true or false, not ${shown(value, naming)}`, { consequence });
  return undefined;
}

export function readChoice<C extends string>(
  value: Value,
  naming: Naming,
  choices: readonly C[],
  report: Report,
): C | undefined {
  const filled = fill(value, naming, report);
  if (!filled) return undefined;
  const chosen = choices.find((choice) => choice === filled.value);
  if (chosen !== undefined) return chosen;
  // Only what stands in the file may be compared aloud: the near miss of a variable would tell about its value.
  const near = filled.fromVariable ? undefined : nearest(String(filled.value), choices);
  const hint = near === undefined ? "" : `. Did you mean "${near}"?`;
  report.error(value.span, `${naming.name} must be ${eitherOf(choices)}, not ${shown(value, naming)}${hint}`, {
    nearest: near,
  });
  return undefined;
}

/** What stands there, in words that fit after "not". */
export function shown(value: Value, naming: Naming): string {
  const { node } = value;
  if (isMap(node)) return "a mapping";
  if (isSeq(node)) return "a list";
  if (node === null || (isScalar(node) && node.value === null)) return "empty";
  if (naming.secret) return "this";
  return `"${writtenText(value)}"`;
}

const SHOWN_MAX = 60;

/** As it is written, variables by name. */
export function writtenText({ node }: Value): string {
  const text = wholeText(node);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

/** The same in full length, and what the variables in it hold: secrets, in all likelihood. */
export function writtenWhole({ node, span }: Value): { text: string; variables: Record<string, string> } {
  const names = isScalar(node) && typeof node.value === "string" ? namesIn(node.value) : [];
  const variables = names.map((name) => [name, span.source.environment?.[name] ?? ""] as const);
  return { text: wholeText(node), variables: Object.fromEntries(variables) };
}

function wholeText(node: Value["node"]): string {
  if (!isScalar(node)) return "";
  return unmask(typeof node.value === "string" ? node.value : (node.source ?? String(node.value)));
}

/** The scalar with its variables filled in, or undefined after telling why there is none. */
function fill(value: Value, { name }: Naming, report: Report): Filled | undefined {
  const { node, span } = value;
  if (node === null || (isScalar(node) && node.value === null)) {
    report.error(span, `${name} has no value; write one or remove the line`);
    return undefined;
  }
  if (!isScalar(node)) {
    report.error(span, `${name} must be a single value, not ${shown(value, { name })}`);
    return undefined;
  }
  const { environment } = span.source;
  if (typeof node.value !== "string" || !environment) return { value: node.value, fromVariable: false };
  const malformed = findMalformed(node.value);
  if (malformed !== undefined) {
    const text = `only \${NAME} reads a variable, not ${hasVariable(malformed) ? "this" : `"${malformed}"`}`;
    report.error(span, `${text}; for the characters themselves write $\${`);
    return undefined;
  }
  const { text, missing } = fillVariables(node.value, environment);
  for (const variable of new Set(missing)) {
    const state = Object.hasOwn(environment, variable) ? "empty" : "not set";
    report.error(variableSpan(value, variable), `the environment variable ${variable} is ${state}`);
  }
  return missing.length > 0 ? undefined : { value: text, fromVariable: hasVariable(node.value) };
}

/** Exactly the `${NAME}`, not the whole scalar around it. */
function variableSpan({ span }: Value, variable: string): Span {
  const masked = maskedName(variable);
  const start = span.source.text.indexOf(masked, span.start);
  return start < 0 || start >= span.end ? span : { source: span.source, start, end: start + masked.length };
}

function numberFrom(value: unknown): number | undefined {
  return typeof value === "string" && /^\d+(\.\d+)?$/.test(value) ? Number(value) : undefined;
}
