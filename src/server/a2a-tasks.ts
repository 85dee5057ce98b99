/** The operations of A2A on runtime and store, in the JSON of 1.0: every transport and version stands on these. */
import { isResting, projectEvents } from "../a2a/project-events.ts";
import type { Speech } from "../a2a/project-message.ts";
import { projectTask, type TaskOptions } from "../a2a/project-task.ts";
import { type Frame, WIRE_STATES, type WireTask } from "../a2a/wire.ts";
import { isFault } from "../errors.ts";
import type { Follower } from "../runtime/follower.ts";
import type { TaskEvent, TaskKey } from "../task/event.ts";
import type { JsonObject } from "../task/json.ts";
import { replay } from "../task/log.ts";
import type { Task, TaskState } from "../task/task.ts";
import { invalid, notCancelable, refusalError, scopeMissing, taskNotFound, unsupported } from "./a2a-errors.ts";
import { findTask, type MessageParts, receiveMessage, type Sender } from "./a2a-messages.ts";
import type { GetRequest, ListRequest, SendRequest } from "./a2a-shapes.ts";
import { defined } from "./api-query.ts";
import type { Caller } from "./auth.ts";

/** What our own metadata stands under, and the name of our extension. */
const EXTENSION = "urn:holdpoint:hitl:v1";

const CANCEL_WAIT_MS = 10_000;
const PAGE_SIZE = 50;
const TOTAL_MAX = 10_000;

export interface TasksParts extends MessageParts {
  readonly follower: Follower;
}

export interface A2ACall extends Sender {
  readonly speech: Speech;
  /** Aborts when the client is gone or the server stops. */
  readonly signal: AbortSignal;
}

export interface ListedTasks {
  readonly tasks: readonly WireTask[];
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

/** A stream that may begin: whatever stands in its way has been said. */
export interface TaskStream {
  frames(signal: AbortSignal): AsyncGenerator<Frame, void, void>;
  /** Whether it closes after this frame. */
  isLast(frame: Frame): boolean;
}

export class A2ATasks {
  readonly #parts: TasksParts;

  constructor(parts: TasksParts) {
    this.#parts = parts;
  }

  /** Until the task rests, unless the client would not wait. */
  async send(call: A2ACall, request: SendRequest): Promise<WireTask> {
    const { task, refused, counted } = await receiveMessage(this.#parts, call, request, "a2a");
    const { returnImmediately = false, historyLength } = request.configuration ?? {};
    if (counted && !returnImmediately) await this.#wait(task, call.signal, isResting);
    return this.#show(task.key, call, { historyLength, ...refusedMetadata(refused) });
  }

  /** Ends where the task rests. */
  async stream(call: A2ACall, request: SendRequest): Promise<TaskStream> {
    const { task, refused } = await receiveMessage(this.#parts, call, request, "a2a");
    const { historyLength } = request.configuration ?? {};
    const options = { historyLength, ...refusedMetadata(refused) };
    return {
      frames: (signal) => this.#frames(call, task.key, task.version, options, ({ rests }) => rests, signal),
      isLast: ({ rests }) => rests,
    };
  }

  /** From now, or from after a frame that the client has, until the end of the task. */
  async subscribe(call: A2ACall, id: string, after?: string): Promise<TaskStream> {
    requireScope(call.caller, "task:read");
    const task = await findTask(this.#parts.runtime, call, keyOf(call, id));
    const seq = readFrameId(after, task.version);
    if (task.end && (seq === undefined || seq >= task.version)) {
      throw unsupported(`The task is ${task.end.state}: nothing more will come.`, { state: task.end.state });
    }
    const isLast = (frame: Frame) => isTerminal(frame);
    return {
      frames: (signal) => this.#frames(call, task.key, seq ?? task.version, {}, isLast, signal),
      isLast,
    };
  }

  async get(call: A2ACall, { id, historyLength }: GetRequest): Promise<WireTask> {
    requireScope(call.caller, "task:read");
    return this.#show(keyOf(call, id), call, { historyLength });
  }

  async list(call: A2ACall, request: ListRequest): Promise<ListedTasks> {
    requireScope(call.caller, "task:read");
    const { contextId, status, pageSize = PAGE_SIZE, pageToken, historyLength, statusTimestampAfter } = request;
    const { store } = this.#parts.runtime;
    const state = stateNamed(status);
    if (status !== undefined && status !== "TASK_STATE_UNSPECIFIED" && !state) {
      return { tasks: [], nextPageToken: "", pageSize, totalSize: 0 };
    }
    const { tenant } = call.caller.principal;
    const changedFromMs = statusTimestampAfter;
    const filter = { tenant, agent: call.agent, ...defined({ contextId, state, changedFromMs }) };
    const page = await store
      .listTasks({ ...filter, limit: pageSize, ...defined({ cursor: pageToken }) })
      .catch((error: unknown) => {
        throw isFault(error, "usage-invalid") ? invalid("/pageToken", "is not one of ours; start without one") : error;
      });
    const withArtifacts = request.includeArtifacts ?? false;
    const shown = page.items.map(({ taskId }) =>
      this.#show({ tenant, id: taskId }, call, { historyLength, withArtifacts }),
    );
    const totalSize = await store.countTasks(filter, TOTAL_MAX);
    return { tasks: await Promise.all(shown), nextPageToken: page.nextCursor ?? "", pageSize, totalSize };
  }

  /** Paused, at once; running, what really happened is waited for. */
  async cancel(call: A2ACall, id: string): Promise<WireTask> {
    requireScope(call.caller, "task:submit");
    const { runtime, clock } = this.#parts;
    const key = keyOf(call, id);
    await findTask(runtime, call, key);
    const outcome = await runtime.cancel(key, call.caller.principal);
    if (!outcome.ok) {
      const { refusal } = outcome;
      throw refusal.code === "task-over"
        ? notCancelable(`The task is ${refusal.state} already.`)
        : refusalError(refusal);
    }
    const enough = new AbortController();
    const done = new AbortController();
    void clock.sleep(CANCEL_WAIT_MS, done.signal).then(() => enough.abort());
    await this.#wait(outcome.task, AbortSignal.any([call.signal, enough.signal]), ({ end }) => end !== undefined);
    done.abort();
    return this.#show(key, call, {});
  }

  async #wait(from: Task, signal: AbortSignal, isEnough: (task: Task) => boolean): Promise<void> {
    let task: Task | undefined = from;
    if (isEnough(task)) return;
    for await (const events of this.#parts.follower.follow(task.key, task.version, signal)) {
      task = replay(from.key, events, task);
      if (task && isEnough(task)) return;
    }
  }

  async #show(key: TaskKey, { agent, speech }: A2ACall, options: Omit<TaskOptions, "speech">): Promise<WireTask> {
    const { task, events } = await this.#read(key);
    if (task.agent !== agent) throw taskNotFound();
    return projectTask(task, events, { speech, ...options });
  }

  async #read(key: TaskKey, version?: number): Promise<{ task: Task; events: readonly TaskEvent[] }> {
    const { events } = await this.#parts.runtime.store.read(key);
    const wanted = version === undefined ? events : events.slice(0, version);
    const task = replay(key, wanted);
    if (!task) throw taskNotFound();
    return { task, events: wanted };
  }

