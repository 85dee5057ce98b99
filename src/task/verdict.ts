/** What `decide` answers: the events of an accepted command, or why not. */
import type { Refusal } from "./command.ts";
import type { Fact } from "./event.ts";
import type { RequestId } from "./request.ts";

export type Verdict =
  | {
      readonly ok: true;
      readonly facts: readonly Fact[];
      readonly blobs: readonly Blob[];
      /** Choices that came too late beside those that counted. */
      readonly lost?: readonly Lost[];
    }
  | { readonly ok: false; readonly refusal: Refusal; readonly lost?: readonly Lost[] };

/** A choice that lost its race, and to what. */
export interface Lost {
  readonly requestId: RequestId;
  readonly refusal: Refusal;
}

/** A large result or argument that stands beside the log. */
export interface Blob {
  readonly sha256: string;
  readonly text: string;
}

export function accept(...facts: Fact[]): Verdict {
  return { ok: true, facts, blobs: [] };
}

export function refuse(refusal: Refusal): Verdict {
  return { ok: false, refusal };
}
