import { describe, expect, test } from "vitest";
import { ana, approval, ben, digest, idOf, inDoubt, select, taskWith, text } from "../../test/dialects/requests.ts";
import type { Task } from "../task/task.ts";
import type { Answer } from "./dialect.ts";
import { type Mount, resolveAnswers, type Speaker } from "./resolve-answers.ts";

const byBen = { principal: ben } as const;
const byDeadline = { outcome: "expired", by: "deadline" } as const;
const byPolicy = { outcome: "superseded", by: "policy" } as const;
const one = approval(1);
const two = approval(2);
const three = approval(3);

function resolve(answers: readonly Answer[], task: Task, mount: Mount = "a2a", extra: Partial<Speaker> = {}) {
  const found = answers.map((answer, i) => ({ answer, pointer: `/parts/${i}/data` }));
  return resolveAnswers(found, task, { principal: ana, mount, withoutId: "allow", ...extra });
}

const approve: Answer = { choice: "approve" };
const meant = (n: number) => ({ ok: true, choices: [{ choice: "approve", requestId: idOf(n) }] });
const ambiguous = (...ns: number[]) => ({ ok: true, choices: [], ambiguous: ns.map(idOf) });

describe("an answer without id", () => {
  test.each([
    ["the only request", taskWith(one), meant(1), meant(1)],
    ["two open ones: the lowest, where only that is shown", taskWith(one, two), ambiguous(1, 2), meant(1)],
    ["the first closed by the same person", taskWith([one, {}], two), meant(2), meant(2)],
    ["the first denied by the same person", taskWith([one, { outcome: "denied" }], two), meant(2), meant(2)],
    ["the first closed by somebody else", taskWith([one, byBen], two), ambiguous(2), ambiguous(2)],
    ["the first closed by a deadline", taskWith([one, byDeadline], two), meant(2), meant(2)],
    ["the first closed by a changed rule", taskWith([one, byPolicy], two), ambiguous(2), ambiguous(2)],
    ["the second closed by somebody else", taskWith(one, [two, byBen]), meant(1), meant(1)],
    ["one of two earlier ones by somebody else", taskWith([one, {}], [two, byBen], three), ambiguous(3), ambiguous(3)],
    ["one by the same person, one by a deadline", taskWith([one, {}], [two, byDeadline], three), meant(3), meant(3)],
    ["somebody else's, then two open", taskWith([one, byBen], two, three), ambiguous(2, 3), ambiguous(2, 3)],
    ["one's own, then two open", taskWith([one, {}], two, three), ambiguous(2, 3), meant(2)],
    ["a question first", taskWith(text(1), two), ambiguous(1, 2), meant(1)],
    ["no request ever", taskWith(), ambiguous(), ambiguous()],
  ] as const)("%s", (_what, task, onA2a, onV1) => {
    expect(resolve([approve], task, "a2a")).toEqual(onA2a);
    expect(resolve([approve], task, "v1")).toEqual(onV1);
  });

  test("is somebody else's when the name is the same and the issuer is not", () => {
    const namesake = { principal: { ...ana, issuer: "https://login.example" } };
    expect(resolve([approve], taskWith([one, namesake], two))).toEqual(ambiguous(2));
  });

  test("is one's own by whatever way one came", () => {
    expect(resolve([approve], taskWith([one, { principal: { ...ana, via: "api" } }], two))).toEqual(meant(2));
  });

  test("is never placed where the server does not want that", () => {
    expect(resolve([approve], taskWith(one), "a2a", { withoutId: "deny" })).toEqual(ambiguous(1));
    expect(resolve([approve], taskWith(one), "v1", { withoutId: "deny" })).toEqual(ambiguous(1));
    expect(resolve([{ ...approve, requestId: idOf(1) }], taskWith(one), "v1", { withoutId: "deny" })).toEqual(meant(1));
  });

  test.each([
    ["an approval", approve, taskWith([one, byBen], [text(2), byBen]), 1],
    ["an answer", { choice: "answer", values: {} }, taskWith([text(1), byBen], [two, byBen]), 1],
    ["a cancel", { choice: "cancel" }, taskWith([one, byBen], [text(2), byBen]), 2],
    ["an approval of two", approve, taskWith([one, byBen], [two, byBen]), 2],
  ] as const)("that is late means what was closed last and takes it: %s", (_what, answer, task, n) => {
    expect(resolve([answer], task)).toEqual({ ok: true, choices: [{ ...answer, requestId: idOf(n) }] });
  });

  test("that is late for nothing of its kind means nothing", () => {
    expect(resolve([approve], taskWith([text(1), byBen], [inDoubt(2), byBen]))).toEqual(ambiguous());
  });
});

describe("a named answer", () => {
  test("means what it names, open or closed", () => {
    const task = taskWith([one, byBen], two, three);
    for (const n of [1, 2, 3]) expect(resolve([{ ...approve, requestId: idOf(n) }], task)).toEqual(meant(n));
  });

  test.each(["input-OTHER-1", "input-T-9", "input-T-01", "1", "call-1-1", "__proto__", "constructor", "input-T-1 "])(
    "of another task refuses all: %s",
    (requestId) => {
      const answers = [
        { ...approve, requestId: idOf(1) },
        { ...approve, requestId },
      ];
      expect(resolve(answers, taskWith(one))).toMatchObject({ ok: false, pointer: "/parts/1/data" });
    },
  );

  test("counts beside one that cannot be placed", () => {
    const answers: Answer[] = [{ choice: "deny", requestId: idOf(2) }, approve];
    expect(resolve(answers, taskWith(one, two))).toEqual({
      ok: true,
      choices: [{ choice: "deny", requestId: idOf(2) }],
      ambiguous: [idOf(1), idOf(2)],
    });
  });

  test("and one without id about the same request are one, or disagree", () => {
    const named: Answer = { ...approve, requestId: idOf(1), digest };
    expect(resolve([named, approve], taskWith(one))).toEqual({ ok: true, choices: [named] });
    expect(resolve([named, { choice: "deny" }], taskWith(one))).toMatchObject({ ok: false, pointer: "/parts/1/data" });
    expect(resolve([approve, named], taskWith(one, select(2)), "v1")).toEqual({ ok: true, choices: [named] });
  });
});
