/** A2A as JSON-RPC: `POST /a2a/{agent}`, 1.0 and 0.3 by the version asked for. No rules live here. */
import { PushNotificationNotSupportedError } from "@a2a-js/sdk/errors";
import { type Context, Hono } from "hono";
import { decodeLegacyMessage, encodeLegacyTask, encodeLegacyUpdate } from "../a2a/legacy.ts";
import type { Frame } from "../a2a/wire.ts";
import { isObject, type Json, type JsonObject } from "../task/json.ts";
import { type A2AParts, checkTenant, createCall, readJson, readVersion, respond, type Version } from "./a2a-call.ts";
import { projectExtendedCard } from "./a2a-cards.ts";
import {
  encodeLegacyError,
  encodeRpcError,
  InvalidRequest,
  methodNotFound,
  type ToldError,
  tellError,
} from "./a2a-errors.ts";
import { EmptyShape, GetShape, ListShape, readShape, SendShape, TaskIdShape } from "./a2a-shapes.ts";
import { type A2ACall, requireScope, type TaskStream } from "./a2a-tasks.ts";
import type { AppEnv } from "./auth.ts";

const INVALID_REQUEST = -32600;
const JSON_TYPE = "application/json";

interface RpcRequest {
  readonly id: Json;
  readonly method: string;
  readonly params: Json;
}

/** What a method gives: an object, or a stream of them. */
type RpcAnswer = { readonly result: Json } | { readonly stream: TaskStream };

type RpcMethod = (parts: A2AParts, call: A2ACall, params: Json, c: Context<AppEnv>) => Promise<RpcAnswer>;

export function rpcRoutes(parts: A2AParts): Hono<AppEnv> {
  return new Hono<AppEnv>().post("/a2a/:agent", async (c) => {
    let version: Version = "1.0";
    let id: Json = null;
    try {
      version = readVersion(c, parts.legacy);
      const body = await readJson(c);
      id = idOf(body);
      const { method, params } = readRequest(body);
      const answer = await findMethod(version, method)(parts, createCall(c, parts), params, c);
      if ("result" in answer) return respond(c, { jsonrpc: "2.0", id, result: answer.result }, JSON_TYPE);
      return openStream(c, parts, answer.stream, version, id);
    } catch (error) {
      const told = tellError(error, parts.profile);
      if (told.isOurs) parts.onError(error);
      return respond(c, encodeError(told, version, id), JSON_TYPE, told.code === -32005 ? 415 : 200);
    }
  });
}

function encodeError(told: ToldError, version: Version, id: Json): JsonObject {
  return version === "1.0" ? encodeRpcError(told, id) : { jsonrpc: "2.0", id, error: encodeLegacyError(told) };
}

function openStream(c: Context<AppEnv>, parts: A2AParts, stream: TaskStream, version: Version, id: Json): Response {
  const encode = (frame: Frame): JsonObject => {
    const result = version === "1.0" ? frame.update : encodeLegacyUpdate(frame.update, stream.isLast(frame));
    return { jsonrpc: "2.0", id, result: result as JsonObject };
  };
  const opened = parts.streams.open(c.var.caller.principal, async ({ signal, sendFrame, send }) => {
    try {
      for await (const frame of stream.frames(signal)) sendFrame(frame.id, encode(frame));
    } catch (error) {
      const told = tellError(error, parts.profile);
      if (told.isOurs) parts.onError(error);
      send("error", encodeError(told, version, id));
    }
  });
  if (opened) return opened;
  const message = "Too many streams are open for this token; close some.";
  return respond(c, { jsonrpc: "2.0", id, error: { code: -32603, message } }, JSON_TYPE, 429);
}

function idOf(body: Json): Json {
  const id = isObject(body) ? body.id : undefined;
  return typeof id === "string" || Number.isSafeInteger(id) ? (id as Json) : null;
}

function readRequest(body: Json): RpcRequest {
  const wrong = (pointer: string, text: string) => new InvalidRequest([{ pointer, text }], INVALID_REQUEST);
  if (Array.isArray(body)) throw wrong("", "batches are not taken; send one request at a time");
  if (!isObject(body)) throw wrong("", "must be an object");
  const { jsonrpc, id = null, method, params = {} } = body as JsonObject;
  if (jsonrpc !== "2.0") throw wrong("/jsonrpc", 'must be "2.0"');
  if (id !== null && typeof id !== "string" && !Number.isSafeInteger(id)) {
    throw wrong("/id", "must be a text, a whole number or null");
  }
  if (typeof method !== "string" || method === "") throw wrong("/method", "must be the name of a method");
  if (!isObject(params)) throw new InvalidRequest([{ pointer: "/params", text: "must be an object" }]);
  return { id, method, params: params as JsonObject };
}

