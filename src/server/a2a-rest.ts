/**
 * A2A as HTTP+JSON, below `/a2a/{agent}`, also with the tenant before the path. 0.3 has the same paths after `/v1`. No
 * rules live here.
 */
import { PushNotificationNotSupportedError } from "@a2a-js/sdk/errors";
import { type Context, Hono } from "hono";
import { decodeProtoMessage, encodeProtoTask, encodeProtoUpdate } from "../a2a/legacy-proto.ts";
import type { Frame, WireTask } from "../a2a/wire.ts";
import type { Scope } from "../config/config.ts";
import type { Json, JsonObject } from "../task/json.ts";
import { type A2AParts, checkTenant, createCall, readJson, readVersion, respond, type Version } from "./a2a-call.ts";
import { projectExtendedCard } from "./a2a-cards.ts";
import {
  encodeLegacyError,
  encodeRestError,
  methodNotFound,
  scopeMissing,
  type ToldError,
  tellError,
} from "./a2a-errors.ts";
import { decodeLegacySend } from "./a2a-rpc.ts";
import { EmptyShape, GetShape, ListShape, readShape, SendShape } from "./a2a-shapes.ts";
import type { A2ACall, TaskStream } from "./a2a-tasks.ts";
import type { AppEnv } from "./auth.ts";

type Answer = { readonly body: Json } | { readonly stream: TaskStream };
type Operation = (call: A2ACall, version: Version, c: Context<AppEnv>) => Promise<Answer>;

const LEGACY_PREFIX = "v1";
const SENDERS = ["task:submit", "decide"] as const;

export function restRoutes(parts: A2AParts): Hono<AppEnv> {
  // Any of the scopes lets a caller in; what it then wants may need one of them in particular.
  const serve = (scopes: readonly Scope[], operation: Operation) => (c: Context<AppEnv>) =>
    answer(parts, scopes, operation, c);
  const app = new Hono<AppEnv>();
  for (const prefix of ["/a2a/:agent", "/a2a/:agent/:tenant"]) {
    app
      .post(`${prefix}/message:send`, serve(SENDERS, sendMessage(parts)))
      .post(`${prefix}/message:stream`, serve(SENDERS, streamMessage(parts)))
      .get(`${prefix}/tasks`, serve(["task:read"], listTasks(parts)))
      .get(`${prefix}/tasks/:name`, serve(["task:read"], readTask(parts)))
      .post(`${prefix}/tasks/:name`, serve(["task:submit", "task:read"], actOnTask(parts)))
      .get(`${prefix}/tasks/:name/pushNotificationConfigs`, serve(["task:submit"], noPush))
      .post(`${prefix}/tasks/:name/pushNotificationConfigs`, serve(["task:submit"], noPush))
      .get(`${prefix}/tasks/:name/pushNotificationConfigs/:config`, serve(["task:submit"], noPush))
      .delete(`${prefix}/tasks/:name/pushNotificationConfigs/:config`, serve(["task:submit"], noPush))
      .get(`${prefix}/extendedAgentCard`, serve(["task:read"], showCard(parts)))
      .get(`${prefix}/card`, serve(["task:read"], showCard(parts)));
  }
  return app;
}

async function answer(
  parts: A2AParts,
  scopes: readonly Scope[],
  operation: Operation,
  c: Context<AppEnv>,
): Promise<Response> {
  let version: Version = "1.0";
  try {
    version = readVersion(c, parts.legacy);
    const call = createCall(c, parts);
    if (!scopes.some((scope) => call.caller.scopes.has(scope))) throw scopeMissing(scopes[0] ?? "admin");
    const tenant = c.req.param("tenant");
    if (version === "1.0" || tenant !== LEGACY_PREFIX) checkTenant(call, tenant);
    const given = await operation(call, version, c);
    if ("body" in given) return respond(c, given.body, contentType(parts, version));
    return openStream(c, parts, given.stream, version);
  } catch (error) {
    const told = tellError(error, parts.profile);
    if (told.isOurs) parts.onError(error);
    return respond(c, encodeError(told, version), contentType(parts, version), told.httpStatus);
  }
}

