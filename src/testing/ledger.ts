/**
 * The truth about side effects, outside the database: what a tool really did. A run is right when this ledger and the
 * decisions in the log tell the same story.
 */

import { sha256 } from "../task/digest.ts";
import { canonicalJson } from "../task/json.ts";
import type { Work } from "../tools/tool.ts";

export interface LedgerEntry {
  readonly tool: string;
  /** The request that allowed it, or the call; what the tool was given as its idempotency key. */
  readonly idempotencyKey: string;
  readonly argsHash: string;
}

export interface Ledger {
  record(entry: LedgerEntry): void;
}

export function toLedgerEntry(tool: string, { args, idempotencyKey }: Work): LedgerEntry {
  return { tool, idempotencyKey, argsHash: sha256(canonicalJson(args)) };
}
