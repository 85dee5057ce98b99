/** The store on SQLite: one process, one writer, group commits that are on disk before they are acknowledged. */
import type { CompiledQuery } from "kysely";
import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { decodeEvent, nameOf, type TaskEvent, type TaskKey } from "../task/event.ts";
import type { Outcome } from "../task/request.ts";
import type { ClosedRow, EffectRow, Rows } from "../task/rows.ts";
import { LeaseTable } from "./lease-table.ts";
import { createBuilder, encodeDigest, listByDeadline, listOpenRequests, listTasks, type RunQuery } from "./listing.ts";
import { nextSeal } from "./seal.ts";
import { SqliteConnection, type Synchronous, toFault, Undo } from "./sqlite-connection.ts";
import { prepareStatements, type Statements } from "./sqlite-statements.ts";
import { readSqliteTrail, toHex, toSeal } from "./sqlite-trail.ts";
import type {
  AppendResult,
  AuditTrail,
  Entry,
  Lease,
  OpenRequestRow,
  Page,
  Reading,
  RequestQuery,
  Seal,
  Store,
  TaskListRow,
  TaskQuery,
} from "./store.ts";
import { StoreClock } from "./store-clock.ts";

export interface SqliteOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly synchronous?: Synchronous;
  readonly readOnly?: boolean;
}

const builder = createBuilder("sqlite");

export class SqliteStore implements Store {
  readonly #connection: SqliteConnection;
  readonly #clock: StoreClock;
  readonly #sql: Statements;
  readonly #leases = new LeaseTable();

  static open({ path, clock, ids, synchronous, readOnly }: SqliteOptions): SqliteStore {
    const connection = readOnly
      ? SqliteConnection.openReadOnly(path, clock)
      : SqliteConnection.open(path, clock, ids, synchronous);
    try {
      return new SqliteStore(connection, clock);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  private constructor(connection: SqliteConnection, clock: Clock) {
    this.#connection = connection;
    this.#sql = connection.read(() => prepareStatements(connection.db));
    this.#clock = new StoreClock(clock, Number(connection.read(() => this.#sql.newestChange.get())?.newest ?? 0));
  }

  get epoch(): string {
    return this.#connection.epoch;
  }

  async read(key: TaskKey, version = 0): Promise<Reading> {
    const rows = this.#connection.read(() => this.#sql.readEvents.all(key.tenant, key.id, version));
    const events = rows.map(({ seq, at, body }) => toEvent(key, Number(seq), Number(at), body));
    return { events, head: rows.length > 0 ? toHex(rows.at(-1)?.hash) : undefined, nowMs: this.#clock.nowMs() };
  }

  append(key: TaskKey, expected: number, entries: readonly Entry[], rows: Rows, fence?: number): Promise<AppendResult> {
    return this.#connection.write(() => this.#append(key, expected, entries, rows, fence));
  }

  #append(
    key: TaskKey,
    expected: number,
    entries: readonly Entry[],
    rows: Rows,
    fence: number | undefined,
  ): AppendResult {
    const { tenant, id } = key;
    const sql = this.#sql;
    if (fence !== undefined && !this.#leases.isHeld({ key, fence })) return "fenced";
    if (Number(sql.readVersion.get(tenant, id)?.version ?? 0) !== expected) return "conflict";

    const { task } = rows;
    const version = expected + entries.length;
    if (expected === 0) {
      sql.insertTask.run(
        tenant,
        id,
        task.agent,
        task.contextId,
        task.state,
        version,
        task.createdAtMs,
        task.updatedAtMs,
        task.wakeAtMs,
      );
    } else {
      sql.updateTask.run(task.state, version, task.updatedAtMs, task.wakeAtMs, tenant, id);
    }
    for (const { event, body, hash, messageKey = null } of entries) {
      const { changes } = sql.insertEvent.run(
        tenant,
        id,
        event.seq,
        event.at,
        body,
        Buffer.from(hash, "hex"),
        messageKey,
      );
      if (changes !== 1) throw new Undo("conflict");
    }
    for (const { n, kind, agent, digest, openedAtMs, expiresAtMs } of rows.opened) {
      sql.insertRequest.run(tenant, id, n, kind, agent, encodeDigest(digest), openedAtMs, expiresAtMs);
    }
    for (const closed of rows.closed) this.#closeRequest(key, closed);
    for (const effect of rows.effects) this.#writeEffect(key, effect);
    for (const { sha256, text } of rows.blobs) sql.insertBlob.run(tenant, id, sha256, text);
    return "appended";
  }

  /** The second gate, beside the version of the log. */
  #closeRequest({ tenant, id }: TaskKey, { n, outcome, digest, deadline }: ClosedRow): void {
    const { changes } = this.#sql.closeRequest.run(
      outcome,
      tenant,
      id,
      n,
      encodeDigest(digest),
      deadline,
      this.#clock.nowMs(),
    );
    if (changes !== 1) throw new Undo("conflict");
  }

  #writeEffect({ tenant, id }: TaskKey, effect: EffectRow): void {
    const { changes } =
      effect.type === "claimed"
        ? this.#sql.insertEffect.run(tenant, id, effect.effectId, effect.token, encodeDigest(effect.digest))
        : this.#sql.endEffect.run(effect.outcome, tenant, id, effect.effectId, effect.token);
    if (changes !== 1) throw new Undo("conflict");
  }

