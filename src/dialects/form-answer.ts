/** A form that was filled in: a decision about a call, or the values that were asked for. */
import { z } from "zod";
import { isObject, type JsonObject } from "../task/json.ts";
import { type Answer, type Decoded, decoded, type Question, type Reply } from "./dialect.ts";
import { AnyObject, answerOf, objectOf, Reason, readShape, Sha256 } from "./shape.ts";

const FilledForm = z.object({
  values: AnyObject,
  metadata: z.object({ digest: Sha256.nullish(), reason: Reason.nullish() }).nullish(),
});

/** Strict: who misspells `editedArgs` must not approve what they wanted to change. */
const DecisionValues = z.strictObject({
  decision: z.enum(["approve", "deny", "cancel"], 'must be "approve", "deny" or "cancel"'),
  reason: Reason.nullish(),
  editedArgs: AnyObject.nullish(),
});

export function decodeFilledForm(
  data: unknown,
  requestId: string | undefined,
  question: Question | undefined,
): Decoded<Answer> {
  const form = readShape(FilledForm, data);
  if (form.outcome !== "decoded") return form;
  const { values, metadata } = form.value;
  const digest = metadata?.digest;
  if (!isDecision(values, question)) {
    return decoded(answerOf("answer", { requestId, digest, reason: metadata?.reason, values }));
  }
  const said = readShape(DecisionValues, values, "/values");
  if (said.outcome !== "decoded") return said;
  const { decision, reason, editedArgs } = said.value;
  return decoded(answerOf(decision, { requestId, digest, reason: reason ?? metadata?.reason, editedArgs }));
}

/** Undefined when the form would be read as something else. */
export function encodeFilledForm({ answer, to }: Reply): JsonObject | undefined {
  const { choice, digest, reason, editedArgs, values } = answer;
  const isAnswer = choice === "answer";
  const filled = isAnswer ? values : objectOf({ decision: choice, reason, editedArgs });
  if (!filled || isDecision(filled, to) === isAnswer) return undefined;
  const metadata = objectOf({ digest, reason: isAnswer ? reason : undefined });
  return { values: filled, ...(Object.keys(metadata).length > 0 ? { metadata } : {}) };
}

/** A question may itself have a field called "decision"; then what stands there is its answer. */
function isDecision(values: JsonObject, question: Question | undefined): boolean {
  if (question?.kind === "approval") return true;
  const decision = Object.hasOwn(values, "decision") ? values.decision : undefined;
  if (!question) return decision === "approve" || decision === "deny" || decision === "cancel";
  if (question.kind !== "input") return decision === "cancel";
  const { properties } = question.schema;
  return decision === "cancel" && !(isObject(properties) && Object.hasOwn(properties, "decision"));
}
