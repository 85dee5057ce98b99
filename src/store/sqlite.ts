/** The store on SQLite: one process, one writer, group commits that are on disk before they are acknowledged. */
import type { CompiledQuery } from "kysely";
import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { decodeEvent, nameOf, type TaskEvent, type TaskKey } from "../task/event.ts";
import type { Outcome } from "../task/request.ts";
import type { ClosedRow, EffectRow, Rows } from "../task/rows.ts";
import { LeaseTable } from "./lease-table.ts";
import {
  countTasks,
  createBuilder,
  encodeDigest,
  listByDeadline,
  listOpenRequests,
  listTasks,
  type RunQuery,
} from "./listing.ts";
import { nextSeal } from "./seal.ts";
import { SqliteConnection, type Synchronous, toFault, Undo } from "./sqlite-connection.ts";
import { messageHash, prepareStatements, type Statements } from "./sqlite-statements.ts";
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
  Retry,
  Seal,
  Store,
  TaskFilter,
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
  /** There is one writer: what was under way before this was left by one that is gone. */
  readonly #openedAtMs: number;

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
    this.#openedAtMs = this.#clock.nowMs();
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
    const found = sql.readVersion.get(tenant, id);
    if (Number(found?.version ?? 0) !== expected) return "conflict";

    const { task } = rows;
    const version = expected + entries.length;
    let pk = Number(found?.pk);
    if (expected === 0) {
      const { lastInsertRowid } = sql.insertTask.run(
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
      pk = Number(lastInsertRowid);
    } else {
      sql.updateTask.run(task.state, version, task.updatedAtMs, task.wakeAtMs, pk);
    }
    for (const { event, body, hash, messageKey } of entries) {
      const { changes } = sql.insertEvent.run(
        pk,
        event.seq,
        event.at,
        body,
        Buffer.from(hash, "hex"),
        messageKey === undefined ? null : messageHash(tenant, messageKey),
      );
      if (changes !== 1) throw new Undo("conflict");
    }
    for (const { n, kind, agent, digest, openedAtMs, expiresAtMs } of rows.opened) {
      sql.insertRequest.run(pk, n, tenant, kind, agent, encodeDigest(digest), openedAtMs, expiresAtMs);
    }
    for (const closed of rows.closed) this.#closeRequest(pk, closed);
    for (const effect of rows.effects) this.#writeEffect(pk, effect);
    for (const { sha256, text } of rows.blobs) sql.insertBlob.run(pk, sha256, text);
    return "appended";
  }

  /** The second gate, beside the version of the log. */
  #closeRequest(pk: number, { n, outcome, digest, deadline }: ClosedRow): void {
    const { changes } = this.#sql.closeRequest.run(outcome, pk, n, encodeDigest(digest), deadline, this.#clock.nowMs());
    if (changes !== 1) throw new Undo("conflict");
  }

  #writeEffect(pk: number, effect: EffectRow): void {
    const { changes } =
      effect.type === "claimed"
        ? this.#sql.insertEffect.run(pk, effect.effectId, effect.token, encodeDigest(effect.digest))
        : this.#sql.endEffect.run(effect.outcome, pk, effect.effectId, effect.token);
    if (changes !== 1) throw new Undo("conflict");
  }

  async findMessage(tenant: string, messageKey: string): Promise<string | undefined> {
    const hash = messageHash(tenant, messageKey);
    return text(this.#connection.read(() => this.#sql.findMessage.get(hash, tenant))?.id);
  }

  async readVersions(keys: readonly TaskKey[]): Promise<readonly number[]> {
    const { readVersion } = this.#sql;
    return this.#connection.read(() => keys.map(({ tenant, id }) => Number(readVersion.get(tenant, id)?.version ?? 0)));
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
      .read(() => this.#sql.dueTasks.all(nowMs, limit + this.#leases.size, this.#openedAtMs))
      .map(({ tenant, id, attempts, is_left }) => ({
        key: { tenant: String(tenant), id: String(id) },
        attempts: Number(attempts),
        isLeft: is_left === 1,
      }))
      .filter(({ key }) => this.#leases.isFree(key, nowMs) && !mine.has(nameOf(key)))
      .slice(0, limit)
      .map(({ key, attempts, isLeft }) => {
        const { fence, abandoned } = this.#leases.take(key, nowMs + leaseMs);
        return { key, attempts, fence, abandoned: abandoned || isLeft };
      });
  }

  async renew(working: readonly Lease[], leaseMs: number): Promise<void> {
    this.#leases.renew(working, this.#clock.nowMs() + leaseMs);
  }

  async release({ key, fence, attempts }: Lease, retry?: Retry): Promise<void> {
    if (!this.#leases.isHeld({ key, fence })) return;
    const { tenant, id } = key;
    if (retry) {
      const retryAtMs = this.#clock.nowMs() + retry.afterMs;
      await this.#connection.write(() => this.#sql.retryTask.run(retry.attempts, retryAtMs, tenant, id));
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

  async countTasks(filter: TaskFilter, max: number): Promise<number> {
    return countTasks(builder, this.#run, filter, max);
  }

  sealNext(limit: number): Promise<Seal | undefined> {
    return this.#connection.write(() => {
      const rows = this.#sql.unsealedEvents.all(Number(this.#sql.lastSealedEvent.get()?.pk), limit);
      if (rows.length === 0) return undefined;
      const events = rows.map(({ tenant, task_id, seq, at, hash }) => ({
        key: { tenant: String(tenant), id: String(task_id) },
        seq: Number(seq),
        at: Number(at),
        hash: toHex(hash),
      }));
      const last = this.#sql.lastSeal.get();
      const lastEvent = Math.max(...rows.map(({ pk }) => Number(pk)));
      const seal = nextSeal(last && toSeal(last), events, this.#clock.nowMs());
      this.#sql.insertSeal.run(seal.n, seal.atMs, seal.count, seal.previous, seal.hash, lastEvent);
      this.#sql.setNewestSeal.run(seal.n, lastEvent);
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
      for (const { pk = null } of rows) {
        this.#sql.purgeEvents.run(pk);
        this.#sql.purgeBlobs.run(pk);
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
