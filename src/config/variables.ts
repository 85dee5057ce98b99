/**
 * `${NAME}` in a configuration: hidden from YAML before it parses, filled in afterwards. So it may stand unquoted in
 * flow style, and whatever a variable holds stays the text of one scalar.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Code points that Unicode keeps for use inside a program; a file must not contain them. A masked text is as long as the
 * original, so that every position stays true.
 */
const VARIABLE_START = "\uFDD0\uFDD1";
const VARIABLE_END = "\uFDD2";
const ESCAPED_START = "\uFDD3\uFDD3\uFDD4";
const RESERVED = /[\uFDD0-\uFDEF]/;
const MASKED = /\uFDD0\uFDD1([A-Za-z_][A-Za-z0-9_]*)\uFDD2/g;

/** The first character that a configuration must not contain, or -1. */
export function findReserved(text: string): number {
  return text.search(RESERVED);
}

/** `$${` is the way to write `${` itself. */
export function maskVariables(text: string): string {
  return text.replace(/\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_whole, name: string | undefined) =>
    name === undefined ? ESCAPED_START : VARIABLE_START + name + VARIABLE_END,
  );
}

/** The text as it stands in the file. */
export function unmask(text: string): string {
  return text.replace(MASKED, (_whole, name: string) => `\${${name}}`).replaceAll(ESCAPED_START, "$$$${");
}

/** The names of the variables in a masked text. */
export function namesIn(masked: string): readonly string[] {
  return [...masked.matchAll(MASKED)].flatMap(([, name]) => name ?? []);
}

export function hasVariable(text: string): boolean {
  return text.includes(VARIABLE_START);
}

/** A `${` that is no variable: `${NAME:-x}`, `${1}`, or one that is not closed. */
export function findMalformed(text: string): string | undefined {
  return /\$\{[^}\s]*\}?/.exec(text)?.[0];
}

/** What a variable name stands for where; an absent and an empty variable are both missing. */
export function fillVariables(masked: string, environment: Environment): { text: string; missing: string[] } {
  const missing: string[] = [];
  const text = masked.replace(MASKED, (_whole, name: string) => {
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
    if (!value) missing.push(name);
    return value ?? "";
  });
  return { text: text.replaceAll(ESCAPED_START, "$${"), missing };
}

/** How `${NAME}` looks inside a masked text. */
export function maskedName(name: string): string {
  return VARIABLE_START + name + VARIABLE_END;
}
