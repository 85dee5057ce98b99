/** One connection to an MCP server: a client object of its own, bounded lists, calls that say what became of them. */
import {
  type CallToolRequestOptions,
  Client,
  isJSONRPCRequest,
  type Tool as ListedTool,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import type { McpConfig } from "../config/config.ts";
import type { Clock } from "../ports/clock.ts";
import type { Fetch } from "../ports/network.ts";
import type { JsonObject } from "../task/json.ts";
import { createBoundedFetch, withHeaders } from "./mcp-http.ts";
import { ANSWER_LOST, finishedFrom, finishedWithout } from "./mcp-result.ts";
import { createRedaction, secretsOf } from "./mcp-secrets.ts";
import { StdioTransport } from "./mcp-stdio.ts";
import type { Finished } from "./tool.ts";

export type McpTransport = McpConfig["transport"];

export interface ConnectionParts {
  readonly clock: Clock;
  readonly network: Fetch;
}

export interface McpConnection {
  /** All tools of the server, as it describes them: bounded, otherwise unjudged. Throws when that is not possible. */
  list(): Promise<readonly ListedTool[]>;
  /** Never throws. */
  call(name: string, inputSchema: JsonObject, args: JsonObject, how: CallHow): Promise<Finished>;
  isLost(): boolean;
  close(): Promise<void>;
}

export interface CallHow {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
}

const CONNECT_MS_MAX = 10_000;
/** A process may have to be fetched and unpacked by its starter first. */
const START_MS_MAX = 30_000;
const PROBE_MS_MAX = 3_000;
const LIST_MS_MAX = 10_000;
const CLOSE_MS_MAX = 2_000;
const PAGES_MAX = 32;
const TOOLS_MAX = 500;
const LIST_BYTES_MAX = 8 * 1024 * 1024;

const SELF = { name: "holdpoint", version: "1" };

/** `onListChanged`: the server says that its tools are not what they were. */
export async function openConnection(
  config: McpTransport,
  parts: ConnectionParts,
  onListChanged: () => void,
): Promise<McpConnection> {
  try {
    return await connect(config, parts, onListChanged, config.type === "sse" ? "legacy" : "auto");
  } catch (error) {
    const isGone = error instanceof ConnectFailed && error.isProcessGone;
    if (config.type !== "stdio" || !isGone) throw error;
    // Some older servers end when they are asked for a revision that they do not know.
    return await connect(config, parts, onListChanged, "legacy");
  }
}

class ConnectFailed extends Error {
  readonly isProcessGone: boolean;

  constructor(message: string, isProcessGone: boolean, cause: unknown) {
    super(message, { cause });
    this.isProcessGone = isProcessGone;
  }
}

async function connect(
  config: McpTransport,
  { clock, network }: ConnectionParts,
  onListChanged: () => void,
  mode: "auto" | "legacy",
): Promise<McpConnection> {
  let isLost = false;
  const client = new Client(SELF, {
    // None: a server may not sample, elicit or ask for roots, and is told so when it tries.
    capabilities: {},
    versionNegotiation: { mode, probe: { timeoutMs: PROBE_MS_MAX } },
    inputRequired: { autoFulfill: false },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => onListChanged() } },
  });
  client.fallbackRequestHandler = async ({ method }) => {
    const text = `"${method}" is declined: Holdpoint answers no questions of servers; a person is asked by the agent`;
    throw new ProtocolError(ProtocolErrorCode.MethodNotFound, text);
  };
  client.onclose = () => {
    isLost = true;
  };
  const transport = createTransport(config, network, () => void client.close());
  const close = async () => {
    isLost = true;
    const session = transport instanceof StreamableHTTPClientTransport ? transport.terminateSession() : undefined;
    await inTime(clock, CLOSE_MS_MAX, Promise.resolve(session)).catch(() => {});
    await client.close().catch(() => {});
    await transport.close().catch(() => {});
  };
  try {
    const limitMs = config.type === "stdio" ? START_MS_MAX : CONNECT_MS_MAX;
    await inTime(clock, limitMs, client.connect(transport, { timeout: limitMs }));
  } catch (error) {
    await close();
    const words = transport instanceof StdioTransport ? transport.reason : "";
    const text = error instanceof Error ? error.message : String(error);
    throw new ConnectFailed(words ? `${text}: ${words}` : text, words !== "", error);
  }

  return {
    isLost: () => isLost,
    close,
    list: () => inTime(clock, LIST_MS_MAX, listAll(client)),
    call: async (name, inputSchema, args, { timeoutMs, signal, headers }) => {
      // Given by us, so that the SDK neither repeats the call after listing anew nor evaluates a schema of the server.
      const toolDefinition = { name, inputSchema } as ListedTool;
      const options: CallToolRequestOptions = {
        toolDefinition,
        timeout: timeoutMs,
        maxTotalTimeout: timeoutMs,
        signal,
        allowInputRequired: true,
      };
      try {
        // A plan is read-only, the SDK's type is not; it does not write to it.
        const params = { name, arguments: args as Record<string, unknown> };
        return finishedFrom(await withHeaders(headers, () => client.callTool(params, options)));
      } catch (error) {
        if (signal.aborted) return finishedWithout(new Error("it was canceled"));
        if (hasCode(error, SdkErrorCode.RequestTimeout)) {
          return finishedWithout(new Error(`no answer within ${timeoutMs} ms`));
        }
        if (hasCode(error, SdkErrorCode.ConnectionClosed) && transport instanceof StdioTransport) {
          return finishedWithout(new Error(`the server is gone: ${transport.reason}`));
        }
        return finishedWithout(error);
      }
    },
  };
}

