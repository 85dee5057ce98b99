/**
 * What we hold of a server over time: a connection that is made when it is needed and again when it was lost, and what
 * the server's tools were a moment ago.
 */
import type { Tool as ListedTool } from "@modelcontextprotocol/client";
import { findJsonProblem, type JsonObject } from "../task/json.ts";
import {
  type CallHow,
  type ConnectionParts,
  type McpConnection,
  type McpTransport,
  openConnection,
} from "./mcp-connection.ts";
import { textOf } from "./mcp-result.ts";
import { SCHEMA_BYTES_MAX, schemaHash } from "./schema.ts";
import type { Finished } from "./tool.ts";

/** A tool as the server describes it now. */
export interface Definition {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** Of all three: another description is another tool. */
  readonly hash: string;
}

export interface Listing {
  readonly tools: ReadonlyMap<string, Definition>;
  /** What is listed and not taken, and why. */
  readonly refused: ReadonlyMap<string, string>;
}

export interface McpLink {
  /** The tools, as they were at most `LISTING_MS_MAX` ago. Throws when the server cannot be asked. */
  listing(): Promise<Listing>;
  /** Never throws. */
  call(definition: Definition, args: JsonObject, how: CallHow): Promise<Finished>;
  close(): Promise<void>;
}

/** How long a list counts, unless the server says that it changed. */
const LISTING_MS_MAX = 2_000;
/** How long a failure counts: a server that is away is not asked by each of a hundred tasks. */
const FAILURE_MS_MAX = 1_000;
const ATTEMPTS_MAX = 2;
const DESCRIPTION_MAX = 16 * 1024;
/** Of the specification; without "/", which separates the server's name from the tool's. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;

interface Live {
  readonly connection: McpConnection;
  calls: number;
  isRetired: boolean;
  list: { readonly atMs: number; readonly changes: number; readonly listing: Listing } | undefined;
}

export function createMcpLink(transport: McpTransport, parts: ConnectionParts): McpLink {
  const all = new Set<Live>();
  let opening: Promise<Live> | undefined;
  let asking: Promise<Listing> | undefined;
  let failure: { readonly atMs: number; readonly error: Error } | undefined;
  let latest: Listing["tools"] = new Map();
  let changes = 0;
  let isClosed = false;

  function fail(text: string): Error {
    failure = { atMs: parts.clock.nowMs(), error: new Error(text) };
    return failure.error;
  }

  async function open(): Promise<Live> {
    if (isClosed) throw new Error("the connection was closed by us");
    if (failure && parts.clock.nowMs() - failure.atMs < FAILURE_MS_MAX) throw failure.error;
    try {
      const connection = await openConnection(transport, parts, () => changes++);
      const live: Live = { connection, calls: 0, isRetired: false, list: undefined };
      all.add(live);
      return live;
    } catch (error) {
      throw fail(textOf(error));
    }
  }

  async function current(): Promise<Live> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      opening ??= open();
      const mine = opening;
      const live = await mine.catch((error: unknown) => {
        if (opening === mine) opening = undefined;
        throw error;
      });
      if (!live.isRetired && !live.connection.isLost()) return live;
      if (opening === mine) opening = undefined;
      await retire(live);
    }
    throw fail("the connection is lost as soon as it is made");
  }

  /** Takes no new work; is closed when the last call on it has ended. */
  async function retire(live: Live): Promise<void> {
    live.isRetired = true;
    if (live.calls > 0) return;
    all.delete(live);
    await live.connection.close();
  }

  async function ask(): Promise<Listing> {
    const live = await current();
    const { list } = live;
    const isFresh = list?.changes === changes && parts.clock.nowMs() - list.atMs < LISTING_MS_MAX;
    if (list && isFresh) return list.listing;
    try {
      return await read(live);
    } catch {
      // Its session may have ended on the other side. Listing has no effect, so it may be repeated.
      await retire(live);
    }
    const next = await current();
    try {
      return await read(next);
    } catch (error) {
      await retire(next);
      throw fail(`it does not list its tools: ${textOf(error)}`);
    }
  }

  async function read(live: Live): Promise<Listing> {
    // Taken before the question: a change that comes in while it is answered makes the answer old at once.
    const asked = { atMs: parts.clock.nowMs(), changes };
    const listing = judge(await live.connection.list(), latest);
    latest = listing.tools;
    live.list = { ...asked, listing };
    return listing;
  }

  return {
    listing() {
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    async call(definition, args, how) {
      let live: Live;
      try {
        live = await current();
      } catch (error) {
        return { outcome: "failed", result: `the call was not sent: ${textOf(error)}` };
      }
      live.calls++;
      try {
        const finished = await live.connection.call(definition.name, definition.inputSchema, args, how);
        // A server that does not answer, or no longer knows us, gets a new connection, and a process its end.
        if (finished.outcome === "unknown") live.isRetired = true;
        return finished;
      } finally {
        live.calls--;
        if (live.isRetired) void retire(live);
      }
    },
    async close() {
      isClosed = true;
      await opening?.catch(() => undefined);
      await Promise.all([...all].map(({ connection }) => connection.close()));
      all.clear();
    },
  };
}

/** A definition that has not changed stays the same object: what was made from it need not be made again. */
function judge(listed: readonly ListedTool[], earlier: Listing["tools"]): Listing {
  const tools = new Map<string, Definition>();
  const refused = new Map<string, string>();
  for (const { name, description = "", inputSchema } of listed) {
    const definition = { name, description, inputSchema: inputSchema as JsonObject };
    const problem = tools.has(name) || refused.has(name) ? "it is listed twice" : findProblem(definition);
    if (problem) {
      tools.delete(name);
      refused.set(textOf(name), problem);
      continue;
    }
    const hash = schemaHash(definition);
    const same = earlier.get(name);
    tools.set(name, same?.hash === hash ? same : { ...definition, hash });
  }
  return { tools, refused };
}

function findProblem({ name, description, inputSchema }: Omit<Definition, "hash">): string | undefined {
  if (!TOOL_NAME.test(name)) return "its name has other characters than letters, digits, _ . -";
  if (description.length > DESCRIPTION_MAX) return `its description is longer than ${DESCRIPTION_MAX} characters`;
  const problem = findJsonProblem({ description, inputSchema }, SCHEMA_BYTES_MAX + DESCRIPTION_MAX * 4);
  return problem && `its definition cannot be taken: ${problem.pointer}: ${problem.text}`;
}
