/** The store in memory: for tests and simulation. It keeps the same texts and obeys the same contract as the others. */

import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import { decodeEvent, nameOf, type TaskKey } from "../task/event.ts";
import type { Outcome } from "../task/request.ts";
import type { ClosedRow, EffectRow, OpenedRow, Rows, TaskRow } from "../task/rows.ts";
import { LeaseTable } from "./lease-table.ts";
import { compareText, nextSeal } from "./seal.ts";
import {
  type AppendResult,
  type AuditEntry,
  type AuditTrail,
  type Entry,
  foreignCursor,
  type Lease,
  type OpenRequestRow,
  type Page,
  pageSize,
  type Reading,
  type RequestQuery,
  type Retry,
  type Seal,
  type Store,
  type TaskFilter,
  type TaskListRow,
  type TaskQuery,
} from "./store.ts";
import { StoreClock } from "./store-clock.ts";

interface StoredEvent {
  readonly at: number;
  body: string | null;
  readonly hash: string;
  seal: number | null;
}

interface StoredTask {
  readonly key: TaskKey;
  row: TaskRow;
  retryAtMs: number;
  attempts: number;
  readonly events: StoredEvent[];
  readonly requests: Map<number, OpenedRow & { status: "open" | Outcome }>;
  readonly effects: Map<string, { token: string; status: string }>;
  readonly blobs: Map<string, string>;
}

export class MemoryStore implements Store {
  readonly epoch: string;
  readonly #clock: StoreClock;
  readonly #tasks = new Map<string, StoredTask>();
  readonly #messages = new Map<string, string>();
  readonly #leases = new LeaseTable();
  readonly #seals: Seal[] = [];

  constructor(clock: Pick<Clock, "nowMs">, epoch = "memory") {
    this.#clock = new StoreClock(clock);
    this.epoch = epoch;
  }

