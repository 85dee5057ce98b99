/**
 * Answers in plain words. An approval takes one of few words and nothing that merely contains one ("disapprove", "do
 * not approve"); a question takes what can only be its answer; what happened after a crash is never told in passing.
 */
import { unreachable } from "../errors.ts";
import { canonicalJson } from "../task/json.ts";
import type { Answer, Question, Reply } from "./dialect.ts";
import { fieldsOf } from "./fields.ts";

const KEYWORDS: ReadonlyMap<string, "approve" | "deny"> = new Map([
  ["approve", "approve"],
  ["approved", "approve"],
  ["yes", "approve"],
  ["y", "approve"],
  ["deny", "deny"],
  ["denied", "deny"],
  ["reject", "deny"],
  ["no", "deny"],
  ["n", "deny"],
]);

/** The whole text, trimmed and case-folded, is a keyword. */
export function decodeKeyword(text: string): "approve" | "deny" | undefined {
  return KEYWORDS.get(text.trim().toLowerCase());
}

/** What a text says to this question; undefined when it says nothing to it. */
export function decodeText(text: string, question: Question): Answer | undefined {
  switch (question.kind) {
    case "approval": {
      const choice = decodeKeyword(text);
      return choice && { choice };
    }
    case "input":
      return decodeWords(text, question);
    case "auth":
    case "in-doubt":
      return undefined;
    default:
      return unreachable(question);
  }
}

/** The text that says it; undefined when words alone cannot. */
export function encodeText({ answer, to }: Reply): string | undefined {
  const { choice, values = {}, editedArgs } = answer;
  if (choice === "approve" || choice === "deny") return editedArgs ? undefined : choice;
  if (choice === "cancel" || to.kind !== "input") return undefined;
  const [only] = Object.values(values).flat();
  if (typeof only !== "string") return undefined;
  return canonicalJson(decodeText(only, to)?.values ?? null) === canonicalJson(values) ? only : undefined;
}

function decodeWords(text: string, { schema }: Question & { kind: "input" }): Answer | undefined {
  const [field, ...others] = fieldsOf(schema);
  if (!field || others.length > 0) return undefined;
  const answer = (value: string | readonly string[]): Answer => ({
    choice: "answer",
    // A literal would take "__proto__" for something else than a name.
    values: Object.fromEntries([[field.name, value]]),
  });
  if (field.type === "text") return answer(text);
  const chosen = field.options?.find((option) => option === text) ?? field.options?.find((o) => o === text.trim());
  if (chosen === undefined) return undefined;
  return answer(field.type === "multiselect" ? [chosen] : chosen);
}
