/**
 * The connections to one PostgreSQL database: each checked before its first use, and every failure in our words.
 *
 * P1  Only a primary that commits durably is worked with; a new connection is checked before anything uses it.
 * P2  What is not known is not guessed: a connection that is lost under a statement is a fault, never a result.
 */
import pg from "pg";
import { HoldpointError } from "../errors.ts";
import { endsSession, toFault } from "./postgres-faults.ts";

const CONNECTIONS_MAX = 16;
/** Workers share these; the others are for people, who must not queue behind them. */
const WORKERS_CONNECTIONS_MAX = 6;
/** Kept open: whoever decides after a quiet hour does not wait for a handshake. */
const CONNECTIONS_MIN = 4;
const CONNECT_MAX_MS = 5_000;
const STATEMENT_MAX_MS = 30_000;
const LOCK_WAIT_MAX_MS = 10_000;
/** Past the server's own limit: only when it has gone silent. */
const ANSWER_MAX_MS = STATEMENT_MAX_MS + 5_000;
const IDLE_MAX_MS = 60_000;

const INT8 = 20;
const NUMBERS: pg.CustomTypesConfig = {
  // bigint columns hold times and counters, far below 2^53.
  getTypeParser: ((oid: number, format?: "text") =>
    oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/** With a name it is prepared once for each connection. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
  /** In milliseconds, instead of `ANSWER_MAX_MS`; the word is the client's. */
  readonly query_timeout?: number;
}

/** Runs a statement and gives its rows. */
export type Run = <Row extends pg.QueryResultRow>(statement: Statement, values?: readonly unknown[]) => Promise<Row[]>;

export class PostgresConnection {
  readonly place: string;
  readonly #pool: pg.Pool;
  #closing: Promise<void> | undefined;
  #working = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(url: string) {
    this.place = placeOf(url);
    this.#pool = new pg.Pool({
      ...connectionOptions(url),
      types: NUMBERS,
      max: CONNECTIONS_MAX,
      min: CONNECTIONS_MIN,
      idleTimeoutMillis: IDLE_MAX_MS,
      query_timeout: ANSWER_MAX_MS,
      onConnect: (client) => prepareSession(this.place, client),
    });
    // Without listeners a connection that drops would end the process. Whoever is using it learns it from its query.
    this.#pool.on("error", () => {});
    this.#pool.on("connect", (client) => client.on("error", () => {}));
  }

  /** One statement, which is a transaction of its own. */
  query: Run = <Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[] = []) =>
    this.#use((run) => run<Row>(statement, values));

  /** The same for a worker. */
  queryAsWorker: Run = async <Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[] = []) => {
    if (this.#working < WORKERS_CONNECTIONS_MAX) this.#working++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await this.query<Row>(statement, values);
    } finally {
      const next = this.#waiting.shift();
      // The place is handed on, so that nobody overtakes.
      if (next) next();
      else this.#working--;
    }
  };

  /** All of `work`, or nothing. */
  transaction<T>(work: (run: Run) => Promise<T>): Promise<T> {
    return this.#transact("begin", work);
  }

  /** Reads everything as it stood when `work` first looked. */
  snapshot<T>(work: (run: Run) => Promise<T>): Promise<T> {
    return this.#transact("begin isolation level repeatable read, read only", work);
  }

  #transact<T>(begin: string, work: (run: Run) => Promise<T>): Promise<T> {
    return this.#use(async (run) => {
      await run({ text: begin });
      try {
        const result = await work(run);
        await run({ text: "commit" });
        return result;
      } catch (error) {
        // If this fails too, the connection is gone, and the transaction with it.
        await run({ text: "rollback" }).catch(() => {});
        throw error;
      }
    });
  }

  async close(): Promise<void> {
    this.#closing ??= this.#pool.end();
    await this.#closing;
  }

  async #use<T>(work: (run: Run) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw toFault(this.place, error);
    });
    let isBroken = false;
    const run: Run = async <Row extends pg.QueryResultRow>(statement: Statement, values: readonly unknown[] = []) => {
      try {
        return (await client.query<Row>({ ...statement, values: [...values] })).rows;
      } catch (error) {
        isBroken ||= endsSession(error);
        throw toFault(this.place, error);
      }
    };
    try {
      return await work(run);
    } finally {
      client.release(isBroken);
    }
  }
}

/** What every connection has in common, also the one for hints. */
export function connectionOptions(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: "holdpoint",
    connectionTimeoutMillis: CONNECT_MAX_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** Host, port and database, for messages. */
function placeOf(url: string): string {
  // Anything else would be taken for a database on this machine.
  if (!/^postgres(ql)?:\/\//.test(url)) throw notAUrl("it does not begin with postgres://");
  try {
    const { host, port, database } = new pg.Client({ connectionString: url });
    return `PostgreSQL ${host}:${port}/${database}`;
  } catch (error) {
    throw notAUrl(error instanceof Error ? error.message : "");
  }
}

/** Without the url, and without a cause that keeps it: there is a password in it. */
function notAUrl(why: string): HoldpointError {
  const text = "the database url must be like postgres://user:password@host:5432/name";
  return new HoldpointError("usage-invalid", `${text} (${why})`);
}

interface Session {
  readonly is_replica: boolean;
  readonly read_only: string;
  readonly synchronous_commit: string;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly encoding: string;
}

/**
 * P1. What is found good is also set for the session, so that a later change of the server's configuration does not
 * take it away. Sequential scans are ruled out because every statement has its index: a plan that was made, and kept,
 * while a table was small must not outlive that.
 */
const PREPARE_SESSION = `select
  pg_is_in_recovery() as is_replica,
  current_setting('transaction_read_only') as read_only,
  current_setting('synchronous_commit') as synchronous_commit,
  current_setting('fsync') as fsync,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('server_encoding') as encoding,
  set_config('synchronous_commit', current_setting('synchronous_commit'), false),
  set_config('default_transaction_isolation', 'read committed', false),
  set_config('statement_timeout', '${STATEMENT_MAX_MS}', false),
  set_config('lock_timeout', '${LOCK_WAIT_MAX_MS}', false),
  set_config('idle_in_transaction_session_timeout', '${STATEMENT_MAX_MS}', false),
  set_config('enable_seqscan', 'off', false),
  set_config('plan_cache_mode', 'force_generic_plan', false),
  set_config('jit', 'off', false)`;

async function prepareSession(place: string, client: pg.ClientBase): Promise<void> {
  const [session] = (await client.query<Session>(PREPARE_SESSION)).rows;
  if (!session) throw new HoldpointError("store-unavailable", `${place}: does not say how it is set up`);
  if (session.is_replica) {
    throw new HoldpointError("store-read-only", `${place} is a replica; authority reads and writes go to the primary`);
  }
  if (session.read_only === "on") {
    throw new HoldpointError(
      "store-read-only",
      `${place}: default_transaction_read_only is on; connect to the primary`,
    );
  }
  for (const setting of ["synchronous_commit", "fsync", "full_page_writes"] as const) {
    if (session[setting] !== "off") continue;
    throw new HoldpointError(
      "store-not-durable",
      `${place}: ${setting} is off, so a decision that was acknowledged could be lost. Set it to on for this server, database and role.`,
    );
  }
  if (session.encoding !== "UTF8") {
    throw new HoldpointError(
      "store-not-durable",
      `${place}: its encoding is ${session.encoding}, which cannot keep every text. Create it with encoding 'UTF8'.`,
    );
  }
}