const METHODS: Readonly<Record<string, RpcMethod>> = {
  SendMessage: async ({ tasks }, call, params) => {
    const request = readShape(SendShape, params);
    checkTenant(call, request.tenant);
    return toResult({ task: await tasks.send(call, request) });
  },
  SendStreamingMessage: async ({ tasks }, call, params) => {
    const request = readShape(SendShape, params);
    checkTenant(call, request.tenant);
    return { stream: await tasks.stream(call, request) };
  },
  GetTask: async ({ tasks }, call, params) => {
    const request = readShape(GetShape, params);
    checkTenant(call, request.tenant);
    return toResult(await tasks.get(call, request));
  },
  ListTasks: async ({ tasks }, call, params) => {
    const request = readShape(ListShape, params);
    checkTenant(call, request.tenant);
    return toResult(await tasks.list(call, request));
  },
  CancelTask: async ({ tasks }, call, params) => {
    const request = readShape(TaskIdShape, params);
    checkTenant(call, request.tenant);
    return toResult(await tasks.cancel(call, request.id));
  },
  SubscribeToTask: async ({ tasks }, call, params, c) => {
    const request = readShape(TaskIdShape, params);
    checkTenant(call, request.tenant);
    return { stream: await tasks.subscribe(call, request.id, c.req.header("last-event-id")) };
  },
  CreateTaskPushNotificationConfig: noPush,
  GetTaskPushNotificationConfig: noPush,
  ListTaskPushNotificationConfigs: noPush,
  DeleteTaskPushNotificationConfig: noPush,
  GetExtendedAgentCard: async ({ cards }, call, params, c) => {
    checkTenant(call, readShape(EmptyShape, params).tenant);
    requireScope(call.caller, "task:read");
    return toResult(await projectExtendedCard(c, cards, call.agent, "1.0"));
  },
};

const LEGACY_METHODS: Readonly<Record<string, RpcMethod>> = {
  "message/send": async ({ tasks }, call, params) =>
    toResult(encodeLegacyTask(await tasks.send(call, readShape(SendShape, decodeLegacySend(params))))),
  "message/stream": async ({ tasks }, call, params) => ({
    stream: await tasks.stream(call, readShape(SendShape, decodeLegacySend(params))),
  }),
  "tasks/get": async ({ tasks }, call, params) =>
    toResult(encodeLegacyTask(await tasks.get(call, readShape(GetShape, params)))),
  "tasks/cancel": async ({ tasks }, call, params) =>
    toResult(encodeLegacyTask(await tasks.cancel(call, readShape(TaskIdShape, params).id))),
  "tasks/resubscribe": async ({ tasks }, call, params, c) => ({
    stream: await tasks.subscribe(call, readShape(TaskIdShape, params).id, c.req.header("last-event-id")),
  }),
  "tasks/pushNotificationConfig/set": noPush,
  "tasks/pushNotificationConfig/get": noPush,
  "tasks/pushNotificationConfig/list": noPush,
  "tasks/pushNotificationConfig/delete": noPush,
  "agent/getAuthenticatedExtendedCard": async ({ cards }, call, _params, c) => {
    requireScope(call.caller, "task:read");
    return toResult(await projectExtendedCard(c, cards, call.agent, "0.3"));
  },
};

function findMethod(version: Version, name: string): RpcMethod {
  const methods = version === "1.0" ? METHODS : LEGACY_METHODS;
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (!method) throw methodNotFound(name);
  return method;
}

async function noPush(): Promise<never> {
  throw new PushNotificationNotSupportedError();
}

/** Wire objects are JSON all the way down, which their types do not say. */
function toResult(value: object): RpcAnswer {
  return { result: value as unknown as JsonObject };
}

/** Without any configuration a 0.3 client waits; with one it waits if it says so, as the SDKs have it. */
export function decodeLegacySend(params: Json, decodeMessage = decodeLegacyMessage): Json {
  if (!isObject(params)) return params;
  const { message, request, configuration, metadata } = params as JsonObject;
  const asked = isObject(configuration) ? (configuration as JsonObject) : { blocking: true };
  const { blocking = false, pushNotificationConfig, pushNotification = pushNotificationConfig, ...rest } = asked;
  return {
    message: decodeMessage(message ?? request ?? null),
    configuration: {
      ...rest,
      returnImmediately: typeof blocking === "boolean" ? !blocking : blocking,
      ...(pushNotification === undefined ? {} : { taskPushNotificationConfig: pushNotification }),
    },
    ...(metadata === undefined ? {} : { metadata }),
  };
}
