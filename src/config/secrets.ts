/** Keeps secrets that stand in a configuration file out of everything that is printed about it. */
import { isMap, isPair, isScalar, parseDocument, visit } from "yaml";
import { nearest } from "./nearest.ts";
import { maskVariables, unmask } from "./variables.ts";

const HIDDEN = "•";
const SECRET_KEY = /key|token|secret|passw|authori[sz]ation|credential|cookie|bearer|dsn/i;
const SECRET_KEYS = ["api_key", "token", "password", "secret", "authorization"];
const NO_SECRET = /^(max_tokens|tokens|monkey|keyboard|jwks_url)$/i;
/** All values below these may be secrets, whatever their own keys are called. */
const SECRET_FOLDERS = /^(headers|env)$/;
const TOKEN_SHAPES =
  /\b(sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abpr]|AIza|AKIA|ASIA|hf|npm)[-_][A-Za-z0-9_-]{8,}|\bAIza[\w-]{20,}|\bA[KS]IA[A-Z0-9]{12,}|\beyJ[\w-]{8,}\.[\w.-]+|:\/\/[^\s/@:]+:[^\s/@]+@/g;

/** Texts that look like a credential wherever they stand. */
export function hideTokens(text: string): string {
  return text.replace(TOKEN_SHAPES, (found) =>
    found.startsWith("://") ? `://${HIDDEN.repeat(found.length - 4)}@` : HIDDEN.repeat(found.length),
  );
}

/** A file has many problems and is looked through once. */
let latest = { text: "", hidden: "" };

/** The same text, as long as before, with the values of secret keys made unreadable; `${NAME}` stays, it is a name. */
export function hideSecrets(text: string): string {
  if (latest.text !== text) latest = { text, hidden: hide(text) };
  return latest.hidden;
}

function hide(text: string): string {
  const masked = maskVariables(text);
  const { spans, broken } = findSecrets(masked);
  let hidden = "";
  let done = 0;
  for (const [start, end] of spans) {
    hidden += masked.slice(done, start) + dots(masked.slice(start, end));
    done = end;
  }
  hidden += masked.slice(done);
  if (broken) hidden = hidden.replace(SECRET_LINE, (_, key: string, value: string) => key + dots(value));
  return hideTokens(unmask(hidden));
}

/** Where secret values stand, from the top; `broken`: YAML could not make sense of everything. */
function findSecrets(masked: string): {
  readonly spans: readonly (readonly [number, number])[];
  readonly broken: boolean;
} {
  const spans: [number, number][] = [];
  try {
    const document = parseDocument(masked, { uniqueKeys: false });
    visit(document, {
      Pair(_, pair, path) {
        if (!isScalar(pair.key)) return;
        const secret = isSecretKey(String(pair.key.value)) || isBelowSecretFolder(path);
        const range = isScalar(pair.value) ? pair.value.range : undefined;
        if (secret && range) spans.push([range[0], range[1]]);
      },
    });
    return { spans, broken: document.errors.length > 0 };
  } catch {
    // Nested too deeply to be looked at.
    return { spans: [], broken: true };
  }
}

/** A misspelled key holds the same secret. */
function isSecretKey(key: string): boolean {
  if (NO_SECRET.test(key)) return false;
  return SECRET_KEY.test(key) || nearest(key, SECRET_KEYS, 2) !== undefined;
}

/** What YAML could not make sense of is judged line by line, rather too strictly. */
const SECRET_LINE = /((?:key|token|secret|passw\w*|authorization|credential|cookie)\w*["']?\s*:[ \t]+)([^\s[{].*)/gi;

/** Everything but white space and names of variables. */
function dots(text: string): string {
  return text
    .split(/(\uFDD0\uFDD1\w+\uFDD2|\s+)/)
    .map((part, i) => (i % 2 === 1 ? part : HIDDEN.repeat(part.length)))
    .join("");
}

function isBelowSecretFolder(path: readonly unknown[]): boolean {
  const map = path.at(-1);
  const parent = path.at(-2);
  return isMap(map) && isPair(parent) && isScalar(parent.key) && SECRET_FOLDERS.test(String(parent.key.value));
}