  async read(key: TaskKey, version = 0): Promise<Reading> {
    const stored = this.#tasks.get(nameOf(key))?.events ?? [];
    const events = stored.slice(version).map(({ at, body }, i) => {
      if (body === null) throw new HoldpointError("log-purged", `task ${key.id}: its content was purged`);
      return decodeEvent(key, version + i + 1, at, body);
    });
    return { events, head: events.length > 0 ? stored.at(-1)?.hash : undefined, nowMs: this.#clock.nowMs() };
  }

  async append(
    key: TaskKey,
    expected: number,
    entries: readonly Entry[],
    rows: Rows,
    fence?: number,
  ): Promise<AppendResult> {
    const task = this.#tasks.get(nameOf(key));
    if (fence !== undefined && !this.#leases.isHeld({ key, fence })) return "fenced";
    if ((task?.events.length ?? 0) !== expected) return "conflict";
    if (entries.some(({ event }, i) => event.seq !== expected + i + 1)) return "conflict";
    const nowMs = this.#clock.nowMs();
    const taken = entries.some(
      ({ messageKey: name }) => name !== undefined && this.#messages.has(`${key.tenant}\n${name}`),
    );
    if (taken || !rows.closed.every((closed) => isClosable(task, rows, closed, nowMs))) return "conflict";
    if (!rows.effects.every((effect) => isFree(task, rows, effect))) return "conflict";

    const stored = task ?? createStored(key, rows.task);
    this.#tasks.set(nameOf(key), stored);
    for (const { event, body, hash, messageKey: name } of entries) {
      stored.events.push({ at: event.at, body, hash, seal: null });
      if (name !== undefined) this.#messages.set(`${key.tenant}\n${name}`, key.id);
    }
    stored.row = rows.task;
    stored.retryAtMs = 0;
    for (const opened of rows.opened) stored.requests.set(opened.n, { ...opened, status: "open" });
    for (const { n, outcome } of rows.closed) {
      const request = stored.requests.get(n);
      if (request) request.status = outcome;
    }
    for (const effect of rows.effects) {
      stored.effects.set(effect.effectId, {
        token: effect.token,
        status: effect.type === "claimed" ? "claimed" : effect.outcome,
      });
    }
    for (const { sha256, text } of rows.blobs) stored.blobs.set(sha256, text);
    return "appended";
  }

  async findMessage(tenant: string, messageKey: string): Promise<string | undefined> {
    return this.#messages.get(`${tenant}\n${messageKey}`);
  }

  async readVersions(keys: readonly TaskKey[]): Promise<readonly number[]> {
    return keys.map((key) => this.#tasks.get(nameOf(key))?.events.length ?? 0);
  }

  async readBlob(key: TaskKey, sha256: string): Promise<string | undefined> {
    return this.#tasks.get(nameOf(key))?.blobs.get(sha256);
  }

  async readRequestRow(key: TaskKey, n: number): Promise<"open" | Outcome | undefined> {
    return this.#tasks.get(nameOf(key))?.requests.get(n)?.status;
  }

  async claimDue(limit: number, leaseMs: number, working: readonly Lease[]): Promise<readonly Lease[]> {
    const nowMs = this.#clock.nowMs();
    const mine = new Set(working.map(({ key }) => nameOf(key)));
    return [...this.#tasks.values()]
      .filter(({ row: { wakeAtMs }, retryAtMs }) => wakeAtMs !== null && Math.max(wakeAtMs, retryAtMs) <= nowMs)
      .filter(({ key }) => this.#leases.isFree(key, nowMs) && !mine.has(nameOf(key)))
      .sort((a, b) => (a.row.wakeAtMs ?? 0) - (b.row.wakeAtMs ?? 0))
      .slice(0, limit)
      .map(({ key, attempts }) => ({ key, attempts, ...this.#leases.take(key, nowMs + leaseMs) }));
  }

  async renew(working: readonly Lease[], leaseMs: number): Promise<void> {
    this.#leases.renew(working, this.#clock.nowMs() + leaseMs);
  }

  async release({ key, fence }: Lease, retry?: Retry): Promise<void> {
    const task = this.#tasks.get(nameOf(key));
    if (!task || !this.#leases.isHeld({ key, fence })) return;
    this.#leases.release(key);
    task.attempts = retry?.attempts ?? 0;
    task.retryAtMs = retry ? this.#clock.nowMs() + retry.afterMs : 0;
  }

  async listOpenRequests(query: RequestQuery): Promise<Page<OpenRequestRow>> {
    const { agent, kind } = query;
    const rows = this.#openRequests(query.tenant).filter(
      (row) => (agent === undefined || row.agent === agent) && (kind === undefined || row.kind === kind),
    );
    return page(rows, query, ({ openedAtMs, taskId, n }) => [openedAtMs, taskId, n]);
  }

  async listByDeadline(query: Omit<RequestQuery, "agent" | "kind">): Promise<Page<OpenRequestRow>> {
    const rows = this.#openRequests(query.tenant).filter(({ expiresAtMs }) => expiresAtMs !== null);
    return page(rows, query, ({ expiresAtMs, taskId, n }) => [expiresAtMs ?? 0, taskId, n]);
  }

  async listTasks(query: TaskQuery): Promise<Page<TaskListRow>> {
    return page(this.#listed(query), query, ({ updatedAtMs, taskId }) => [-updatedAtMs, taskId, 0]);
  }

  async countTasks(filter: TaskFilter, max: number): Promise<number> {
    return Math.min(this.#listed(filter).length, max);
  }

  #listed({ tenant, agent, contextId, state, changedFromMs }: TaskFilter): TaskListRow[] {
    return [...this.#tasks.values()]
      .filter(({ key }) => key.tenant === tenant)
      .filter(({ row }) => agent === undefined || row.agent === agent)
      .filter(({ row }) => contextId === undefined || row.contextId === contextId)
      .filter(({ row }) => state === undefined || row.state === state)
      .filter(({ row }) => changedFromMs === undefined || row.updatedAtMs >= changedFromMs)
      .map(({ key, row: { wakeAtMs: _wake, ...row }, events }) => ({ taskId: key.id, ...row, version: events.length }));
  }

  #openRequests(tenant: string): OpenRequestRow[] {
    return [...this.#tasks.values()]
      .filter(({ key }) => key.tenant === tenant)
      .flatMap(({ key, requests }) =>
        [...requests.values()].flatMap(({ status, ...row }) => (status === "open" ? [{ taskId: key.id, ...row }] : [])),
      );
  }

  async sealNext(limit: number): Promise<Seal | undefined> {
    const fresh = this.#allEvents()
      .filter(({ seal }) => seal === null)
      .slice(0, limit);
    if (fresh.length === 0) return undefined;
    const seal = nextSeal(this.#seals.at(-1), fresh, this.#clock.nowMs());
    this.#seals.push(seal);
    for (const { key, seq } of fresh) {
      const event = this.#tasks.get(nameOf(key))?.events[seq - 1];
      if (event) event.seal = seal.n;
    }
    return seal;
  }

  async lastSeal(): Promise<Seal | undefined> {
    return this.#seals.at(-1);
  }

  async readTrail<T>(read: (trail: AuditTrail) => Promise<T>): Promise<T> {
    const events = this.#allEvents();
    const seals = [...this.#seals];
    const tasks = this.#sorted().map(({ key, row, events: { length } }) => ({
      key,
      version: length,
      ended: isEnded(row),
    }));
    const sealed = events.filter(({ seal }) => seal !== null).sort((a, b) => (a.seal ?? 0) - (b.seal ?? 0));
    return read({
      scanSeals: () => stream(seals),
      scanEvents: () => stream(events),
      scanSealed: () => stream(sealed),
      scanTasks: () => stream(tasks),
    });
  }

  #allEvents(): AuditEntry[] {
    return this.#sorted().flatMap(({ key, events }) => events.map((event, i) => ({ key, seq: i + 1, ...event })));
  }

  #sorted(): StoredTask[] {
    return [...this.#tasks.values()].sort(
      (a, b) => compareText(a.key.tenant, b.key.tenant) || compareText(a.key.id, b.key.id),
    );
  }

  async purge(endedBeforeMs: number, limit: number): Promise<number> {
    const ended = [...this.#tasks.values()]
      .filter(({ row, events }) => isEnded(row) && row.updatedAtMs < endedBeforeMs && events[0]?.body !== null)
      .slice(0, limit);
    for (const { events, blobs } of ended) {
      for (const event of events) event.body = null;
      blobs.clear();
    }
    return ended.length;
  }

  async ping(): Promise<void> {}
  async close(): Promise<void> {}
}

function createStored(key: TaskKey, row: TaskRow): StoredTask {
  return {
    key,
    row,
    retryAtMs: 0,
    attempts: 0,
    events: [],
    requests: new Map(),
    effects: new Map(),
    blobs: new Map(),
  };
}

/** What the same append has opened or claimed before counts too. */
function isClosable(task: StoredTask | undefined, { opened }: Rows, closed: ClosedRow, nowMs: number): boolean {
  const fresh = opened.find(({ n }) => n === closed.n);
  const request = fresh ? { ...fresh, status: "open" } : task?.requests.get(closed.n);
  if (request?.status !== "open" || request.digest !== closed.digest) return false;
  const passed = request.expiresAtMs !== null && request.expiresAtMs <= nowMs;
  return closed.deadline === "any" || passed === (closed.deadline === "passed");
}

function isFree(task: StoredTask | undefined, { effects }: Rows, effect: EffectRow): boolean {
  const stored = task?.effects.get(effect.effectId);
  if (effect.type === "claimed") return stored === undefined;
  const fresh = effects.some(({ type, effectId, token }) => {
    return type === "claimed" && effectId === effect.effectId && token === effect.token;
  });
  return fresh || (stored?.status === "claimed" && stored.token === effect.token);
}

function isEnded({ state }: TaskRow): boolean {
  return state === "completed" || state === "failed" || state === "canceled" || state === "rejected";
}

type Place = readonly [value: number, taskId: string, n: number];

/** Goes on after the place of the last item, wherever rows have come and gone since. */
function page<T>(rows: readonly T[], query: { limit?: number; cursor?: string }, placeOf: (row: T) => Place): Page<T> {
  const after = decodeCursor(query.cursor);
  const rest = rows
    .map((row) => ({ row, place: placeOf(row) }))
    .filter(({ place }) => after === undefined || comparePlaces(place, after) > 0)
    .sort((a, b) => comparePlaces(a.place, b.place));
  const items = rest.slice(0, pageSize(query.limit));
  const last = items.at(-1);
  return {
    items: items.map(({ row }) => row),
    ...(last && items.length < rest.length ? { nextCursor: JSON.stringify(last.place) } : {}),
  };
}

function decodeCursor(cursor: string | undefined): Place | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [value, taskId, n] = JSON.parse(cursor) as unknown[];
    if (typeof value === "number" && typeof taskId === "string" && typeof n === "number") return [value, taskId, n];
  } catch {
    // falls through to the fault below
  }
  throw foreignCursor(cursor);
}

function comparePlaces(a: Place, b: Place): number {
  return a[0] - b[0] || compareText(a[1], b[1]) || a[2] - b[2];
}

async function* stream<T>(items: readonly T[]): AsyncIterable<T> {
  yield* items;
}
