/** A database to measure on: opened as the product's store, or written bare, without any of the product's code around it. */
import type { Clock } from "../src/ports/clock.ts";
import type { Entry, Store } from "../src/store/store.ts";
import type { TaskKey } from "../src/task/event.ts";
import type { Rows } from "../src/task/rows.ts";
import type { Timing } from "./measure.ts";

export type BedAddress =
  | { readonly kind: "sqlite"; readonly path: string }
  | { readonly kind: "postgres"; readonly url: string };

export interface Bed {
  readonly address: BedAddress;
  open(clock?: Clock): Promise<Store>;
  /** The schema must be there. While a store has it open, SQLite lets the bare one in between two commits. */
  openBare(): Promise<Bare>;
  /** After much was written: what the database would tidy up sooner or later is done. */
  settle(): Promise<void>;
  measureSize(): Promise<Size>;
}

export interface Append {
  readonly key: TaskKey;
  readonly expected: number;
  readonly entries: readonly Entry[];
  readonly rows: Rows;
  /** The task's log is read before: whoever decides does not have it in memory. */
  readonly readsLog?: boolean;
}

/** The same statements with the same values, and nothing else. */
export interface Bare {
  /** Each work is a few appends that follow each other; `atOnce` works are under way together. */
  run(works: readonly (readonly Append[])[], atOnce: number): Promise<Timing>;
  /** Values of a listing of 50, as rows. */
  listOpen(): Promise<void>;
  scanDue(): Promise<void>;
  close(): Promise<void>;
}

export interface Size {
  readonly bytes: number;
  /** The texts and hashes of the log alone. */
  readonly payloadBytes: number;
  /** Rows that belong to tasks: all but seals and settings. */
  readonly rows: number;
  readonly tasks: number;
}

export async function openBed(address: BedAddress): Promise<Bed> {
  // Loaded when needed: a node on SQLite does not carry the client of the other database either.
  if (address.kind === "sqlite") return new (await import("./bed-sqlite.ts")).SqliteBed(address);
  return new (await import("./bed-postgres.ts")).PostgresBed(address);
}

/** A store that keeps what is appended; with `isDry` it only pretends to write it. */
export function keepAppends(store: Store, kept: Append[], isDry: boolean): Store {
  const append: Store["append"] = async (key, expected, entries, rows, fence) => {
    const result = isDry ? "appended" : await store.append(key, expected, entries, rows, fence);
    if (result === "appended") kept.push({ key, expected, entries, rows });
    return result;
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === "append") return append;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
