/** What is known outside the database: what tools did and what people were told. On disk before anybody goes on. */
import { existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Ack } from "../../src/testing/checker.ts";
import type { LedgerEntry } from "../../src/testing/ledger.ts";

/** One JSON value for each line; several processes may write the same file. */
class Lines<T> {
  readonly #path: string;
  #file: number | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  write(line: T): void {
    this.#file ??= openSync(this.#path, "a", 0o600);
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
    fsyncSync(this.#file);
  }

  read(): T[] {
    if (!existsSync(this.#path)) return [];
    const lines = readFileSync(this.#path, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }
}

export interface Death {
  readonly point: string;
  readonly when: "before" | "after";
}

export interface Evidence {
  readonly ledger: Lines<LedgerEntry>;
  readonly acks: Lines<Ack>;
  readonly deaths: Lines<Death>;
}

export function openEvidence(folder: string): Evidence {
  const lines = <T>(name: string) => new Lines<T>(join(folder, `${name}.jsonl`));
  return { ledger: lines("ledger"), acks: lines("acks"), deaths: lines("deaths") };
}
