/** `/v1/agents`: the REST surface of seed 002 (DESIGN §5). No rules live here. */
import { A2AError, TaskNotFoundError } from "@a2a-js/sdk/errors";
import { type Context, Hono } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { Scope } from "../config/config.ts";
import { SERVED_DIALECTS } from "../dialects/registry.ts";
import { type A2AParts, readJson } from "./a2a-call.ts";
import { InvalidRequest, scopeMissing, tellError } from "./a2a-errors.ts";
import type { MessageParts } from "./a2a-messages.ts";
import type { A2ACall } from "./a2a-tasks.ts";
import type { AppEnv } from "./auth.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import { originOf } from "./origin.ts";
import { encodeTask, encodeUpdate } from "./v1-encode.ts";
import { decodeList, decodeSend, renameMessage, type V1Send } from "./v1-shapes.ts";
import { cancelV1, type Frames, sendV1, showV1, streamV1, subscribeV1 } from "./v1-tasks.ts";

export interface V1Parts extends Pick<A2AParts, "tasks" | "streams" | "cards" | "draining" | "onError"> {
  readonly messages: MessageParts;
}

type Answer = { readonly body: object } | { readonly frames: Frames };
type Operation = (call: A2ACall, c: Context<AppEnv>) => Promise<Answer>;

const SENDERS = ["task:submit", "decide"] as const;
/** Whose statuses are those of plain HTTP. */
const PROFILE = "1.0.0";

export function v1Routes(parts: V1Parts): Hono<AppEnv> {
  // Any of the scopes lets a caller in; what it then wants may need one of them in particular.
  const serve = (scopes: readonly Scope[], operation: Operation) => (c: Context<AppEnv>) =>
    answer(parts, scopes, operation, c);
  return new Hono<AppEnv>()
    .get("/agents", (c) => listAgents(c, parts))
    .post("/agents/:agent/message:send", serve(SENDERS, sendMessage(parts)))
    .post("/agents/:agent/message:stream", serve(SENDERS, streamMessage(parts)))
    .get("/agents/:agent/tasks", serve(["task:read"], listTasks(parts)))
    .get("/agents/:agent/tasks/:name", serve(["task:read"], readTask(parts)))
    .post("/agents/:agent/tasks/:name", serve(["task:submit", "task:read"], actOnTask(parts)));
}

async function answer(
  parts: V1Parts,
  scopes: readonly Scope[],
  operation: Operation,
  c: Context<AppEnv>,
): Promise<Response> {
  try {
    if (!scopes.some((scope) => c.var.caller.scopes.has(scope))) throw scopeMissing(scopes[0] ?? "admin");
    const agent = c.req.param("agent") ?? "";
    const known = [...parts.cards.agents.keys()];
    if (!known.includes(agent)) {
      const error = `Agent '${agent.slice(0, 100)}' not found. Available agents: [${known.join(", ")}]`;
      return c.json({ error }, 404);
    }
    const given = await operation(createCall(c, agent, parts), c);
    return "body" in given ? c.json(given.body) : openStream(c, parts, given.frames);
  } catch (error) {
    const { body, status } = encodeError(error);
    // What is ours, or the store's, is told as it is everywhere.
    if (status >= 500) throw error;
    return c.json(body, status);
  }
}

function createCall(c: Context<AppEnv>, agent: string, { draining }: V1Parts): A2ACall {
  const { principal, scopes } = c.var.caller;
  return {
    agent,
    caller: { scopes, principal: { ...principal, via: "v1" } },
    headers: forwardedHeaders(c),
    speech: { dialect: SERVED_DIALECTS.hector, extensions: [] },
    signal: AbortSignal.any([c.req.raw.signal, draining]),
  };
}

/** Knows which task was not found. */
class NoSuchTask extends Error {
  readonly taskId: string;

  constructor(taskId: string) {
    super("Task not found");
    this.taskId = taskId;
  }
}

