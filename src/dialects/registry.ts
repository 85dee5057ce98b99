/** Every dialect that is understood, and what a message to a task says in any of them (DESIGN §6, rules 1 to 3, 5). */
import { findJsonProblem, isObject, type JsonObject } from "../task/json.ts";
import type { Request } from "../task/request.ts";
import { findRequest, openRequests, type Task } from "../task/task.ts";
import { a2aHitl } from "./a2a-hitl.ts";
import { a2aInput } from "./a2a-input.ts";
import { askedOf } from "./asked.ts";
import type { Answer, Decoded, Dialect, FindQuestion, Flaw, Payload } from "./dialect.ts";
import { malformed, NOT_MINE } from "./dialect.ts";
import { hectorV1 } from "./hector-v1.ts";
import { hitlV1 } from "./hitl-v1.ts";
import { holdpoint } from "./holdpoint.ts";
import { kagentA } from "./kagent-a.ts";
import { type Found, mergeAnswers } from "./merge-answers.ts";
import { decodeKeyword, decodeText } from "./plain-text.ts";
import { type Mount, requestWithoutId } from "./resolve-answers.ts";
import { hasKey, pointerTo } from "./shape.ts";

export const DIALECTS: readonly Dialect[] = [a2aInput, a2aHitl, hectorV1, kagentA, hitlV1, holdpoint];

/** `agents.*.serve_dialect`. */
export const SERVED_DIALECTS = { input: a2aInput, hitl: a2aHitl, hector: hectorV1, kagent: kagentA } as const;

/** Ten times what can be open. */
export const ANSWERS_MAX = 200;
/** The whole message is not larger. */
const PAYLOAD_BYTES_MAX = 1024 * 1024;

/** A message as JSON, of A2A 1.0 or 0.3: what is read of a part is the same in both. */
export interface WireMessage {
  readonly parts: readonly JsonObject[];
  readonly metadata?: JsonObject;
}

export type Reading =
  | { readonly type: "chat" }
  /** An answer by its form, but wrong: nothing changes. The pointer is into the message. */
  | ({ readonly type: "malformed" } & Flaw)
  | { readonly type: "answers"; readonly answers: readonly Found[] };

export function decodeMessage(message: WireMessage, task: Task, mount: Mount): Reading {
  const find: FindQuestion = (id) => (id === undefined ? requestWithoutId(task) : findRequest(task, id)?.request);
  const found: Found[] = [];
  for (const { data, pointer, dialects } of payloadsOf(message)) {
    const read = decodeWith(dialects, data, find);
    if (read.outcome === "malformed")
      return { type: "malformed", pointer: pointer + read.pointer, detail: read.detail };
    if (read.outcome === "decoded") found.push(...read.value.map((answer) => ({ answer, pointer })));
    if (found.length > ANSWERS_MAX) {
      return { type: "malformed", pointer, detail: `more than ${ANSWERS_MAX} answers in one message` };
    }
  }
  if (found.length === 0) return decodeWords(message, task, mount);
  const merged = mergeAnswers(found);
  if (merged.ok) return { type: "answers", answers: merged.answers };
  return { type: "malformed", pointer: merged.pointer, detail: merged.detail };
}

/** The DataParts that ask, one for each request. What this dialect cannot carry is asked in the standard one. */
export function encodeParts(
  dialect: Dialect,
  requests: readonly Request[],
  path: readonly string[],
): readonly Payload[] {
  return requests.flatMap((request) => {
    const asked = [askedOf(request, path)];
    const payloads = dialect.encodeRequests(asked);
    return payloads.length > 0 ? payloads : a2aInput.encodeRequests(asked);
  });
}

/** What stands in the metadata of a pause for a client that has negotiated these extensions. */
export function encodeMetadata(
  uris: readonly string[],
  requests: readonly Request[],
  path: readonly string[],
): JsonObject {
  const asked = requests.map((request) => askedOf(request, path));
  const chosen = DIALECTS.filter(({ uri }) => uri !== undefined && uris.includes(uri));
  return Object.fromEntries(
    chosen.flatMap((dialect) => dialect.encodeRequests(asked).map(({ data }) => [dialect.uri ?? "", data] as const)),
  );
}

interface Place {
  readonly data: unknown;
  readonly pointer: string;
  readonly dialects: readonly Dialect[];
}

const IN_PARTS = DIALECTS.filter(({ uri }) => uri === undefined);

function payloadsOf({ parts, metadata }: WireMessage): readonly Place[] {
  const inParts = parts.flatMap((part, i) =>
    hasKey(part, "data") ? [unwrap({ data: part.data, pointer: `/parts/${i}/data`, dialects: IN_PARTS })] : [],
  );
  const inMetadata = DIALECTS.flatMap((dialect) =>
    dialect.uri !== undefined && hasKey(metadata, dialect.uri)
      ? [{ data: metadata[dialect.uri], pointer: `/metadata${pointerTo(dialect.uri)}`, dialects: [dialect] }]
      : [],
  );
  return [...inParts, ...inMetadata];
}

/** Hector's REST clients nest data in data, as protojson has it. */
function unwrap(place: Place): Place {
  const { data, pointer } = place;
  const isNested = hasKey(data, "data") && isObject(data.data) && Object.keys(data).length === 1;
  return isNested ? { ...place, data: data.data, pointer: `${pointer}/data` } : place;
}

function decodeWith(dialects: readonly Dialect[], data: unknown, find: FindQuestion): Decoded<readonly Answer[]> {
  for (const dialect of dialects) {
    const read = dialect.decodeAnswers(data, find);
    if (read.outcome === "not-mine") continue;
    // Only what a dialect claims is judged so strictly; the rest is a message like any other.
    const problem = findJsonProblem(data, PAYLOAD_BYTES_MAX);
    if (problem) return malformed(problem.pointer, problem.text);
    if (read.outcome !== "decoded" || !read.value.some(isEditedUnapproved)) return read;
    return malformed("", "only an approval can change arguments");
  }
  return NOT_MINE;
}

function isEditedUnapproved({ choice, editedArgs }: Answer): boolean {
  return editedArgs !== undefined && choice !== "approve";
}

/** Words count when they are all that is said. An answer that several open requests would take is still an answer. */
function decodeWords({ parts }: WireMessage, task: Task, mount: Mount): Reading {
  const [part, ...others] = parts;
  if (!part || others.length > 0 || typeof part.text !== "string" || hasKey(part, "data")) return { type: "chat" };
  const { text } = part;
  const open = openRequests(task);
  const shown = mount === "v1" ? open.slice(0, 1) : open;
  const [answer] =
    open.length > 0 ? shown.flatMap((request) => decodeText(text, request) ?? []) : decodeLate(text, task);
  return answer ? { type: "answers", answers: [{ answer, pointer: "/parts/0/text" }] } : { type: "chat" };
}

/** A keyword that comes when the last approval is closed is late for it; other words are not bound to anything. */
function decodeLate(text: string, task: Task): readonly Answer[] {
  const choice = task.requests.some(({ request }) => request.kind === "approval") ? decodeKeyword(text) : undefined;
  return choice ? [{ choice }] : [];
}
