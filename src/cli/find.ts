/** Finds what an id, or the beginning or the end of one, means. Never "the latest": who decides says about what. */
import { type Client, ClientError, type RequestView, type TaskView } from "../client/client.ts";
import { Ending, EXIT } from "./exit.ts";

const PAGE = 200;
/** Parts of ids are looked for among this many; a whole id is always found. */
const LOOKED_AT_MAX = 1000;
/** An end that is shorter says too little about what is decided: "-1" ends the first request of every task. */
const TAIL_MIN = 7;

export async function findRequest(client: Client, given: string): Promise<RequestView> {
  const found = await tryFindRequest(client, given);
  if (found) return found;
  throw new Ending(EXIT.notFound, `there is no request "${given}"; "npx holdpoint inbox" lists what is open`);
}

export async function tryFindRequest(client: Client, given: string): Promise<RequestView | undefined> {
  const whole = await orUndefined(client.getRequest(given));
  if (whole) return whole;
  const open = await collect(async (cursor) => {
    const { requests, nextCursor } = await client.listRequests({ limit: PAGE, ...cursor });
    return { items: requests.map(({ id }) => id), nextCursor };
  });
  const begun = theOne(
    open.filter((candidate) => begins(candidate, given)),
    given,
  );
  const id = begun ?? (await findByTail(client, given, open)) ?? (await findClosed(client, given));
  // The whole one: lists leave out what is too long for them.
  return id === undefined ? undefined : client.getRequest(id);
}

/** For each id its shortest end that no other has: what a list can show and a person can type. */
export function shortTails(ids: readonly string[]): string[] {
  return ids.map((id) => {
    const others = ids.filter((other) => other !== id);
    let length = TAIL_MIN;
    while (length < id.length && others.some((other) => other.endsWith(id.slice(-length)))) length++;
    return id.slice(-length);
  });
}

export async function findTaskId(client: Client, given: string): Promise<string> {
  const id = await tryFindTaskId(client, given);
  if (id !== undefined) return id;
  throw new Ending(EXIT.notFound, `there is no task "${given}"`);
}

export async function tryFindTaskId(client: Client, given: string): Promise<string | undefined> {
  const whole = await orUndefined(client.getTask(given));
  if (whole) return whole.id;
  return theOne(
    (await taskIds(client)).filter((id) => id.startsWith(given) || endsWithTail(id, given)),
    given,
  );
}

/**
 * Closed requests count too: the end of an id that was shown for one of them must not come to mean another that is open.
 */
async function findByTail(client: Client, given: string, open: readonly string[]): Promise<string | undefined> {
  const [, ofTask, n] = /^(.+)-(\d+)$/.exec(given) ?? [];
  if (given.length < TAIL_MIN || ofTask === undefined) return undefined;
  const tasks = (await taskIds(client)).filter((id) => id.endsWith(ofTask));
  const closed = tasks.map((id) => `input-${id}-${n}`);
  const found = new Set([...open.filter((id) => endsWithTail(id, given)), ...closed]);
  const id = theOne([...found], given);
  return id !== undefined && (await orUndefined(client.getRequest(id))) ? id : undefined;
}

function endsWithTail(id: string, tail: string): boolean {
  return tail.length >= TAIL_MIN && id.endsWith(tail);
}

/** A request that was decided already: told by the beginning of its task's id. */
async function findClosed(client: Client, given: string): Promise<string | undefined> {
  const bare = given.replace(/^input-/, "");
  const tasks = (await taskIds(client)).filter(
    (id) => bare !== "" && (id.startsWith(bare) || bare.startsWith(`${id}-`)),
  );
  if (tasks.length > 1) throw ambiguous(given, tasks);
  const task: TaskView | undefined = tasks[0] === undefined ? undefined : await client.getTask(tasks[0]);
  const ids = task?.requests.map(({ id }) => id).filter((id) => begins(id, given)) ?? [];
  return theOne(ids, given);
}

/** `input-` may be left out. */
function begins(id: string, beginning: string): boolean {
  return beginning !== "" && (id.startsWith(beginning) || id.replace(/^input-/, "").startsWith(beginning));
}

function theOne(ids: readonly string[], given: string): string | undefined {
  if (ids.length > 1) throw ambiguous(given, ids);
  return ids[0];
}

function ambiguous(given: string, ids: readonly string[]): Ending {
  return new Ending(EXIT.notFound, `"${given}" is a part of ${ids.length} ids; say more of it:\n  ${ids.join("\n  ")}`);
}

function taskIds(client: Client): Promise<string[]> {
  return collect(async (cursor) => {
    const { tasks, nextCursor } = await client.listTasks({ limit: PAGE, ...cursor });
    return { items: tasks.map(({ id }) => id), nextCursor };
  });
}

type PageOf<T> = { readonly items: readonly T[]; readonly nextCursor: string | undefined };

export async function collect<T>(read: (cursor: { cursor?: string }) => Promise<PageOf<T>>): Promise<T[]> {
  const all: T[] = [];
  let cursor: { cursor?: string } = {};
  for (;;) {
    const { items, nextCursor } = await read(cursor);
    all.push(...items);
    if (nextCursor === undefined || all.length >= LOOKED_AT_MAX) return all;
    cursor = { cursor: nextCursor };
  }
}

async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) return undefined;
    throw error;
  }
}
