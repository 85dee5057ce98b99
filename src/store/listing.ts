/** The listings of both databases: one query each, keyset pages from one index. Built here, run by the store. */
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresQueryCompiler,
  type RawBuilder,
  type SelectQueryBuilder,
  SqliteAdapter,
  SqliteQueryCompiler,
  sql,
} from "kysely";
import { type Digest, REQUEST_KINDS, type RequestKind } from "../task/request.ts";
import type { TaskState } from "../task/task.ts";
import {
  foreignCursor,
  type OpenRequestRow,
  type Page,
  pageSize,
  type RequestQuery,
  type TaskFilter,
  type TaskListRow,
  type TaskQuery,
} from "./store.ts";

interface Tables {
  tasks: {
    pk: number;
    tenant: string;
    id: string;
    agent: string;
    context_id: string;
    state: TaskState;
    version: number;
    created_at: number;
    updated_at: number;
  };
  requests: {
    pk: number;
    tenant: string;
    task_id: string;
    n: number;
    kind: RequestKind;
    agent: string;
    status: string;
    digest: Uint8Array;
    opened_at: number;
    expires_at: number | null;
  };
}

const REQUEST_COLUMNS = ["pk", "task_id", "n", "kind", "agent", "digest", "opened_at", "expires_at"] as const;
const TASK_COLUMNS = ["pk", "id", "agent", "context_id", "state", "version", "created_at", "updated_at"] as const;

type RequestRow = Pick<Tables["requests"], (typeof REQUEST_COLUMNS)[number]>;
type TaskRow = Pick<Tables["tasks"], (typeof TASK_COLUMNS)[number]>;

/** Runs a compiled query and gives its rows. */
export type RunQuery = <T>(query: CompiledQuery<T>) => Promise<readonly T[]> | readonly T[];

type Requests = SelectQueryBuilder<Tables, "requests", RequestRow>;
type Tasks = SelectQueryBuilder<Tables, "tasks", TaskRow>;

/** The values of a query by their names. What is undefined is no part of it. */
type Values = Readonly<Record<string, string | number | undefined>>;

/** The queries for one kind of database; each shape is compiled once. */
export class ListingBuilder {
  readonly #db: Kysely<Tables>;
  readonly #requests: "requests";
  readonly #compiled = new Map<string, CompiledQuery>();

  /** `requests` is a table or a view with the columns of `requests`. */
  constructor(db: Kysely<Tables>, requests: string) {
    this.#db = db;
    this.#requests = requests as "requests";
  }

