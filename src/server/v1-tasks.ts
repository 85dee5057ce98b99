/** The operations of `/v1/agents` on those of A2A: where A2A refuses what is over, here its task is shown. */
import { TaskNotCancelableError, UnsupportedOperationError } from "@a2a-js/sdk/errors";
import type { Frame, WireTask } from "../a2a/wire.ts";
import type { JsonObject } from "../task/json.ts";
import type { MessageParts } from "./a2a-messages.ts";
import { receiveMessage } from "./a2a-messages.ts";
import type { A2ACall, A2ATasks, TaskStream } from "./a2a-tasks.ts";
import type { V1Send } from "./v1-shapes.ts";

/** How long a client that would not wait is kept, so that it usually gets the pause at once. */
const PAUSE_WAIT_MS = 1000;
const EXTENSION = "urn:holdpoint:hitl:v1";

export interface V1TasksParts {
  readonly tasks: A2ATasks;
  readonly messages: MessageParts;
}

export type Frames = (signal: AbortSignal) => AsyncGenerator<Pick<Frame, "id" | "update">, void, void>;

export async function sendV1(parts: V1TasksParts, call: A2ACall, { request, blocking }: V1Send): Promise<WireTask> {
  const { task, refused, counted } = await receiveMessage(parts.messages, call, request, "v1");
  const { id } = task.key;
  if (counted) await waitForRest(parts, call, id, blocking);
  return withRefused(await showV1(parts, reading(call), id, request.configuration?.historyLength), refused);
}

/** Ends where the task rests. */
export async function streamV1(parts: V1TasksParts, call: A2ACall, { request }: V1Send): Promise<Frames> {
  const { task, refused } = await receiveMessage(parts.messages, call, request, "v1");
  const stream = await openStream(parts, reading(call), task.key.id);
  return async function* (signal) {
    for await (const { id, update, rests } of stream(signal)) {
      yield { id, update: "task" in update ? { task: withRefused(update.task, refused) } : update };
      if (rests) return;
    }
  };
}

/** From now, or from after a frame that the client has, until the end of the task. */
export async function subscribeV1(parts: V1TasksParts, call: A2ACall, id: string, after?: string): Promise<Frames> {
  return openStream(parts, call, id, after);
}

export async function cancelV1(parts: V1TasksParts, call: A2ACall, id: string): Promise<WireTask> {
  try {
    return await parts.tasks.cancel(call, id);
  } catch (error) {
    if (error instanceof TaskNotCancelableError) return showV1(parts, reading(call), id);
    throw error;
  }
}

export function showV1({ tasks }: V1TasksParts, call: A2ACall, id: string, historyLength?: number): Promise<WireTask> {
  return tasks.get(call, { id, historyLength, tenant: undefined });
}

/** Whoever may send to a task, or stop it, is shown what came of it. */
function reading(call: A2ACall): A2ACall {
  const { principal, scopes } = call.caller;
  return { ...call, caller: { principal, scopes: new Set([...scopes, "task:read"]) } };
}

async function waitForRest(parts: V1TasksParts, call: A2ACall, id: string, blocking: boolean): Promise<void> {
  const enough = new AbortController();
  const done = new AbortController();
  if (!blocking) void parts.messages.clock.sleep(PAUSE_WAIT_MS, done.signal).then(() => enough.abort());
  const stream = await openStream(parts, reading(call), id);
  for await (const { rests } of stream(AbortSignal.any([call.signal, enough.signal]))) if (rests) break;
  done.abort();
}

type RestingFrames = (signal: AbortSignal) => AsyncGenerator<Frame, void, void>;

async function openStream(parts: V1TasksParts, call: A2ACall, id: string, after?: string): Promise<RestingFrames> {
  const stream: TaskStream | undefined = await parts.tasks.subscribe(call, id, after).catch((error: unknown) => {
    if (error instanceof UnsupportedOperationError) return undefined;
    throw error;
  });
  if (stream) return (signal) => stream.frames(signal);
  const task = await showV1(parts, call, id);
  return async function* () {
    yield { id: "0-0", update: { task }, rests: true };
  };
}

function withRefused(task: WireTask, refused: readonly JsonObject[]): WireTask {
  return refused.length > 0 ? { ...task, metadata: { ...task.metadata, [EXTENSION]: { refused } } } : task;
}
