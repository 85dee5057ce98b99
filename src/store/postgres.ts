/** The store on PostgreSQL: any number of servers on one database, whose clock and row locks decide. */
import type { CompiledQuery } from "kysely";
import { HoldpointError, isFault } from "../errors.ts";
import type { Ids } from "../ports/ids.ts";
import { sha256 } from "../task/digest.ts";
import { decodeEvent, type TaskKey } from "../task/event.ts";
import type { Outcome } from "../task/request.ts";
import type { Rows } from "../task/rows.ts";
import { countTasks, createBuilder, listByDeadline, listOpenRequests, listTasks, type RunQuery } from "./listing.ts";
import { encodeAppend, GUARD_FAILED, messageHash } from "./postgres-append.ts";
import { PostgresConnection } from "./postgres-connection.ts";
import { sqlState } from "./postgres-faults.ts";
import { migrate } from "./postgres-migrate.ts";
import { POSTGRES } from "./postgres-statements.ts";
import { createPostgresTrail, type EventRow, keyOf, type SealRow, toSeal } from "./postgres-trail.ts";
import { nextSeal } from "./seal.ts";
import type {
  AppendResult,
  AuditTrail,
  Entry,
  Lease,
  OpenRequestRow,
  Page,
  Reading,
  RequestQuery,
  Retry,
  Seal,
  Store,
  TaskFilter,
  TaskListRow,
  TaskQuery,
} from "./store.ts";

export interface PostgresOptions {
  readonly url: string;
  readonly ids: Ids;
}

const builder = createBuilder("postgres").withSchema("holdpoint");

/** Guards, unique keys (a message, an effect), serialization failures and deadlocks: nothing was written. */
const LOST_RACE = new Set([GUARD_FAILED, "23505", "40001", "40P01"]);

export class PostgresStore implements Store {
  readonly epoch: string;
  readonly #connection: PostgresConnection;

