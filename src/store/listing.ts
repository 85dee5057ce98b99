/** The listings of both databases: one query each, keyset pages from one index. Built here, run by the store. */
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresQueryCompiler,
  type SelectQueryBuilder,
  SqliteAdapter,
  SqliteQueryCompiler,
  sql,
} from "kysely";
import { HoldpointError } from "../errors.ts";
import { type Digest, REQUEST_KINDS, type RequestKind } from "../task/request.ts";
import type { TaskState } from "../task/task.ts";
import {
  type OpenRequestRow,
  type Page,
  pageSize,
  type RequestQuery,
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

type RequestRow = Tables["requests"];
type TaskRow = Tables["tasks"];

/** Runs a compiled query and gives its rows. */
export type RunQuery = <T>(query: CompiledQuery<T>) => Promise<readonly T[]> | readonly T[];

export function createBuilder(dialect: "sqlite" | "postgres"): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: {
      createAdapter: () => (dialect === "sqlite" ? new SqliteAdapter() : new PostgresAdapter()),
      createQueryCompiler: () => (dialect === "sqlite" ? new SqliteQueryCompiler() : new PostgresQueryCompiler()),
      createDriver: () => new DummyDriver(),
      createIntrospector: () => {
        throw new Error("nothing is introspected");
      },
    },
  });
}

/** The place of a page's last row: its sort value and its row number. */
interface Place {
  readonly value: number;
  readonly pk: number;
}

type Requests = SelectQueryBuilder<Tables, "requests", RequestRow>;

export async function listOpenRequests(
  db: Kysely<Tables>,
  run: RunQuery,
  query: RequestQuery,
): Promise<Page<OpenRequestRow>> {
  const size = pageSize(query.limit);
  const after = decodeCursor(query.cursor);
  // One index seek for each kind, merged: an index that leads with the kind serves queries with and without one.
  const kinds = query.kind === undefined ? REQUEST_KINDS : [query.kind];
  const pages = await Promise.all(
    kinds.map((kind) => {
      let select: Requests = db
        .selectFrom("requests")
        .selectAll()
        .where("tenant", "=", query.tenant)
        .where("status", "=", sql.lit("open"))
        .where("kind", "=", kind);
      if (query.agent !== undefined) select = select.where("agent", "=", query.agent);
      if (after) select = select.where(sql<boolean>`(opened_at, pk) > (${after.value}, ${after.pk})`);
      return run(
        select
          .orderBy("opened_at")
          .orderBy("pk")
          .limit(size + 1)
          .compile(),
      );
    }),
  );
  const rows = pages.flat().sort((a, b) => a.opened_at - b.opened_at || a.pk - b.pk);
  return toPage(rows, size, toOpenRequest, ({ opened_at, pk }) => ({ value: opened_at, pk }));
}

export async function listByDeadline(
  db: Kysely<Tables>,
  run: RunQuery,
  query: Omit<RequestQuery, "agent" | "kind">,
): Promise<Page<OpenRequestRow>> {
  const size = pageSize(query.limit);
  const after = decodeCursor(query.cursor);
  let select: Requests = db
    .selectFrom("requests")
    .selectAll()
    .where("tenant", "=", query.tenant)
    .where("status", "=", sql.lit("open"))
    .where("expires_at", "is not", null);
  if (after) select = select.where(sql<boolean>`(expires_at, pk) > (${after.value}, ${after.pk})`);
  const rows = await run(
    select
      .orderBy("expires_at")
      .orderBy("pk")
      .limit(size + 1)
      .compile(),
  );
  return toPage(rows, size, toOpenRequest, ({ expires_at, pk }) => ({ value: expires_at ?? 0, pk }));
}

export async function listTasks(db: Kysely<Tables>, run: RunQuery, query: TaskQuery): Promise<Page<TaskListRow>> {
  const size = pageSize(query.limit);
  const after = decodeCursor(query.cursor);
  let select: SelectQueryBuilder<Tables, "tasks", TaskRow> = db
    .selectFrom("tasks")
    .selectAll()
    .where("tenant", "=", query.tenant);
  if (query.contextId !== undefined) select = select.where("context_id", "=", query.contextId);
  if (query.state !== undefined) select = select.where("state", "=", query.state);
  if (after) select = select.where(sql<boolean>`(updated_at, pk) < (${after.value}, ${after.pk})`);
  const rows = await run(
    select
      .orderBy("updated_at", "desc")
      .orderBy("pk", "desc")
      .limit(size + 1)
      .compile(),
  );
  return toPage(rows, size, toTaskListRow, ({ updated_at, pk }) => ({ value: updated_at, pk }));
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
  throw new HoldpointError(
    "usage-invalid",
    `the cursor "${cursor.slice(0, 40)}" is not one of ours; start without one`,
  );
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
