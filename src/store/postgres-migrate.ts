/** Brings a PostgreSQL database to our schema. Any number of servers may start at once; one migrates, the others wait. */
import { HoldpointError } from "../errors.ts";
import type { Ids } from "../ports/ids.ts";
import type { PostgresConnection, Run } from "./postgres-connection.ts";
import { POSTGRES_MIGRATIONS } from "./postgres-schema.ts";
import { LOCKS } from "./postgres-statements.ts";

const SCHEMA_VERSION = POSTGRES_MIGRATIONS.at(-1)?.version ?? 0;
/** A step may rewrite a large table, and the others wait for it. */
const MIGRATION_MAX_MS = 600_000;

/** Answers the epoch of the database. */
export function migrate(connection: PostgresConnection, ids: Ids): Promise<string> {
  return connection.transaction(async (runShort) => {
    const run: Run = (statement, values) => runShort({ ...statement, query_timeout: MIGRATION_MAX_MS }, values);
    await run({ text: `set local statement_timeout = ${MIGRATION_MAX_MS}` });
    await run({ text: `set local lock_timeout = ${MIGRATION_MAX_MS}` });
    await run({ text: `select pg_advisory_xact_lock(${LOCKS.migrate})` });

    // Nothing is created before it is missed: a role without the right to create may use what an owner has made.
    const meta = await readMeta(run);
    requireKnownSchema(meta, connection.place);
    if (!meta.has("schema")) await createMeta(run);
    const from = Number(meta.get("schema") ?? 0);
    for (const { version, minReader, sql } of POSTGRES_MIGRATIONS) {
      if (version <= from) continue;
      await run({ text: sql });
      await put(run, "schema", String(version));
      await put(run, "min_reader", String(minReader));
    }
    const epoch = meta.get("epoch") ?? ids.token();
    if (!meta.has("epoch")) await put(run, "epoch", epoch);
    return epoch;
  });
}

async function readMeta(run: Run): Promise<ReadonlyMap<string, string>> {
  const [found] = await run<{ exists: boolean }>({
    text: "select to_regclass('holdpoint.meta') is not null as exists",
  });
  if (!found?.exists) return new Map();
  const rows = await run<{ key: string; value: string }>({ text: "select key, value from holdpoint.meta" });
  return new Map(rows.map(({ key, value }) => [key, value]));
}

async function createMeta(run: Run): Promise<void> {
  await run({ text: "create schema if not exists holdpoint" });
  await run({ text: "create table if not exists holdpoint.meta (key text primary key, value text not null)" });
}

async function put(run: Run, key: string, value: string): Promise<void> {
  const text = "insert into holdpoint.meta values ($1, $2) on conflict (key) do update set value = excluded.value";
  await run({ text }, [key, value]);
}

function requireKnownSchema(meta: ReadonlyMap<string, string>, place: string): void {
  if (Number(meta.get("min_reader") ?? 0) <= SCHEMA_VERSION) return;
  throw new HoldpointError(
    "store-newer",
    `${place} has schema ${meta.get("schema")}, written by a newer Holdpoint; this one reads up to ${SCHEMA_VERSION}. Upgrade Holdpoint; the database was not touched.`,
  );
}
