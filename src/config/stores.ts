/** The `session_stores` section, and the one store that a server has. */
import { resolve } from "node:path";
import type { StoreConfig } from "./config.ts";
import { type Entry, readType, Section } from "./section.ts";
import { placeOf, type Report, type Span } from "./source.ts";
import { readUrl } from "./url.ts";

const STORE_KEYS = {
  type: {},
  database: { only: ["sqlite"] },
  url: { only: ["postgres"] },
} as const;

export interface ReadStore {
  readonly config: StoreConfig;
  readonly nameSpan: Span;
}

export function readStore(entry: Entry, folder: string, report: Report): ReadStore | undefined {
  const { key: name, keySpan: nameSpan } = entry;
  const what = `session store "${name}"`;
  const type = readType(entry, ["sqlite", "postgres"], what, report);
  const store = new Section(entry.value, nameSpan, { keys: STORE_KEYS, what, kind: type }, report);
  if (type === "sqlite") {
    store.require("database", ": the path of the file");
    const database = store.text("database");
    return database === undefined
      ? undefined
      : { nameSpan, config: { name, type, database: resolve(folder, database) } };
  }
  if (type === "postgres") {
    store.require("url");
    const url = readUrl(store, "url", ["postgres", "postgresql"]);
    return url === undefined ? undefined : { nameSpan, config: { name, type, url } };
  }
  return undefined;
}

/** Where an agent names a store. */
export interface StoreUse {
  readonly agent: string;
  readonly store: string;
  readonly span: Span;
}

/** One server, one store: the one its agents name. */
export function chooseStore(
  uses: readonly StoreUse[],
  stores: ReadonlyMap<string, ReadStore>,
  report: Report,
): StoreConfig | undefined {
  const [first] = uses;
  for (const { agent, store, span } of uses) {
    if (!first || store === first.store) continue;
    const other = `agent "${first.agent}" uses "${first.store}" (line ${placeOf(first.span).line})`;
    report.error(span, `one server has one store: ${other}, agent "${agent}" uses "${store}"`);
  }
  for (const [name, { nameSpan }] of stores) {
    if (uses.some(({ store }) => store === name)) continue;
    report.warn(nameSpan, `no agent names the session store "${name}"`, { consequence: "It is not used." });
  }
  return first && stores.get(first.store)?.config;
}
