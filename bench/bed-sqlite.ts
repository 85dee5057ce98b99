/** SQLite as the product opens it, and the same statements bare. */
import { DatabaseSync } from "node:sqlite";
import { type Clock, systemClock } from "../src/ports/clock.ts";
import { systemIds } from "../src/ports/ids.ts";
import { encodeDigest } from "../src/store/listing.ts";
import { SqliteStore } from "../src/store/sqlite.ts";
import { messageHash, prepareStatements, type Statements } from "../src/store/sqlite-statements.ts";
import type { Store } from "../src/store/store.ts";
import type { Append, Bare, Bed, BedAddress, Size } from "./bed.ts";
import type { Timing } from "./measure.ts";
import { TENANT } from "./workload.ts";

export class SqliteBed implements Bed {
  readonly address: BedAddress & { kind: "sqlite" };

  constructor(address: BedAddress & { kind: "sqlite" }) {
    this.address = address;
  }

  async open(clock: Clock = systemClock): Promise<Store> {
    return SqliteStore.open({ path: this.address.path, clock, ids: systemIds });
  }

  async openBare(): Promise<Bare> {
    return new SqliteBare(openFull(this.address.path));
  }

  async settle(): Promise<void> {
    const db = openFull(this.address.path);
    db.exec("pragma wal_checkpoint(truncate)");
    db.close();
  }

  async measureSize(): Promise<Size> {
    const db = openFull(this.address.path);
    db.exec("pragma wal_checkpoint(truncate)");
    const number = (sql: string) => Number(Object.values(db.prepare(sql).get() ?? {})[0]);
    const tables = ["tasks", "events", "requests", "effects", "blobs"];
    const size = {
      bytes: number("pragma page_count") * number("pragma page_size"),
      payloadBytes: number("select sum(length(cast(body as blob)) + length(hash)) from events"),
      rows: tables.reduce((sum, table) => sum + number(`select count(*) from ${table}`), 0),
      tasks: number("select count(*) from tasks"),
    };
    db.close();
    return size;
  }
}

function openFull(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 5000 });
  db.exec("pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on");
  return db;
}

type Write = () => unknown;

class SqliteBare implements Bare {
  readonly #db: DatabaseSync;
  readonly #sql: Statements;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#sql = prepareStatements(db);
  }

  /** Groups of `atOnce`; the first append of each work shares a commit, then the second of each, and so on. */
  async run(works: readonly (readonly Append[])[], atOnce: number): Promise<Timing> {
    const groups: Write[][][] = [];
    for (let i = 0; i < works.length; i += atOnce) groups.push(this.#bind(works.slice(i, i + atOnce)));
    const durationsMs: number[] = [];
    const startMs = performance.now();
    for (const [i, group] of groups.entries()) {
      const beganMs = performance.now();
      for (const writes of group) {
        this.#db.exec("begin immediate");
        for (const write of writes) write();
        this.#db.exec("commit");
      }
      const tookMs = performance.now() - beganMs;
      for (const _ of works.slice(i * atOnce, (i + 1) * atOnce)) durationsMs.push(tookMs);
    }
    return { durationsMs, wallMs: performance.now() - startMs };
  }

  /** All values are made before the clock starts. */
  #bind(works: readonly (readonly Append[])[]): Write[][] {
    const steps = Math.max(...works.map(({ length }) => length));
    return Array.from({ length: steps }, (_, step) =>
      works.flatMap((work) => {
        const append = work[step];
        return append ? this.#writesOf(append) : [];
      }),
    );
  }

  #writesOf({ key: { tenant, id }, expected, entries, rows, readsLog }: Append): Write[] {
    const sql = this.#sql;
    const { task } = rows;
    const version = expected + entries.length;
    const { agent, contextId, state, createdAtMs, updatedAtMs, wakeAtMs } = task;
    let pk: number | bigint = 0;
    const insertTask = () =>
      sql.insertTask.run(tenant, id, agent, contextId, state, version, createdAtMs, updatedAtMs, wakeAtMs);
    return [
      ...(readsLog ? [() => sql.readEvents.all(tenant, id, 0)] : []),
      () => {
        pk = Number(sql.readVersion.get(tenant, id)?.pk);
      },
      expected === 0
        ? () => {
            pk = insertTask().lastInsertRowid;
          }
        : () => sql.updateTask.run(state, version, updatedAtMs, wakeAtMs, pk),
      ...entries.map(({ event: { seq, at }, body, hash, messageKey }) => {
        const bytes = Buffer.from(hash, "hex");
        const message = messageKey === undefined ? null : messageHash(tenant, messageKey);
        return () => mustChange(sql.insertEvent.run(pk, seq, at, body, bytes, message));
      }),
      ...rows.opened.map(({ n, kind, agent, digest, openedAtMs, expiresAtMs }) => {
        const bytes = encodeDigest(digest);
        return () => sql.insertRequest.run(pk, n, tenant, kind, agent, bytes, openedAtMs, expiresAtMs);
      }),
      ...rows.closed.map(({ n, outcome, digest, deadline }) => {
        const bytes = encodeDigest(digest);
        return () => mustChange(sql.closeRequest.run(outcome, pk, n, bytes, deadline, updatedAtMs));
      }),
      ...rows.effects.map((effect) => {
        const { effectId, token } = effect;
        if (effect.type === "ended") return () => sql.endEffect.run(effect.outcome, pk, effectId, token);
        const bytes = encodeDigest(effect.digest);
        return () => sql.insertEffect.run(pk, effectId, token, bytes);
      }),
    ];
  }

  async listOpen(): Promise<void> {
    this.#sql
      .cached(
        "select * from listed_requests where tenant = ? and status = 'open' and kind = 'approval' order by opened_at, pk limit 51",
      )
      .all(TENANT);
  }

  async scanDue(): Promise<void> {
    this.#sql.dueTasks.all(1, 64);
  }

  async close(): Promise<void> {
    this.#db.close();
  }
}

/** A floor that writes nothing would be a lie. */
function mustChange({ changes }: { changes: number | bigint }): void {
  if (Number(changes) !== 1) throw new Error("a bare statement has changed nothing");
}
