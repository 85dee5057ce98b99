/**
 * One connection to one SQLite file: opened with the durability we promise, migrated, and written in groups.
 *
 * S1  `synchronous` is FULL or more on every connection that writes, read back after it was set.
 * S2  A promise of `write` resolves only after the COMMIT that holds its work.
 * S3  Nothing awaits inside a transaction: a batch is one synchronous stretch.
 */
import { DatabaseSync as Database, type DatabaseSync, type StatementSync } from "node:sqlite";
import { HoldpointError, isFault } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import { fileExists, makePrivateFile } from "../ports/files.ts";
import type { Ids } from "../ports/ids.ts";
import { lockWriter, type WriterLock } from "./sqlite-lock.ts";
import { SQLITE_MIGRATIONS } from "./sqlite-schema.ts";

/** How many appends share one commit at most; bounds how long the event loop is held. */
const BATCH_MAX = 128;
const SCHEMA_VERSION = SQLITE_MIGRATIONS.at(-1)?.version ?? 0;
/** Before this, a WAL reset could corrupt the file. */
const SQLITE_VERSION_MIN = "3.51.3";

export type Synchronous = "full" | "normal";

interface Work {
  run(): unknown;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Thrown inside a work to undo it and still answer with a result. */
export class Undo {
  readonly result: unknown;
  constructor(result: unknown) {
    this.result = result;
  }
}

export class SqliteConnection {
  readonly db: DatabaseSync;
  readonly path: string;
  readonly epoch: string;
  readonly #lock: WriterLock | undefined;
  readonly #clock: Clock;
  readonly #sql: Record<"begin" | "commit" | "savepoint" | "release", StatementSync>;
  #queue: Work[] = [];
  #flushing = false;

  /** `synchronous: "normal"` exists for measuring beside peers; a server never asks for it. */
  static open(path: string, clock: Clock, ids: Ids, synchronous: Synchronous = "full"): SqliteConnection {
    translate(path, () => makePrivateFile(path));
    const lock = translate(`${path}.lock`, () => lockWriter(path));
    let db: DatabaseSync | undefined;
    try {
      const opened = translate(path, () => new Database(path, { timeout: 5000 }));
      db = opened;
      const epoch = translate(path, () => {
        checkVersion(opened);
        opened.exec(`pragma journal_mode = wal; pragma synchronous = ${synchronous}; pragma foreign_keys = on`);
        requireDurable(opened, path, synchronous);
        return migrate(opened, path, ids);
      });
      return new SqliteConnection(opened, path, epoch, clock, lock);
    } catch (error) {
      db?.close();
      lock.release();
      throw error;
    }
  }

  /** For looking at a database that a server may be writing. */
  static openReadOnly(path: string, clock: Clock): SqliteConnection {
    if (!fileExists(path)) throw new HoldpointError("store-unavailable", `${path}: there is no such database`);
    const db = translate(path, () => new Database(path, { readOnly: true, timeout: 5000 }));
    const epoch = translate(path, () => {
      requireOurs(db, path);
      if (!db.prepare("select 1 from sqlite_schema where name = 'meta'").get()) {
        throw new HoldpointError("store-unavailable", `${path} is empty; no server has been started on it yet`);
      }
      requireKnownSchema(readMeta(db), path);
      return readMeta(db).get("epoch") ?? "";
    });
    return new SqliteConnection(db, path, epoch, clock, undefined);
  }

  private constructor(db: DatabaseSync, path: string, epoch: string, clock: Clock, lock: WriterLock | undefined) {
    this.db = db;
    this.path = path;
    this.epoch = epoch;
    this.#clock = clock;
    this.#lock = lock;
    this.#sql = {
      begin: db.prepare("begin immediate"),
      commit: db.prepare("commit"),
      savepoint: db.prepare("savepoint work"),
      release: db.prepare("release work"),
    };
  }

  /** Runs `run` inside the next group commit; what is gathered while the loop turns shares one fsync. */
  write<T>(run: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ run, resolve: resolve as (value: unknown) => void, reject });
      if (!this.#flushing) void this.#flush();
    });
  }

  read<T>(run: () => T): T {
    return translate(this.path, run);
  }

  close(): void {
    if (this.db.isOpen) this.db.close();
    this.#lock?.release();
  }

  async #flush(): Promise<void> {
    this.#flushing = true;
    while (this.#queue.length > 0) {
      await this.#clock.turn();
      const batch = this.#queue.slice(0, BATCH_MAX);
      this.#queue = this.#queue.slice(BATCH_MAX);
      this.#commit(batch);
    }
    this.#flushing = false;
  }

  /**
   * All works of a batch run bare; they depend on nothing but the database, so when one must be undone the whole batch
   * is rolled back and run again with a savepoint around each.
   */
  #commit(batch: readonly Work[]): void {
    const { begin, commit } = this.#sql;
    for (const attempt of [this.#bare, this.#guarded]) {
      const answers: (() => void)[] = [];
      try {
        begin.run();
        for (const work of batch) answers.push(attempt(work));
        commit.run();
      } catch (error) {
        this.#rollback();
        if (attempt === this.#bare) continue;
        const fault = toFault(this.path, error);
        for (const { reject } of batch) reject(fault);
        return;
      }
      for (const answer of answers) answer();
      return;
    }
  }

  /** If even this fails there is nothing more to undo; the next batch finds out whether the database is there. */
  #rollback(): void {
    try {
      if (this.db.isOpen && this.db.isTransaction) this.db.exec("rollback");
    } catch {
      // told by the batch itself
    }
  }

  #bare = ({ run, resolve }: Work): (() => void) => {
    const result = run();
    return () => resolve(result);
  };

  #guarded = ({ run, resolve, reject }: Work): (() => void) => {
    const { savepoint, release } = this.#sql;
    savepoint.run();
    try {
      const result = run();
      release.run();
      return () => resolve(result);
    } catch (error) {
      // A full disk may have ended the whole transaction; then every work of the batch has failed.
      if (!this.db.isTransaction) throw error;
      this.db.exec("rollback to work; release work");
      if (error instanceof Undo) return () => resolve(error.result);
      const fault = toFault(this.path, error);
      return () => reject(fault);
    }
  };
}