async function aboutTask<T>(taskId: string | undefined, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof TaskNotFoundError ? new NoSuchTask(taskId ?? "") : error;
  }
}

function encodeError(error: unknown): { body: object; status: ContentfulStatusCode } {
  if (error instanceof NoSuchTask) return { body: { error: error.message, task_id: error.taskId }, status: 404 };
  const renamed = renameMessage(error);
  const { message, httpStatus } = tellError(renamed, PROFILE);
  const pointers = renamed instanceof InvalidRequest ? { pointers: renamed.problems } : {};
  const reason = renamed instanceof A2AError && httpStatus === 403 ? { reason: renamed.reason } : {};
  // The table of errors has only statuses with a body.
  return { body: { error: message, ...pointers, ...reason }, status: httpStatus as ContentfulStatusCode };
}

function openStream(c: Context<AppEnv>, parts: V1Parts, frames: Frames): Response {
  const opened = parts.streams.open(c.var.caller.principal, async ({ signal, send }) => {
    try {
      for await (const { id, update } of frames(signal)) send(...encodeUpdate(update), id);
    } catch (error) {
      const { body, status } = encodeError(error);
      if (status === 500) parts.onError(error);
      send("error", body);
    }
  });
  return opened ?? c.json({ error: "Too many streams are open for this token; close some." }, 429);
}

function listAgents(c: Context<AppEnv>, { cards }: V1Parts): Response {
  if (!c.var.caller.scopes.has("task:read")) {
    const { body, status } = encodeError(scopeMissing("task:read"));
    return c.json(body, status);
  }
  const agents = [...cards.agents.values()].map(({ name, description }) => ({
    name,
    description,
    url: `${originOf(c, cards.trustedProxy)}/v1/agents/${encodeURIComponent(name)}`,
  }));
  return c.json({ agents });
}

async function readSend(c: Context, { messages: { ids, clock } }: V1Parts): Promise<V1Send> {
  return decodeSend(await readJson(c), () => ids.uuid(clock.nowMs()));
}

function sendMessage(parts: V1Parts): Operation {
  return async (call, c) => {
    const sent = await readSend(c, parts);
    return { body: { task: encodeTask(await aboutTask(sent.request.message.taskId, sendV1(parts, call, sent))) } };
  };
}

function streamMessage(parts: V1Parts): Operation {
  return async (call, c) => {
    const sent = await readSend(c, parts);
    return { frames: await aboutTask(sent.request.message.taskId, streamV1(parts, call, sent)) };
  };
}

function listTasks({ tasks }: V1Parts): Operation {
  return async (call, c) => {
    const { tasks: found, nextPageToken } = await tasks.list(call, decodeList(c.req.query()));
    return { body: { tasks: found.map(encodeTask), nextPageToken } };
  };
}

function readTask(parts: V1Parts): Operation {
  return async (call, c) => {
    const { id, verb } = readName(c);
    if (verb === "subscribe") return subscribe(parts, call, id, c);
    if (verb !== undefined) throw new NoSuchTask(`${id}:${verb}`);
    return { body: { task: encodeTask(await aboutTask(id, showV1(parts, call, id))) } };
  };
}

function actOnTask(parts: V1Parts): Operation {
  return async (call, c) => {
    const { id, verb } = readName(c);
    if (verb === "subscribe") return subscribe(parts, call, id, c);
    if (verb !== "cancel") throw new NoSuchTask(c.req.param("name") ?? "");
    return { body: { task: encodeTask(await aboutTask(id, cancelV1(parts, call, id))) } };
  };
}

async function subscribe(parts: V1Parts, call: A2ACall, id: string, c: Context): Promise<Answer> {
  return { frames: await aboutTask(id, subscribeV1(parts, call, id, c.req.header("last-event-id"))) };
}

/** `<id>` or `<id>:<verb>`. */
function readName(c: Context): { id: string; verb: string | undefined } {
  const [id = "", verb] = (c.req.param("name") ?? "").split(/:([^:]*)$/);
  return { id, verb };
}
