/**
 * One writer for one database. The lock is SQLite's own, on a small file beside the database: the operating system
 * drops it with the process, however that ends, so a restart after SIGKILL finds it free.
 */
import { DatabaseSync } from "node:sqlite";
import { HoldpointError } from "../errors.ts";
import { makePrivateFile } from "../ports/files.ts";

export interface WriterLock {
  release(): void;
}

export function lockWriter(path: string): WriterLock {
  const file = `${path}.lock`;
  makePrivateFile(file);
  const db = new DatabaseSync(file, { timeout: 0 });
  try {
    db.exec("begin immediate");
    // From here on only those are in the way who look up the holder, and for a moment.
    db.exec("pragma busy_timeout = 1000; create table if not exists holder (pid integer); delete from holder");
    db.prepare("insert into holder values (?)").run(process.pid);
    db.exec("commit; begin immediate");
  } catch (cause) {
    const pid = holderOf(db);
    db.close();
    // Anything but a lock, such as a full disk, is not somebody else.
    if (!isBusy(cause)) throw cause;
    throw new HoldpointError(
      "store-locked",
      `${path} is in use by another Holdpoint${pid ? ` (process ${pid})` : ""}. Stop it, or choose another folder with --data.`,
      { cause },
    );
  }
  return { release: () => db.close() };
}

const SQLITE_BUSY = 5;

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}

function holderOf(db: DatabaseSync): number | undefined {
  try {
    const row = db.prepare("select pid from holder").get();
    return typeof row?.pid === "number" ? row.pid : undefined;
  } catch {
    return undefined; // the holder is just writing it
  }
}