function hasCode(error: unknown, code: SdkErrorCode): boolean {
  return error instanceof SdkError && error.code === code;
}

function createTransport(config: McpTransport, network: Fetch, onStreamEnd: () => void): Transport {
  if (config.type === "stdio") return new StdioTransport(config, createRedaction(secretsOf(config)));
  const requestInit = { headers: { ...config.headers } };
  const url = new URL(config.url);
  if (config.type === "sse") {
    // The SDK would open the stream again, into a session that nobody has begun; calls under way would wait in vain.
    return new SSEClientTransport(url, { requestInit, fetch: createBoundedFetch(network, onStreamEnd) });
  }
  return reportLostAnswers(new StreamableHTTPClientTransport(url, { requestInit, fetch: createBoundedFetch(network) }));
}

/** The stream of one request ended for good, without an answer: the SDK alone would wait until its time is over. */
function reportLostAnswers<T extends Transport>(transport: T): T {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.();
      // For a request that was answered this comes too late, and is ignored.
      if (!isJSONRPCRequest(message) || !message.method.startsWith("tools/")) return;
      const error = { code: ProtocolErrorCode.InternalError, message: "the connection was closed", data: ANSWER_LOST };
      transport.onmessage?.({ jsonrpc: "2.0", id: message.id, error });
    };
    return send(message, { ...options, onRequestStreamEnd });
  };
  return transport;
}

async function listAll(client: Client): Promise<readonly ListedTool[]> {
  const tools: ListedTool[] = [];
  let cursor: string | undefined;
  let bytes = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const answer = await client.request({ method: "tools/list", params }, { timeout: LIST_MS_MAX });
    bytes += Buffer.byteLength(JSON.stringify(answer));
    tools.push(...answer.tools);
    if (tools.length > TOOLS_MAX) throw new Error(`it has more than ${TOOLS_MAX} tools`);
    if (bytes > LIST_BYTES_MAX) throw new Error(`the list of its tools is larger than ${LIST_BYTES_MAX} bytes`);
    if (answer.nextCursor === undefined) return tools;
    cursor = answer.nextCursor;
  }
  throw new Error(`the list of its tools has more than ${PAGES_MAX} pages`);
}

/** Rejects when `work` takes longer; the work itself is not stopped by this. */
async function inTime<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T> {
  const settled = new AbortController();
  const late = clock.sleep(ms, settled.signal).then(() => {
    throw new Error(`no answer within ${ms} ms`);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    settled.abort();
  }
}