function checkVersion(db: DatabaseSync): void {
  const { version } = db.prepare("select sqlite_version() as version").get() as { version: string };
  const [have, need] = [version, SQLITE_VERSION_MIN].map((text) => text.split(".").map(Number));
  const difference = (have ?? []).map((part, i) => part - (need?.[i] ?? 0)).find((part) => part !== 0) ?? 0;
  if (difference < 0) {
    throw new HoldpointError(
      "store-not-durable",
      `SQLite ${version} can corrupt a database in WAL mode; ${SQLITE_VERSION_MIN} or newer is needed. Use a newer Node.`,
    );
  }
}

/** S1. A file system without WAL, or a build with other defaults, must not be taken for durable. */
function requireDurable(db: DatabaseSync, path: string, asked: Synchronous): void {
  const mode = db.prepare("pragma journal_mode").get()?.journal_mode;
  const level = Number(db.prepare("pragma synchronous").get()?.synchronous);
  if (mode !== "wal" || level < (asked === "full" ? 2 : 1)) {
    throw new HoldpointError(
      "store-not-durable",
      `${path}: journal_mode is ${mode} and synchronous is ${level}, not wal and 2 (FULL). Put the data folder on a local disk.`,
    );
  }
}

function migrate(db: DatabaseSync, path: string, ids: Ids): string {
  db.exec("begin immediate");
  try {
    requireOurs(db, path);
    db.exec("create table if not exists meta (key text primary key, value text not null) strict, without rowid");
    const meta = readMeta(db);
    requireKnownSchema(meta, path);
    const from = Number(meta.get("schema") ?? 0);
    const put = db.prepare("insert into meta values (?, ?) on conflict do update set value = excluded.value");
    for (const { version, minReader, sql } of SQLITE_MIGRATIONS) {
      if (version <= from) continue;
      db.exec(sql);
      put.run("schema", String(version));
      put.run("min_reader", String(minReader));
    }
    if (!meta.has("epoch")) put.run("epoch", ids.token());
    db.exec("commit");
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    throw error;
  }
  return readMeta(db).get("epoch") ?? "";
}

/** Somebody else's database is neither filled with our tables nor read as if they were there. */
function requireOurs(db: DatabaseSync, path: string): void {
  const names = db.prepare("select name from sqlite_schema where type = 'table'").all();
  if (names.length === 0 || names.some(({ name }) => name === "meta")) return;
  const text = `${path} is the database of another program; choose another folder with --data. It was not touched`;
  throw new HoldpointError("store-corrupt", text);
}

function readMeta(db: DatabaseSync): Map<string, string> {
  const rows = db.prepare("select key, value from meta").all() as { key: string; value: string }[];
  return new Map(rows.map(({ key, value }) => [key, value]));
}

function requireKnownSchema(meta: ReadonlyMap<string, string>, path: string): void {
  const needed = Number(meta.get("min_reader") ?? 0);
  if (needed > SCHEMA_VERSION) {
    throw new HoldpointError(
      "store-newer",
      `${path} has schema ${meta.get("schema")}, written by a newer Holdpoint; this one reads up to ${SCHEMA_VERSION}. Upgrade Holdpoint; the file was not touched.`,
    );
  }
}

function translate<T>(path: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof Undo ? error : toFault(path, error);
  }
}

/** SQLite's primary result codes, and those of the file system, in our words. */
export function toFault(path: string, cause: unknown): unknown {
  if (isFault(cause) || !(cause instanceof Error)) return cause;
  const code = "errcode" in cause ? Number(cause.errcode) & 0xff : "code" in cause ? cause.code : undefined;
  const say = (fault: ConstructorParameters<typeof HoldpointError>[0], text: string) =>
    new HoldpointError(fault, `${path}: ${text} (${cause.message})`, { cause });
  switch (code) {
    case 5:
    case 6:
      return say("store-unavailable", "another program holds the database; close it and try again");
    case 8:
    case 14:
    case 23:
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return say("store-read-only", "the database cannot be written; check the rights of the file and its folder");
    case 11:
    case 26:
      return say("store-corrupt", "the file is damaged or is no Holdpoint database; restore a backup or move it away");
    case 13:
    case "ENOSPC":
    case "EDQUOT":
      return say("store-full", "the disk is full; nothing was changed. Free some space and try again");
    case 10:
      return say(
        "store-unavailable",
        "the disk reported an error; whether the last change was kept is not known, ask again",
      );
    case "ERR_INVALID_STATE":
      return say("store-unavailable", "the database has been closed");
    case "ENOENT":
    case "ENOTDIR":
    case "EISDIR":
      return say("store-unavailable", "there is no such folder, or no file can stand there");
    default:
      return cause;
  }
}