function contentType({ profile }: A2AParts, version: Version): string {
  return version === "1.0" && profile === "1.0.1" ? "application/a2a+json" : "application/json";
}

function encodeError(told: ToldError, version: Version): JsonObject {
  return version === "1.0" ? encodeRestError(told) : encodeLegacyError(told);
}

function openStream(c: Context<AppEnv>, parts: A2AParts, stream: TaskStream, version: Version): Response {
  const encode = (frame: Frame) =>
    version === "1.0" ? frame.update : encodeProtoUpdate(frame.update, stream.isLast(frame));
  const opened = parts.streams.open(c.var.caller.principal, async ({ signal, sendFrame, send }) => {
    try {
      for await (const frame of stream.frames(signal)) sendFrame(frame.id, encode(frame));
    } catch (error) {
      const told = tellError(error, parts.profile);
      if (told.isOurs) parts.onError(error);
      send("error", encodeError(told, version));
    }
  });
  if (opened) return opened;
  const message = "Too many streams are open for this token; close some.";
  const told = { code: -32603, message, details: [], httpStatus: 429, status: "RESOURCE_EXHAUSTED", isOurs: false };
  return respond(c, encodeError(told, version), contentType(parts, version), 429);
}

async function readSend(c: Context, version: Version, call: A2ACall) {
  const body = await readJson(c);
  const request = readShape(SendShape, version === "1.0" ? body : decodeLegacySend(body, decodeProtoMessage));
  checkTenant(call, request.tenant);
  return request;
}

function sendMessage({ tasks }: A2AParts): Operation {
  return async (call, version, c) => {
    const task = await tasks.send(call, await readSend(c, version, call));
    return toBody({ task: version === "1.0" ? task : encodeProtoTask(task) });
  };
}

function streamMessage({ tasks }: A2AParts): Operation {
  return async (call, version, c) => ({ stream: await tasks.stream(call, await readSend(c, version, call)) });
}

function listTasks({ tasks }: A2AParts): Operation {
  return async (call, version, c) => {
    if (version !== "1.0") throw methodNotFound("tasks/list");
    const query = readShape(ListShape, c.req.query());
    checkTenant(call, query.tenant);
    return toBody(await tasks.list(call, query));
  };
}

function readTask({ tasks }: A2AParts): Operation {
  return async (call, version, c) => {
    const { id, verb } = readName(c);
    if (verb === "subscribe") return { stream: await tasks.subscribe(call, id, c.req.header("last-event-id")) };
    if (verb !== undefined) throw methodNotFound(verb);
    const asked = c.req.query("historyLength") ?? c.req.query("history_length");
    const request = readShape(GetShape, { id, historyLength: asked });
    return encodeTask(await tasks.get(call, request), version);
  };
}

function actOnTask({ tasks }: A2AParts): Operation {
  return async (call, version, c) => {
    const { id, verb } = readName(c);
    if (verb === "subscribe") return { stream: await tasks.subscribe(call, id, c.req.header("last-event-id")) };
    if (verb !== "cancel") throw methodNotFound(verb ?? "POST");
    // A body may be left out; one that is there is read like any other.
    const body = (await c.req.text()) === "" ? {} : await readJson(c);
    checkTenant(call, readShape(EmptyShape, body).tenant);
    return encodeTask(await tasks.cancel(call, id), version);
  };
}

function showCard({ cards }: A2AParts): Operation {
  return async (call, version, c) => {
    return toBody(await projectExtendedCard(c, cards, call.agent, version));
  };
}

async function noPush(): Promise<never> {
  throw new PushNotificationNotSupportedError();
}

function encodeTask(task: WireTask, version: Version): Answer {
  return toBody(version === "1.0" ? task : encodeProtoTask(task));
}

/** Wire objects are JSON all the way down, which their types do not say. */
function toBody(value: object): Answer {
  return { body: value as unknown as JsonObject };
}

/** `<id>` or `<id>:<verb>`. */
function readName(c: Context): { id: string; verb: string | undefined } {
  const [id = "", verb] = (c.req.param("name") ?? "").split(/:([^:]*)$/);
  return { id, verb };
}
