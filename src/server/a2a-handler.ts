/**
 * The SDK's `A2ARequestHandler` on our operations, for transports of the SDK (gRPC above all). Its requests are already
 * decoded; here they are read once more in our shapes, so that every way in has the same rules.
 */

import {
  AgentCard,
  ListTasksResponse,
  type Message,
  SendMessageRequest,
  StreamResponse,
  Task,
  ListTasksRequest as WireListRequest,
} from "@a2a-js/sdk";
import { PushNotificationNotSupportedError, RequestMalformedError } from "@a2a-js/sdk/errors";
import type { A2ARequestHandler, ServerCallContext } from "@a2a-js/sdk/server";
import type { CardFacts } from "../a2a/card.ts";
import { projectCard } from "../a2a/card.ts";
import { checkTenant } from "./a2a-call.ts";
import { InvalidRequest } from "./a2a-errors.ts";
import { GetShape, ListShape, readShape, SendShape, TaskIdShape } from "./a2a-shapes.ts";
import { type A2ACall, type A2ATasks, requireScope, type TaskStream } from "./a2a-tasks.ts";

export interface HandlerParts {
  readonly tasks: A2ATasks;
  readonly card: CardFacts;
  /** What the transport knows of the caller, from its credential. */
  readonly callOf: (context: ServerCallContext) => A2ACall;
}

export function createRequestHandler({ tasks, card, callOf }: HandlerParts): A2ARequestHandler {
  /** Runs an operation as whoever calls; what is wrong is told in the SDK's words. */
  const run = async <T>(
    context: ServerCallContext,
    tenant: string,
    work: (call: A2ACall) => Promise<T>,
  ): Promise<T> => {
    try {
      const call = callOf(context);
      checkTenant(call, tenant || undefined);
      return await work(call);
    } catch (error) {
      throw error instanceof InvalidRequest ? new RequestMalformedError({ message: error.message }) : error;
    }
  };
  async function* stream(
    context: ServerCallContext,
    tenant: string,
    open: (call: A2ACall) => Promise<TaskStream>,
  ): AsyncGenerator<StreamResponse, void, undefined> {
    const { frames, signal } = await run(context, tenant, async (call) => ({
      frames: (await open(call)).frames,
      signal: call.signal,
    }));
    for await (const { update } of frames(signal)) yield StreamResponse.fromJSON(update);
  }
  const showCard = async () => AgentCard.fromJSON(projectCard(card));
  return {
    getAgentCard: showCard,
    getAuthenticatedExtendedAgentCard: ({ tenant }, context) =>
      run(context, tenant, async ({ caller }) => {
        requireScope(caller, "task:read");
        return showCard();
      }),
    sendMessage: (params, context): Promise<Message | Task> =>
      run(context, params.tenant, async (call) => {
        const request = readShape(SendShape, SendMessageRequest.toJSON(params));
        return Task.fromJSON(await tasks.send(call, request));
      }),
    sendMessageStream: (params, context) =>
      stream(context, params.tenant, (call) => {
        return tasks.stream(call, readShape(SendShape, SendMessageRequest.toJSON(params)));
      }),
    getTask: ({ tenant, id, historyLength }, context) =>
      run(context, tenant, async (call) => {
        return Task.fromJSON(await tasks.get(call, readShape(GetShape, { id, historyLength })));
      }),
    cancelTask: ({ tenant, id }, context) =>
      run(context, tenant, async (call) => {
        return Task.fromJSON(await tasks.cancel(call, readShape(TaskIdShape, { id }).id));
      }),
    listTasks: (params, context) =>
      run(context, params.tenant, async (call) => {
        return ListTasksResponse.fromJSON(await tasks.list(call, readShape(ListShape, WireListRequest.toJSON(params))));
      }),
    resubscribe: ({ tenant, id }, context) =>
      stream(context, tenant, (call) => tasks.subscribe(call, readShape(TaskIdShape, { id }).id)),
    createTaskPushNotificationConfig: noPush,
    getTaskPushNotificationConfig: noPush,
    listTaskPushNotificationConfigs: noPush,
    deleteTaskPushNotificationConfig: noPush,
  };
}

async function noPush(): Promise<never> {
  throw new PushNotificationNotSupportedError();
}
