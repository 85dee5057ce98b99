/** How a command ends: one number for each kind of ending, the same for every command. */
import { ClientError } from "../client/client.ts";
import { isFault } from "../errors.ts";

export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  config: 3,
  notFound: 4,
  /** Decided by somebody else, expired, or changed. */
  conflict: 5,
  notAllowed: 6,
  timedOut: 7,
  unreachable: 8,
  /** A person is needed, and nobody is here to ask. */
  waiting: 10,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends the command; the message, if there is one, goes to stderr. */
export class Ending extends Error {
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message = "") {
    super(message);
    this.exitCode = exitCode;
  }
}

/** How an error ends the command, or undefined when it is a bug. */
export function endingOf(error: unknown): Ending | undefined {
  if (error instanceof Ending) return error;
  if (error instanceof ClientError) return new Ending(exitOfStatus(error.status), error.message);
  if (!isFault(error)) return undefined;
  if (error.code === "config-invalid") return new Ending(EXIT.config, error.message);
  return new Ending(error.code === "usage-invalid" ? EXIT.usage : EXIT.failed, error.message);
}

function exitOfStatus(status: number): ExitCode {
  switch (status) {
    case 0:
      return EXIT.unreachable;
    case 401:
    case 403:
    case 421:
      return EXIT.notAllowed;
    case 404:
      return EXIT.notFound;
    case 409:
    case 410:
    case 412:
      return EXIT.conflict;
    case 400:
    case 413:
    case 415:
    case 422:
      return EXIT.usage;
    default:
      return EXIT.failed;
  }
}
