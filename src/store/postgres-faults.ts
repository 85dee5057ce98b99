/** What PostgreSQL and its client report, in our words. Messages name the server and the database, never the password. */
import pg from "pg";
import { type FaultCode, HoldpointError, isFault } from "../errors.ts";

/** A race that was lost inside the database: nothing was written, and trying again from a fresh reading can win. */
const RACES = new Set(["40001", "40P01", "55P03"]);

export function toFault(place: string, cause: unknown): unknown {
  if (isFault(cause) || cause instanceof TypeError || !(cause instanceof Error)) return cause;
  const state = sqlState(cause);
  // Without a state the server has not answered: the network, or the client that gave up waiting.
  const known = state === undefined ? UNREACHABLE : meaningOf(state);
  if (!known) return cause;
  const [code, text] = known;
  return new HoldpointError(code, `${place}: ${text} (${describe(cause)})`, { cause });
}

/** The five letters of an answer of the server; undefined when the connection itself failed. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** After these the session is over or is not to be trusted; after any other answer it goes on. */
export function endsSession(error: unknown): boolean {
  return /^(08|53|57P|58|XX)/.test(sqlState(error) ?? "08");
}

type Meaning = readonly [FaultCode, string];

const UNREACHABLE: Meaning = [
  "store-unavailable",
  "PostgreSQL cannot be reached, or the connection was lost. Check that it runs, and the address",
];

function meaningOf(state: string): Meaning | undefined {
  if (RACES.has(state)) return ["store-contended", "others are writing the same rows; try again"];
  switch (state) {
    case "53100":
      return ["store-full", "the disk of the database is full; nothing was changed. Free some space and try again"];
    case "53300":
      return ["store-unavailable", "no connection is free. Raise max_connections, or run fewer servers"];
    case "57014":
      return ["store-unavailable", "the statement took too long and was undone; the database may be overloaded"];
    case "28000":
    case "28P01":
      return ["store-unavailable", "the login was refused. Check user and password in the database url"];
    case "3D000":
      return ["store-unavailable", "there is no such database. Create it, or correct the database url"];
    case "25006":
      return ["store-read-only", "the database takes no writes. Connect to the primary"];
    case "42501":
      return ["store-read-only", "the role may not do this. Let it own the schema holdpoint"];
    case "22021":
    case "22P05":
      return ["usage-invalid", "a text holds a NUL character or half a surrogate pair, which cannot be kept"];
    case "54000":
      return ["usage-invalid", "an id is too long to be kept"];
    case "3F000":
    case "42883":
    case "42P01":
    case "XX001":
    case "XX002":
      return ["store-corrupt", "the database is damaged, or parts of its schema are missing. Restore a backup"];
  }
  return /^(08|53|57P|58)/.test(state)
    ? ["store-unavailable", "PostgreSQL is stopping, starting or short of something; try again"]
    : undefined;
}

/** An attempt to several addresses fails with one error for each and no text of its own. */
function describe(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(String).join(", ") : error.message;
}
