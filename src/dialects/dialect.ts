/**
 * The contract of a dialect: one wire format of request and decision inside A2A messages. A dialect translates and
 * judges shape; which request an answer means, and whether it counts, is not its business.
 */
import type { Choice } from "../task/command.ts";
import type { JsonObject } from "../task/json.ts";
import type { Digest, Risk } from "../task/request.ts";

export interface Dialect {
  readonly name: string;
  /** The key in a message's metadata under which it stands; absent: each payload is a DataPart. */
  readonly uri?: string;
  /** In DataParts one payload for each request, in metadata at most one for all. What it cannot carry is left out. */
  encodeRequests(asked: readonly Asked[]): readonly Payload[];
  decodeRequests(data: unknown): Decoded<readonly Asked[]>;
  /** As above. What it cannot say whole (changed arguments above all) is left out, never said halfway. */
  encodeAnswers(replies: readonly Reply[]): readonly Payload[];
  decodeAnswers(data: unknown, find: FindQuestion): Decoded<readonly Answer[]>;
}

/** Not mine: the next dialect may try. Malformed: it is mine and wrong, and nobody else may try. */
export type Decoded<T> =
  | { readonly outcome: "decoded"; readonly value: T }
  | ({ readonly outcome: "malformed" } & Flaw)
  | { readonly outcome: "not-mine" };

/** What is wrong, and where (RFC 6901 pointer). */
export interface Flaw {
  readonly pointer: string;
  readonly detail: string;
}

export interface Payload {
  readonly data: JsonObject;
  /** Metadata of the part itself. */
  readonly metadata?: JsonObject;
}

/** What is asked, as any wire may show it; absent is what the wire does not say. */
export type Asked = AskedOfAll &
  (
    | (AskedCall & { readonly kind: "approval"; readonly argv?: readonly string[]; readonly editable?: boolean })
    | (AskedCall & { readonly kind: "in-doubt" })
    | { readonly kind: "input"; readonly schema: JsonObject }
    | { readonly kind: "auth"; readonly url: string }
  );

interface AskedOfAll {
  /** Of whoever asks: ours when we serve, theirs when we gate a remote agent. */
  readonly requestId?: string;
  readonly title?: string;
  readonly prompt?: string;
  readonly digest?: Digest;
  readonly risk?: Risk;
  /** The agents that asked, root first. */
  readonly path?: readonly string[];
  readonly expiresAt?: string;
  readonly onTimeout?: "fail" | "deny";
}

interface AskedCall {
  readonly tool: string;
  readonly args?: JsonObject;
  /** The arguments as one text: the command line, the path, or JSON. */
  readonly input?: string;
  readonly callId?: string;
}

/** What somebody says to a request. Which one, when no id is named, `resolveAnswers` tells. */
export interface Answer {
  readonly requestId?: string;
  readonly choice: Choice["choice"];
  readonly digest?: Digest;
  readonly reason?: string;
  readonly editedArgs?: JsonObject;
  readonly values?: JsonObject;
}

/** As much of a request as a codec needs to read its answer: some wires answer by position, some in one word. */
export type Question =
  | { readonly kind: "approval" | "in-doubt" | "auth" }
  | { readonly kind: "input"; readonly schema: JsonObject };

/** The request with this id; without an id, the one that an answer without id would mean. */
export type FindQuestion = (requestId: string | undefined) => Question | undefined;

export interface Reply {
  readonly answer: Answer;
  readonly to: Question;
}

export const NOT_MINE = { outcome: "not-mine" } as const;

export function decoded<T>(value: T): Decoded<T> {
  return { outcome: "decoded", value };
}

export function malformed(pointer: string, detail: string) {
  return { outcome: "malformed", pointer, detail } as const;
}
