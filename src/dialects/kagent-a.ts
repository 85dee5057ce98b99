/**
 * kagent A (seed 003): `interrupt_type` and `action_requests` ask about calls, `decision_type` answers. Its batch is
 * the only answer that names what it means; ids that it leaves out stay open here, while kagent approves them.
 */
import { z } from "zod";
import { type Answer, type Asked, type Decoded, type Dialect, decoded, malformed, NOT_MINE } from "./dialect.ts";
import { AnyObject, answerOf, hasKey, Id, objectOf, pointerTo, Reason, readShape, Text } from "./shape.ts";

export const kagentA: Dialect = {
  name: "kagent-a",
  encodeRequests: (asked) => asked.flatMap((one) => (one.kind === "approval" ? [encodeInterrupt(one)] : [])),
  decodeRequests(data) {
    if (!hasKey(data, "interrupt_type")) return NOT_MINE;
    const read = readShape(Interrupt, data);
    return read.outcome === "decoded" ? decoded(read.value.action_requests.map(toAsked)) : read;
  },
  encodeAnswers: (replies) =>
    replies.flatMap(({ answer }) => {
      const data = encodeDecision(answer);
      return data ? [{ data }] : [];
    }),
  decodeAnswers(data) {
    if (!hasKey(data, "decision_type") || hasKey(data, "type")) return NOT_MINE;
    const read = readShape(Decision, data);
    return read.outcome === "decoded" ? toAnswers(read.value) : read;
  },
};

const ActionRequest = z.object({ name: Text, args: AnyObject.nullish(), id: Id.nullish() });
const Interrupt = z.object({
  interrupt_type: z.literal("tool_approval"),
  action_requests: z.array(ActionRequest).min(1),
});

function encodeInterrupt({ requestId: id, tool: name, args = {} }: Asked & { kind: "approval" }) {
  return {
    data: { interrupt_type: "tool_approval", action_requests: [objectOf({ name, args, id })] },
    metadata: { kagent_type: "interrupt_data" },
  };
}

function toAsked({ name, args, id }: z.infer<typeof ActionRequest>): Asked {
  return { kind: "approval", title: name, tool: name, args: args ?? {}, ...(id ? { requestId: id } : {}) };
}

const CHOICES = { approve: "approve", deny: "deny", reject: "deny" } as const;
const Word = z.enum(["approve", "deny", "reject"], 'must be "approve", "deny" or "reject"');

/** Strict: an approval that carries something unknown is not only an approval. */
const Decision = z.discriminatedUnion(
  "decision_type",
  [
    z.strictObject({ decision_type: Word, rejection_reason: Reason.nullish() }),
    z.strictObject({
      decision_type: z.literal("batch"),
      decisions: z.record(Id, Word),
      rejection_reasons: z.record(Text, Reason).nullish(),
    }),
  ],
  'must be "approve", "deny", "reject" or "batch"',
);

function toAnswers(said: z.infer<typeof Decision>): Decoded<readonly Answer[]> {
  if (said.decision_type !== "batch") {
    const choice = CHOICES[said.decision_type];
    const reason = said.rejection_reason || undefined;
    if (reason && choice === "approve") return malformed("/rejection_reason", REASON_MISPLACED);
    return decoded([answerOf(choice, { reason })]);
  }
  const reasons = new Map(Object.entries(said.rejection_reasons ?? {}));
  const answers = Object.entries(said.decisions).map(([requestId, word]) =>
    answerOf(CHOICES[word], { requestId, reason: reasons.get(requestId) || undefined }),
  );
  if (answers.length === 0) return malformed("/decisions", "names no request");
  const denied = new Set(answers.flatMap(({ choice, requestId }) => (choice === "deny" ? [requestId] : [])));
  const misplaced = [...reasons.keys()].find((id) => reasons.get(id) && !denied.has(id));
  if (misplaced !== undefined) return malformed(`/rejection_reasons${pointerTo(misplaced)}`, REASON_MISPLACED);
  return decoded(answers);
}

const REASON_MISPLACED = "only what is rejected has a reason";

/** It knows no changed arguments, no values and no cancel. */
function encodeDecision({ requestId, choice, reason, editedArgs }: Answer) {
  if (editedArgs || (choice !== "approve" && choice !== "deny")) return undefined;
  const why = choice === "deny" ? reason : undefined;
  if (requestId === undefined) return objectOf({ decision_type: choice, rejection_reason: why });
  const named = (value: string) => Object.fromEntries([[requestId, value]]);
  const rejection_reasons = why === undefined ? undefined : named(why);
  return objectOf({ decision_type: "batch", decisions: named(choice), rejection_reasons });
}
