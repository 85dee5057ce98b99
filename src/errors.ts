/**
 * Faults and bugs. A refusal is an ordinary value (`task/command.ts`); a fault is a broken world and is thrown as
 * `HoldpointError`; a bug is `unreachable`.
 */

/** Each fault, and whether trying the same again later can help. */
const FAULTS = {
  "store-unavailable": { retry: true },
  "store-contended": { retry: true },
  "store-full": { retry: true },
  "store-locked": { retry: false },
  "store-corrupt": { retry: false },
  "store-newer": { retry: false },
  "store-not-durable": { retry: false },
  "store-read-only": { retry: false },
  "log-unreadable": { retry: false },
  "log-purged": { retry: false },
  "agent-missing": { retry: false },
  "usage-invalid": { retry: false },
  "config-invalid": { retry: false },
  "port-taken": { retry: false },
} as const satisfies Record<string, { retry: boolean }>;

export type FaultCode = keyof typeof FAULTS;

/** A fault: names the thing, what was tried, and what to do. Branch on `code`, never on the class or the text. */
export class HoldpointError extends Error {
  readonly code: FaultCode;
  readonly retry: boolean;

  constructor(code: FaultCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "HoldpointError";
    this.code = code;
    this.retry = FAULTS[code].retry;
  }
}

export function isFault(error: unknown, code?: FaultCode): error is HoldpointError {
  return error instanceof HoldpointError && (code === undefined || error.code === code);
}

/** Makes the compiler find every `switch` when a case is added. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${JSON.stringify(value)}`);
}
