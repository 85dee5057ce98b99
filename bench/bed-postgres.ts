/** PostgreSQL as the product uses it, and the same append bare. */
import pg from "pg";
import { systemIds } from "../src/ports/ids.ts";
import { PostgresStore } from "../src/store/postgres.ts";
import { encodeAppend } from "../src/store/postgres-append.ts";
import { POSTGRES } from "../src/store/postgres-statements.ts";
import type { Store } from "../src/store/store.ts";
import type { Append, Bare, Bed, BedAddress, Size } from "./bed.ts";
import { closedLoops, type Timing } from "./measure.ts";
import { TENANT } from "./workload.ts";

/** As many as the store opens. */
const CONNECTIONS = 16;
const TABLES = ["tasks", "events", "requests", "effects", "blobs"] as const;

export class PostgresBed implements Bed {
  readonly address: BedAddress & { kind: "postgres" };

  constructor(address: BedAddress & { kind: "postgres" }) {
    this.address = address;
  }

  /** The clock is the database's. */
  open(): Promise<Store> {
    return PostgresStore.open({ url: this.address.url, ids: systemIds });
  }

  async openBare(): Promise<Bare> {
    const bare = new PostgresBare(this.#pool(CONNECTIONS));
    await bare.connectAll();
    return bare;
  }

  async settle(): Promise<void> {
    const pool = this.#pool(1);
    for (const statement of ["vacuum (analyze)", "checkpoint"]) await pool.query(statement);
    await pool.end();
  }

  async measureSize(): Promise<Size> {
    const pool = this.#pool(1);
    const number = async (sql: string) => Number(Object.values((await pool.query(sql)).rows[0] ?? {})[0]);
    const sum = async (sql: (table: string) => string) =>
      (await Promise.all(TABLES.map((table) => number(sql(`holdpoint.${table}`))))).reduce((a, b) => a + b, 0);
    await pool.query("checkpoint");
    const size = {
      bytes: await sum((table) => `select pg_total_relation_size('${table}')`),
      payloadBytes: await number("select sum(octet_length(body) + octet_length(hash)) from holdpoint.events"),
      rows: await sum((table) => `select count(*) from ${table}`),
      tasks: await number("select count(*) from holdpoint.tasks"),
    };
    await pool.end();
    return size;
  }

  #pool(max: number): pg.Pool {
    // The same plans as the store's: it rules out sequential scans and compilation.
    return new pg.Pool({ connectionString: this.address.url, max, options: "-c enable_seqscan=off -c jit=off" });
  }
}

class PostgresBare implements Bare {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async connectAll(): Promise<void> {
    const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => this.#pool.connect()));
    for (const client of clients) client.release();
  }

  /** Closed loops: the database itself gathers commits. All values are made before the clock starts. */
  run(works: readonly (readonly Append[])[], atOnce: number): Promise<Timing> {
    const bound = works.map((work) =>
      work.map(({ key, expected, entries, rows, readsLog }) => ({
        log: readsLog ? [key.tenant, key.id, 0] : undefined,
        values: encodeAppend(key, expected, entries, rows, undefined),
      })),
    );
    return closedLoops(bound, atOnce, async (appends) => {
      for (const { log, values } of appends) {
        if (log) await this.#pool.query({ ...POSTGRES.read, values: log });
        const { rows } = await this.#pool.query({ ...POSTGRES.append, values });
        if (rows[0]?.result !== "appended") throw new Error(`a bare append has answered ${rows[0]?.result}`);
      }
    });
  }

  async listOpen(): Promise<void> {
    await this.#pool.query({
      name: "bare-list",
      text: `select * from holdpoint.requests where tenant = $1 and status = 'open' and kind = 'approval'
        order by opened_at, pk limit 51`,
      values: [TENANT],
    });
  }

  async scanDue(): Promise<void> {
    await this.#pool.query({
      name: "bare-due",
      text: "select pk from holdpoint.tasks where wake_at <= $1 order by wake_at limit 64",
      values: [1],
    });
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }
}
