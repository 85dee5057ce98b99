import { describe, expect, test } from "vitest";
import {
  approval,
  auth,
  idOf,
  inDoubt,
  input,
  multiselect,
  select,
  several,
  text,
} from "../../test/dialects/requests.ts";
import type { Answer, Question } from "./dialect.ts";
import { decodeText, encodeText } from "./plain-text.ts";

describe("a word approves", () => {
  test.each([
    "approve",
    "Approve",
    "APPROVE",
    "aPPrOvE",
    " approve ",
    "\tapprove\n",
    "approve\r\n",
    "\u00a0approve\u00a0",
    "\ufeffapprove",
    "approved",
    "Approved",
    "APPROVED\n",
    "yes",
    "Yes",
    "YES",
    " yes",
    "y",
    "Y",
    " y ",
  ])("%j", (words) => {
    expect(decodeText(words, approval())).toEqual({ choice: "approve" });
  });
});

describe("a word denies", () => {
  test.each([
    "deny",
    "Deny",
    "DENY",
    " deny ",
    "denied",
    "Denied",
    "DENIED\n",
    "reject",
    "Reject",
    "REJECT",
    "no",
    "No",
    "NO",
    "\nno\n",
    "n",
    "N",
  ])("%j", (words) => {
    expect(decodeText(words, approval())).toEqual({ choice: "deny" });
  });
});

describe("neither approves nor denies", () => {
  test.each([
    // DESIGN §6, and what Hector and kagent take for a decision (facts/seed-systems.md).
    "disapprove",
    "do not approve",
    "now",
    "know",
    "don't approve",
    "not approved",
    "never approve this",
    "I approve",
    "approve it",
    "approve all",
    "please approve",
    "approve?",
    "approve!",
    "approve.",
    '"approve"',
    "'yes'",
    "yes please",
    "yes and no",
    "yes, but",
    "yess",
    "yep",
    "yeah",
    "ye",
    "ok",
    "okay",
    "sure",
    "go",
    "go ahead",
    "proceed",
    "continue",
    "lgtm",
    "+1",
    "1",
    "true",
    "t",
    "a",
    "d",
    "accept",
    "allow",
    "confirm",
    "unapproved",
    "preapproved",
    "approval",
    "no no",
    "nope",
    "nah",
    "never",
    "not",
    "none",
    "non",
    "nono",
    "rejected",
    "cancel",
    "stop",
    "denies",
    "dény",
    "",
    " ",
    "\n",
    "approve deny",
    "approve\ndeny",
    "y n",
    "yes/no",
    "approve\u0000",
    "approve\u200b",
    "\u200byes",
    "ｙｅｓ",
    "уes",
    "yeſ",
    "аpprove",
    "a p p r o v e",
    "approve\u0301",
    "oui",
    "ja",
    "да",
    "👍",
    '{"decision":"approve"}',
    "decision: approve",
    "__proto__",
    "constructor",
    "toString",
    "approve".repeat(2),
    "y".repeat(100_000),
  ])("%j", (words) => {
    expect(decodeText(words, approval())).toBeUndefined();
  });
});

describe("a question", () => {
  test.each(["because", "yes", " as it is \n", "", "approve", "cancel", "{}"])(
    "with one text field takes any text: %j",
    (words) => {
      expect(decodeText(words, text())).toEqual({ choice: "answer", values: { answer: words } });
    },
  );

  test.each([
    ["pg", "pg"],
    [" sqlite\n", "sqlite"],
  ])("with choices takes a text that equals one: %j", (words, answer) => {
    expect(decodeText(words, select())).toEqual({ choice: "answer", values: { answer } });
  });

  test.each(["PG", "p", "pg sqlite", "pg, sqlite", "1", "", "yes", "mysql"])(
    "with choices takes no other text: %j",
    (words) => {
      expect(decodeText(words, select())).toBeUndefined();
    },
  );

  test("prefers the choice as it was typed to one without its blanks", () => {
    expect(decodeText(" a", select(1, ["a", " a"]))?.values).toEqual({ answer: " a" });
  });

  test("with several choices takes one of them, as a list", () => {
    expect(decodeText("b", multiselect())).toEqual({ choice: "answer", values: { answer: ["b"] } });
    expect(decodeText("a, b", multiselect())).toBeUndefined();
  });

  test.each([
    ["several fields", several()],
    ["a number", input(1, { answer: { type: "number" } })],
    ["yes or no as a value", input(1, { answer: { type: "boolean" } })],
    ["an object", input(1, { answer: { type: "object" } })],
    ["anything", { ...text(), schema: {} }],
    ["nothing in particular", input(1, {})],
  ])("for %s takes no text", (_what, question) => {
    for (const words of ["yes", "3", "true", "{}", "pg"]) expect(decodeText(words, question)).toBeUndefined();
  });

  test("whose field is called __proto__ has its answer there, and nowhere else", () => {
    const odd = input(1, JSON.parse('{"__proto__":{"type":"string"}}'));
    const answer = decodeText("x", odd);
    expect(Object.keys(answer?.values ?? {})).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(answer?.values)).toBe(Object.prototype);
  });
});

describe("no text", () => {
  test.each(["done", "failed", "retry", "yes", "approve", "no"])(
    "says what happened after a crash, or signs in: %j",
    (words) => {
      expect(decodeText(words, inDoubt())).toBeUndefined();
      expect(decodeText(words, auth())).toBeUndefined();
    },
  );

  test("carries what words cannot say", () => {
    const encode = (answer: Answer, to: Question = approval()) => encodeText({ answer, to });
    expect(encode({ choice: "approve" })).toBe("approve");
    expect(encode({ choice: "deny", requestId: idOf(1), reason: "why" })).toBe("deny");
    expect(encode({ choice: "approve", editedArgs: {} })).toBeUndefined();
    expect(encode({ choice: "cancel" })).toBeUndefined();
    expect(encode({ choice: "answer", values: { answer: "pg" } }, select())).toBe("pg");
    expect(encode({ choice: "answer", values: { answer: ["a"] } }, multiselect())).toBe("a");
    expect(encode({ choice: "answer", values: { answer: ["a", "b"] } }, multiselect())).toBeUndefined();
    expect(encode({ choice: "answer", values: { answer: 3 } }, text())).toBeUndefined();
    expect(encode({ choice: "answer", values: { answer: ["x"] } }, text())).toBeUndefined();
    expect(encode({ choice: "answer", values: { other: "x" } }, text())).toBeUndefined();
    expect(encode({ choice: "answer", values: {} }, text())).toBeUndefined();
    expect(encode({ choice: "answer", values: { outcome: "retry" } }, inDoubt())).toBeUndefined();
  });
});