  /** The task as it was at `version`, then everything since and to come. */
  async *#frames(
    { speech }: A2ACall,
    key: TaskKey,
    version: number,
    options: Omit<TaskOptions, "speech">,
    isLast: (frame: Frame) => boolean,
    signal: AbortSignal,
  ): AsyncGenerator<Frame, void, void> {
    const { task: first, events } = await this.#read(key, version);
    const update = { task: projectTask(first, events, { speech, ...options }) };
    const snapshot: Frame = { id: `${version}-0`, update, rests: isResting(first) };
    yield snapshot;
    if (isLast(snapshot) || first.end) return;
    let task = first;
    for await (const batch of this.#parts.follower.follow(key, version, signal)) {
      const projected = projectEvents(task, batch, speech);
      task = projected.task;
      for (const frame of projected.frames) {
        yield frame;
        if (isLast(frame)) return;
      }
    }
  }
}

export function requireScope({ scopes }: Caller, scope: "task:read" | "task:submit"): void {
  if (!scopes.has(scope)) throw scopeMissing(scope);
}

function keyOf({ caller }: A2ACall, id: string): TaskKey {
  return { tenant: caller.principal.tenant, id };
}

function refusedMetadata(refused: readonly JsonObject[]): { metadata?: JsonObject } {
  return refused.length > 0 ? { metadata: { [EXTENSION]: { refused } } } : {};
}

/** The event of a frame that this log has; anything else is no place to go on from. */
function readFrameId(id: string | undefined, version: number): number | undefined {
  const [, seq] = /^([1-9]\d{0,8})-\d{1,3}$/.exec(id ?? "") ?? [];
  return seq !== undefined && Number(seq) <= version ? Number(seq) : undefined;
}

function stateNamed(name: string | undefined): TaskState | undefined {
  const [found] = Object.entries(WIRE_STATES).find(([, wire]) => wire === name) ?? [];
  // The keys of that table are the states.
  return found as TaskState | undefined;
}

const TERMINAL: ReadonlySet<string> = new Set([
  WIRE_STATES.completed,
  WIRE_STATES.failed,
  WIRE_STATES.canceled,
  WIRE_STATES.rejected,
]);

function isTerminal({ update }: Frame): boolean {
  return "statusUpdate" in update && TERMINAL.has(update.statusUpdate.status.state);
}
