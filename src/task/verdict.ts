/** What `decide` answers: the events of an accepted command, or why not. */
import type { Refusal } from "./command.ts";
import type { Fact } from "./event.ts";

export type Verdict =
  | { readonly ok: true; readonly facts: readonly Fact[]; readonly blobs: readonly Blob[] }
  | { readonly ok: false; readonly refusal: Refusal };

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
