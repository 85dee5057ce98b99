/**
 * Tells the other servers on a database that a task has changed, so that they need not wait for their next poll. Only a
 * hint: polling is the floor, so nothing here fails, and nothing waits for it. On a connection of its own and gathered,
 * because a NOTIFY inside the append would make all commits queue for one lock.
 */
import pg from "pg";
import type { Clock } from "../ports/clock.ts";
import type { TaskKey } from "../task/event.ts";
import { connectionOptions } from "./postgres-connection.ts";

const CHANNEL = "holdpoint";
const GATHER_MS = 10;
const PENDING_MAX = 1000;
/** PostgreSQL takes less than 8000. */
const PAYLOAD_BYTES_MAX = 7999;
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 10_000;

const NOTIFY = {
  name: "notify",
  text: `select pg_notify('${CHANNEL}', payload) from unnest($1::text[]) as payload`,
} as const;

export interface HintsOptions {
  readonly url: string;
  readonly clock: Clock;
}

/** `isDue`: somebody must look at the task now; else it has only changed. */
type OnHint = (key: TaskKey, isDue: boolean) => void;

export class PostgresHints {
  readonly #url: string;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #pending = new Set<string>();
  #client: pg.Client | undefined;
  #sending: Promise<void> | undefined;
  #keeping: Promise<void> | undefined;

  constructor({ url, clock }: HintsOptions) {
    this.#url = url;
    this.#clock = clock;
  }

  /** Passed on within `GATHER_MS`, each task once; dropped while there is no connection. */
  hint({ tenant, id }: TaskKey, isDue: boolean): void {
    const payload = JSON.stringify(isDue ? [tenant, id, 1] : [tenant, id]);
    if (this.#pending.size >= PENDING_MAX || Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX) return;
    this.#pending.add(payload);
    this.#sending ??= this.#send();
  }

  /** Hears what other servers hint from now on, through reconnects, until `stop`. Resolves after the first attempt. */
  async listen(onHint: OnHint): Promise<void> {
    const first = await this.#connect(onHint);
    this.#keeping = this.#keep(first, onHint);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#sending;
    await this.#client?.end();
    await this.#keeping;
  }

  async #send(): Promise<void> {
    while (this.#pending.size > 0) {
      await this.#clock.sleep(GATHER_MS, this.#stop.signal);
      const payloads = [...this.#pending];
      this.#pending.clear();
      await this.#client?.query(NOTIFY, [payloads]).catch(() => {});
    }
    this.#sending = undefined;
  }

  async #keep(first: Connected | undefined, onHint: OnHint): Promise<void> {
    let connected = first;
    let waitMs = BACKOFF_MIN_MS;
    while (!this.#stop.signal.aborted) {
      if (connected) {
        await connected.ended;
        this.#client = undefined;
        waitMs = BACKOFF_MIN_MS;
      }
      await this.#clock.sleep(waitMs, this.#stop.signal);
      waitMs = Math.min(2 * waitMs, BACKOFF_MAX_MS);
      connected = await this.#connect(onHint);
    }
  }

  async #connect(onHint: OnHint): Promise<Connected | undefined> {
    if (this.#stop.signal.aborted) return undefined;
    const client = new pg.Client(connectionOptions(this.#url));
    const ended = new Promise<void>((resolve) => client.once("end", resolve));
    client.on("error", () => {}); // "end" follows
    client.on("notification", ({ processId, payload }) => {
      const hint = decodeHint(payload);
      // Our own come back too; whoever gave them knows already.
      if (hint && processId !== processIdOf(client)) onHint(hint.key, hint.isDue);
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
    } catch {
      await client.end();
      return undefined;
    }
    if (this.#stop.signal.aborted) await client.end();
    this.#client = client;
    return { ended };
  }
}

interface Connected {
  /** Resolves when the connection is gone. */
  readonly ended: Promise<void>;
}

/** Anyone on the database can notify, so it may be anything. */
function decodeHint(payload: string | undefined): { key: TaskKey; isDue: boolean } | undefined {
  try {
    const [tenant, id, due] = JSON.parse(payload ?? "") as unknown[];
    return typeof tenant === "string" && typeof id === "string" ? { key: { tenant, id }, isDue: due === 1 } : undefined;
  } catch {
    return undefined;
  }
}

/** The types leave it out. */
function processIdOf(client: pg.Client): number | undefined {
  return (client as { processID?: number }).processID;
}
