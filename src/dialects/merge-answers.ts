/** Several parts about one request: they may complete each other, but not disagree. */
import { canonicalJson } from "../task/json.ts";
import type { Answer, Flaw } from "./dialect.ts";

/** An answer, and where in the message it stands. */
export interface Found<A extends Answer = Answer> {
  readonly answer: A;
  readonly pointer: string;
}

/** One answer for each request that is named, and at most one that names none. */
export function mergeAnswers<A extends Answer>(
  found: readonly Found<A>[],
): { readonly ok: true; readonly answers: readonly Found<A>[] } | ({ readonly ok: false } & Flaw) {
  const merged = new Map<string | undefined, Found<A>>();
  for (const { answer, pointer } of found) {
    const earlier = merged.get(answer.requestId);
    if (earlier && !agree(earlier.answer, answer)) {
      return { ok: false, pointer, detail: `disagrees with ${earlier.pointer} about the same request` };
    }
    merged.set(
      answer.requestId,
      earlier ? { ...earlier, answer: { ...earlier.answer, ...answer } } : { answer, pointer },
    );
  }
  return { ok: true, answers: [...merged.values()] };
}

/** A digest or a reason may stand in one of them only; what is decided must stand in both. */
function agree(a: Answer, b: Answer): boolean {
  const decided = ({ choice, editedArgs, values }: Answer) =>
    canonicalJson([choice, editedArgs ?? null, values ?? null]);
  const compatible = (x: string | undefined, y: string | undefined) => x === undefined || y === undefined || x === y;
  return decided(a) === decided(b) && compatible(a.digest, b.digest) && compatible(a.reason, b.reason);
}