  async findMessage(tenant: string, messageKey: string): Promise<string | undefined> {
    return text(this.#connection.read(() => this.#sql.findMessage.get(tenant, messageKey))?.task_id);
  }

  async readBlob({ tenant, id }: TaskKey, sha256: string): Promise<string | undefined> {
    return text(this.#connection.read(() => this.#sql.readBlob.get(tenant, id, sha256))?.content);
  }

  async readRequestRow({ tenant, id }: TaskKey, n: number): Promise<"open" | Outcome | undefined> {
    return text(this.#connection.read(() => this.#sql.readRequest.get(tenant, id, n))?.status) as
      | "open"
      | Outcome
      | undefined;
  }

  async claimDue(limit: number, leaseMs: number, working: readonly Lease[]): Promise<readonly Lease[]> {
    const nowMs = this.#clock.nowMs();
    const mine = new Set(working.map(({ key }) => nameOf(key)));
    // Held tasks stay due, so look past them.
    return this.#connection
      .read(() => this.#sql.dueTasks.all(nowMs, limit + this.#leases.size))
      .map(({ tenant, id, attempts }) => ({
        key: { tenant: String(tenant), id: String(id) },
        attempts: Number(attempts),
      }))
      .filter(({ key }) => this.#leases.isFree(key, nowMs) && !mine.has(nameOf(key)))
      .slice(0, limit)
      .map(({ key, attempts }) => ({ key, attempts, fence: this.#leases.take(key, nowMs + leaseMs) }));
  }

  async renew(working: readonly Lease[], leaseMs: number): Promise<void> {
    this.#leases.renew(working, this.#clock.nowMs() + leaseMs);
  }

  async release({ key, fence, attempts }: Lease, retryAfterMs?: number): Promise<void> {
    if (!this.#leases.isHeld({ key, fence })) return;
    const { tenant, id } = key;
    if (retryAfterMs !== undefined) {
      const retryAtMs = this.#clock.nowMs() + retryAfterMs;
      await this.#connection.write(() => this.#sql.retryTask.run(attempts + 1, retryAtMs, tenant, id));
    } else if (attempts > 0) {
      await this.#connection.write(() => this.#sql.resetAttempts.run(tenant, id));
    }
    this.#leases.release(key);
  }

  #run: RunQuery = <T>(query: CompiledQuery<T>) =>
    this.#connection.read(() => this.#sql.cached(query.sql).all(...(query.parameters as (string | number)[]))) as T[];

  async listOpenRequests(query: RequestQuery): Promise<Page<OpenRequestRow>> {
    return listOpenRequests(builder, this.#run, query);
  }

  async listByDeadline(query: Omit<RequestQuery, "agent" | "kind">): Promise<Page<OpenRequestRow>> {
    return listByDeadline(builder, this.#run, query);
  }

  async listTasks(query: TaskQuery): Promise<Page<TaskListRow>> {
    return listTasks(builder, this.#run, query);
  }

  sealNext(limit: number): Promise<Seal | undefined> {
    return this.#connection.write(() => {
      const rows = this.#sql.unsealedEvents.all(limit);
      if (rows.length === 0) return undefined;
      const events = rows.map(({ tenant, task_id, seq, at, hash }) => ({
        key: { tenant: String(tenant), id: String(task_id) },
        seq: Number(seq),
        at: Number(at),
        hash: toHex(hash),
      }));
      const last = this.#sql.lastSeal.get();
      const seal = nextSeal(last && toSeal(last), events, this.#clock.nowMs());
      this.#sql.insertSeal.run(seal.n, seal.atMs, seal.count, seal.previous, seal.hash);
      for (const { pk } of rows) this.#sql.setSeal.run(seal.n, pk ?? null);
      return seal;
    });
  }

  async lastSeal(): Promise<Seal | undefined> {
    const row = this.#connection.read(() => this.#sql.lastSeal.get());
    return row && toSeal(row);
  }

  async readTrail<T>(read: (trail: AuditTrail) => Promise<T>): Promise<T> {
    const { path } = this.#connection;
    try {
      return await readSqliteTrail(path, read);
    } catch (error) {
      throw toFault(path, error);
    }
  }

  /** What SQLite itself finds wrong with the file, index by index; empty when nothing is. */
  async findDamage(): Promise<readonly string[]> {
    const rows = this.#connection.read(() => this.#sql.cached("pragma integrity_check(20)").all());
    return rows.map((row) => String(row.integrity_check)).filter((text) => text !== "ok");
  }

  purge(endedBeforeMs: number, limit: number): Promise<number> {
    return this.#connection.write(() => {
      const rows = this.#sql.purgeable.all(endedBeforeMs, limit);
      for (const { tenant, id } of rows) {
        this.#sql.purgeEvents.run(String(tenant), String(id));
        this.#sql.purgeBlobs.run(String(tenant), String(id));
      }
      return rows.length;
    });
  }

  async ping(): Promise<void> {
    await this.#connection.write(() => this.#sql.ping.run());
  }

  async close(): Promise<void> {
    this.#connection.close();
  }
}

function toEvent(key: TaskKey, seq: number, at: number, body: unknown): TaskEvent {
  if (typeof body !== "string") throw new HoldpointError("log-purged", `task ${key.id}: its content was purged`);
  return decodeEvent(key, seq, at, body);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
