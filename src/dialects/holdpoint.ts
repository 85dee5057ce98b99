/** Our own extension, in metadata: requests whole, and decisions as `/api` takes them, each with its request's id. */
import { z } from "zod";
import { AskedShape, encodeAsked } from "./asked-shape.ts";
import { type Dialect, decoded, NOT_MINE } from "./dialect.ts";
import { AnyObject, answerOf, hasKey, Id, objectOf, Reason, readShape, Sha256 } from "./shape.ts";

export const holdpoint: Dialect = {
  name: "holdpoint",
  uri: "urn:holdpoint:hitl:v1",
  encodeRequests: (asked) => (asked.length === 0 ? [] : [{ data: { requests: asked.map(encodeAsked) } }]),
  decodeRequests(data) {
    if (!hasKey(data, "requests")) return NOT_MINE;
    const read = readShape(Requests, data);
    return read.outcome === "decoded" ? decoded(read.value.requests) : read;
  },
  encodeAnswers(replies) {
    const decisions = replies.flatMap(({ answer: { choice, ...rest } }) =>
      rest.requestId === undefined ? [] : [objectOf({ decision: choice, ...rest })],
    );
    return decisions.length === 0 ? [] : [{ data: { decisions } }];
  },
  decodeAnswers(data) {
    if (!hasKey(data, "decisions")) return NOT_MINE;
    const read = readShape(Decisions, data);
    if (read.outcome !== "decoded") return read;
    return decoded(read.value.decisions.map(({ decision, ...rest }) => answerOf(decision, rest)));
  },
};

const Requests = z.object({ requests: z.array(AskedShape) });

const said = { requestId: Id, digest: Sha256.nullish(), reason: Reason.nullish() };

/** Strict: a misspelt `editedArgs` must not approve what it wanted to change. */
const Decision = z.discriminatedUnion(
  "decision",
  [
    z.strictObject({ decision: z.literal("approve"), ...said, editedArgs: AnyObject.nullish() }),
    z.strictObject({ decision: z.literal("deny"), ...said }),
    z.strictObject({ decision: z.literal("answer"), ...said, values: AnyObject }),
    z.strictObject({ decision: z.literal("cancel"), ...said }),
  ],
  'must be "approve", "deny", "answer" or "cancel"',
);
const Decisions = z.strictObject({ decisions: z.array(Decision).min(1, "names no request") });