  withSchema(name: string): ListingBuilder {
    return new ListingBuilder(this.#db.withSchema(name), this.#requests);
  }

  openRequests(): Requests {
    return this.#db
      .selectFrom(this.#requests)
      .select(REQUEST_COLUMNS)
      .where("tenant", "=", slot<string>("tenant"))
      .where("status", "=", sql.lit("open"));
  }

  tasks(): Tasks {
    return this.#db.selectFrom("tasks").select(TASK_COLUMNS).where("tenant", "=", slot<string>("tenant"));
  }

  /** How many rows `tasks` has. */
  count(tasks: Tasks) {
    return this.#db.selectFrom(tasks.as("listed")).select(sql<number>`count(*)`.as("total"));
  }

  /** One query for all of `arms`, in no order. */
  unite(arms: readonly Requests[]) {
    const [first, ...others] = arms.map((arm) => this.#db.selectFrom(arm.as("arm")).selectAll());
    if (!first) throw new Error("there is nothing to unite");
    return others.reduce((all, arm) => all.unionAll(arm), first);
  }

  /** Builds a query with names in place of its values, unless that was done before, and puts the values in. */
  bind<T>(name: string, values: Values, build: () => { compile(): CompiledQuery<T> }): CompiledQuery<T> {
    const used = Object.keys(values).filter((key) => values[key] !== undefined);
    const shape = [name, ...used].join(" ");
    // The rows of a shape are always of the same type.
    const query = (this.#compiled.get(shape) as CompiledQuery<T> | undefined) ?? build().compile();
    this.#compiled.set(shape, query);
    return { ...query, parameters: query.parameters.map((key) => values[String(key)]) };
  }
}

/** Stands where `bind` puts a value. */
function slot<T extends string | number>(name: string) {
  return sql<T>`${name}`;
}

export function createBuilder(dialect: "sqlite" | "postgres"): ListingBuilder {
  const db = new Kysely<Tables>({
    dialect: {
      createAdapter: () => (dialect === "sqlite" ? new SqliteAdapter() : new PostgresAdapter()),
      createQueryCompiler: () => (dialect === "sqlite" ? new SqliteQueryCompiler() : new PostgresQueryCompiler()),
      createDriver: () => new DummyDriver(),
      createIntrospector: () => {
        throw new Error("nothing is introspected");
      },
    },
  });
  return new ListingBuilder(db, dialect === "sqlite" ? "listed_requests" : "requests");
}

/** The place of a page's last row: its sort value and its row number. */
interface Place {
  readonly value: number;
  readonly pk: number;
}

export async function listOpenRequests(
  builder: ListingBuilder,
  run: RunQuery,
  { tenant, agent, kind, limit, cursor }: RequestQuery,
): Promise<Page<OpenRequestRow>> {
  const size = pageSize(limit);
  const after = decodeCursor(cursor);
  const select = (only: RawBuilder<RequestKind>) => {
    let query = builder.openRequests().where("kind", "=", only);
    if (agent !== undefined) query = query.where("agent", "=", slot<string>("agent"));
    if (after) query = query.where(sql<boolean>`(opened_at, pk) > (${slot("value")}, ${slot("pk")})`);
    return query.orderBy("opened_at").orderBy("pk").limit(slot<number>("limit"));
  };
  // One index seek for each kind, merged: an index that leads with the kind serves queries with and without one.
  const found = await run(
    builder.bind("open", { tenant, agent, kind, ...after, limit: size + 1 }, () =>
      kind === undefined
        ? builder.unite(REQUEST_KINDS.map((each) => select(sql.lit(each))))
        : select(slot<RequestKind>("kind")),
    ),
  );
  const rows = found.toSorted((a, b) => a.opened_at - b.opened_at || a.pk - b.pk);
  return toPage(rows, size, toOpenRequest, ({ opened_at, pk }) => ({ value: opened_at, pk }));
}

export async function listByDeadline(
  builder: ListingBuilder,
  run: RunQuery,
  { tenant, limit, cursor }: Omit<RequestQuery, "agent" | "kind">,
): Promise<Page<OpenRequestRow>> {
  const size = pageSize(limit);
  const after = decodeCursor(cursor);
  const rows = await run(
    builder.bind("deadlines", { tenant, ...after, limit: size + 1 }, () => {
      let query = builder.openRequests().where("expires_at", "is not", null);
      if (after) query = query.where(sql<boolean>`(expires_at, pk) > (${slot("value")}, ${slot("pk")})`);
      return query.orderBy("expires_at").orderBy("pk").limit(slot<number>("limit"));
    }),
  );
  return toPage(rows, size, toOpenRequest, ({ expires_at, pk }) => ({ value: expires_at ?? 0, pk }));
}

export async function listTasks(
  builder: ListingBuilder,
  run: RunQuery,
  { limit, cursor, ...filter }: TaskQuery,
): Promise<Page<TaskListRow>> {
  const size = pageSize(limit);
  const after = decodeCursor(cursor);
  const rows = await run(
    builder.bind("tasks", { ...valuesOf(filter), ...after, limit: size + 1 }, () => {
      let query = filterTasks(builder, filter);
      if (after) query = query.where(sql<boolean>`(updated_at, pk) < (${slot("value")}, ${slot("pk")})`);
      return query.orderBy("updated_at", "desc").orderBy("pk", "desc").limit(slot<number>("limit"));
    }),
  );
  return toPage(rows, size, toTaskListRow, ({ updated_at, pk }) => ({ value: updated_at, pk }));
}

export async function countTasks(
  builder: ListingBuilder,
  run: RunQuery,
  filter: TaskFilter,
  max: number,
): Promise<number> {
  const [row] = await run(
    builder.bind("count", { ...valuesOf(filter), limit: max }, () =>
      builder.count(filterTasks(builder, filter).limit(slot<number>("limit"))),
    ),
  );
  return Number(row?.total ?? 0);
}

function valuesOf({ tenant, agent, contextId, state, changedFromMs }: TaskFilter): Values {
  return { tenant, agent, contextId, state, changedFrom: changedFromMs };
}

function filterTasks(builder: ListingBuilder, { agent, contextId, state, changedFromMs }: TaskFilter): Tasks {
  let query = builder.tasks();
  if (agent !== undefined) query = query.where("agent", "=", slot<string>("agent"));
  if (contextId !== undefined) query = query.where("context_id", "=", slot<string>("contextId"));
  if (state !== undefined) query = query.where("state", "=", slot<TaskState>("state"));
  if (changedFromMs !== undefined) query = query.where("updated_at", ">=", slot<number>("changedFrom"));
  return query;
}

function toPage<Row, Item>(
  rows: readonly Row[],
  size: number,
  toItem: (row: Row) => Item,
  placeOf: (row: Row) => Place,
): Page<Item> {
  const shown = rows.slice(0, size);
  const last = shown.at(-1);
  const items = shown.map(toItem);
  return rows.length > size && last ? { items, nextCursor: encodeCursor(placeOf(last)) } : { items };
}

function encodeCursor({ value, pk }: Place): string {
  return Buffer.from(JSON.stringify([value, pk])).toString("base64url");
}

function decodeCursor(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [value, pk] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    if (Number.isSafeInteger(value) && Number.isSafeInteger(pk)) return { value: Number(value), pk: Number(pk) };
  } catch {
    // falls through to the fault below
  }
  throw foreignCursor(cursor);
}

function toOpenRequest(row: RequestRow): OpenRequestRow {
  return {
    taskId: row.task_id,
    n: row.n,
    kind: row.kind,
    agent: row.agent,
    digest: decodeDigest(row.digest),
    openedAtMs: row.opened_at,
    expiresAtMs: row.expires_at,
  };
}

function toTaskListRow(row: TaskRow): TaskListRow {
  return {
    taskId: row.id,
    agent: row.agent,
    contextId: row.context_id,
    state: row.state,
    version: row.version,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
  };
}

/** Digests are kept as their 32 bytes. */
export function encodeDigest(digest: Digest): Buffer {
  return Buffer.from(digest.slice("sha256:".length), "hex");
}

function decodeDigest(bytes: Uint8Array): Digest {
  return `sha256:${Buffer.from(bytes).toString("hex")}`;
}