  static async open({ url, ids }: PostgresOptions): Promise<PostgresStore> {
    const connection = new PostgresConnection(url);
    try {
      return new PostgresStore(connection, await migrate(connection, ids));
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  private constructor(connection: PostgresConnection, epoch: string) {
    this.#connection = connection;
    this.epoch = epoch;
  }

  async read(key: TaskKey, version = 0): Promise<Reading> {
    type Row = { now: number; seq: number | null; at: number; body: string | null; hash: Buffer | null };
    const rows = await this.#connection.query<Row>(POSTGRES.read, [key.tenant, key.id, version]);
    const last = rows.at(-1);
    const events = rows.flatMap(({ seq, at, body }) => {
      if (seq === null) return [];
      if (body === null) throw new HoldpointError("log-purged", `task ${key.id}: its content was purged`);
      return [decodeEvent(key, seq, at, body)];
    });
    return { events, head: last?.hash?.toString("hex"), nowMs: last?.now ?? 0 };
  }

  async append(
    key: TaskKey,
    expected: number,
    entries: readonly Entry[],
    rows: Rows,
    fence?: number,
  ): Promise<AppendResult> {
    if (entries.some(({ event }, i) => event.seq !== expected + i + 1)) return "conflict";
    const values = encodeAppend(key, expected, entries, rows, fence);
    try {
      const query = fence === undefined ? this.#connection.query : this.#connection.queryAsWorker;
      const [answer] = await query<{ result: AppendResult }>(POSTGRES.append, values);
      return answer?.result ?? "conflict";
    } catch (error) {
      const state = sqlState(isFault(error) ? error.cause : error);
      if (state !== undefined && LOST_RACE.has(state)) return "conflict";
      throw error;
    }
  }

  async findMessage(tenant: string, messageKey: string): Promise<string | undefined> {
    type Row = { task_id: string };
    const [row] = await this.#connection.query<Row>(POSTGRES.findMessage, [tenant, messageHash(messageKey)]);
    return row?.task_id;
  }

  async readVersions(keys: readonly TaskKey[]): Promise<readonly number[]> {
    const columns = [keys.map(({ tenant }) => tenant), keys.map(({ id }) => id)];
    const rows = await this.#connection.query<{ version: number }>(POSTGRES.readVersions, columns);
    return rows.map(({ version }) => version);
  }

  async readBlob({ tenant, id }: TaskKey, sha256: string): Promise<string | undefined> {
    const [row] = await this.#connection.query<{ content: string }>(POSTGRES.readBlob, [tenant, id, sha256]);
    return row?.content;
  }

  async readRequestRow({ tenant, id }: TaskKey, n: number): Promise<"open" | Outcome | undefined> {
    const [row] = await this.#connection.query<{ status: "open" | Outcome }>(POSTGRES.readRequest, [tenant, id, n]);
    return row?.status;
  }

  async claimDue(limit: number, leaseMs: number, working: readonly Lease[]): Promise<readonly Lease[]> {
    type Row = { tenant: string; id: string; fence: number; attempts: number; abandoned: boolean };
    const { tenants, ids } = columnsOf(working);
    const rows = await this.#connection.queryAsWorker<Row>(POSTGRES.claimDue, [limit, leaseMs, tenants, ids]);
    return rows.map(({ tenant, id, ...lease }) => ({ key: { tenant, id }, ...lease }));
  }

  async renew(working: readonly Lease[], leaseMs: number): Promise<void> {
    const { tenants, ids, fences } = columnsOf(working);
    await this.#connection.query(POSTGRES.renew, [leaseMs, tenants, ids, fences]);
  }

  async release({ key, fence }: Lease, retry?: Retry): Promise<void> {
    const values = [key.tenant, key.id, fence, retry?.afterMs ?? null, retry?.attempts ?? null];
    await this.#connection.queryAsWorker(POSTGRES.release, values);
  }

  #list: RunQuery = async <T>({ sql, parameters }: CompiledQuery<T>) =>
    // The builder knows the columns of what it selects.
    (await this.#connection.query({ name: `list-${sha256(sql).slice(0, 16)}`, text: sql }, parameters)) as T[];

  listOpenRequests(query: RequestQuery): Promise<Page<OpenRequestRow>> {
    return listOpenRequests(builder, this.#list, query);
  }

  listByDeadline(query: Omit<RequestQuery, "agent" | "kind">): Promise<Page<OpenRequestRow>> {
    return listByDeadline(builder, this.#list, query);
  }

  listTasks(query: TaskQuery): Promise<Page<TaskListRow>> {
    return listTasks(builder, this.#list, query);
  }

  countTasks(filter: TaskFilter, max: number): Promise<number> {
    return countTasks(builder, this.#list, filter, max);
  }

  /** One sealer at a time; whoever finds another at work has nothing to do. */
  sealNext(limit: number): Promise<Seal | undefined> {
    return this.#connection.transaction(async (run) => {
      const [lock] = await run<{ locked: boolean }>(POSTGRES.trySealLock);
      if (!lock?.locked) return undefined;
      const rows = await run<EventRow & { pk: number }>(POSTGRES.unsealedEvents, [limit]);
      if (rows.length === 0) return undefined;
      const [last] = await run<SealRow>(POSTGRES.lastSeal);
      const [clock] = await run<{ now: number }>(POSTGRES.clock);
      const events = rows.map((row) => ({ key: keyOf(row), seq: row.seq, at: row.at, hash: row.hash.toString("hex") }));
      const seal = nextSeal(last && toSeal(last), events, Math.max(clock?.now ?? 0, last?.at ?? 0));
      await run(POSTGRES.insertSeal, [seal.n, seal.atMs, seal.count, seal.previous, seal.hash]);
      await run(POSTGRES.setSeal, [seal.n, rows.map(({ pk }) => pk)]);
      return seal;
    });
  }

  async lastSeal(): Promise<Seal | undefined> {
    const [row] = await this.#connection.query<SealRow>(POSTGRES.lastSeal);
    return row && toSeal(row);
  }

  readTrail<T>(read: (trail: AuditTrail) => Promise<T>): Promise<T> {
    return this.#connection.snapshot((run) => read(createPostgresTrail(run)));
  }

  async purge(endedBeforeMs: number, limit: number): Promise<number> {
    const [row] = await this.#connection.query<{ purged: number }>(POSTGRES.purge, [endedBeforeMs, limit]);
    return row?.purged ?? 0;
  }

  async ping(): Promise<void> {
    await this.#connection.query(POSTGRES.ping);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

function columnsOf(leases: readonly Lease[]): { tenants: string[]; ids: string[]; fences: number[] } {
  return {
    tenants: leases.map(({ key }) => key.tenant),
    ids: leases.map(({ key }) => key.id),
    fences: leases.map(({ fence }) => fence),
  };
}
