/**
 * Between the wire and the log: load, decide, append, and on a conflict again. No rules live here.
 *
 * R1  What is acknowledged has been appended; a fault means that the outcome is not known, never that it is "no".
 * R2  The cache is only a head start: every decision reads what the store has added since.
 */
import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { messageKey, type Store, toEntries } from "../store/store.ts";
import type { Choice, Command, Refusal } from "../task/command.ts";
import { type Message, nameOf, type TaskEvent, type TaskKey } from "../task/event.ts";
import { canonicalJson } from "../task/json.ts";
import { advanceLog, replay } from "../task/log.ts";
import { type Principal, parseRequestId } from "../task/request.ts";
import { rowsOf } from "../task/rows.ts";
import { findRequest, type RequestRecord, type Task } from "../task/task.ts";
import type { Lost } from "../task/verdict.ts";
import type { Agents } from "./agent.ts";
import { type Answer, findChange, toChoice } from "./answers.ts";

/** Each conflict means that somebody else got on; this many in a row means that something is broken. */
const CONFLICTS_MAX = 200;
const CACHE_MAX = 1000;

export type Outcome =
  | {
      readonly ok: true;
      readonly task: Task;
      readonly events: readonly TaskEvent[];
      /** Answers of one message that came too late, beside those that counted. */
      readonly lost?: readonly Lost[];
    }
  | { readonly ok: false; readonly refusal: Refusal; readonly lost?: readonly Lost[] };

/** The task cannot go on before then, and that is nobody's failure. */
export class RetryLater extends Error {
  readonly afterMs: number;

  constructor(message: string, afterMs: number, options?: { cause?: unknown }) {
    super(message, options);
    this.afterMs = afterMs;
  }
}

/** Text of a model as it comes, for whoever watches; never part of the log. */
export interface LiveText {
  readonly key: TaskKey;
  readonly turn: number;
  readonly attempt: number;
  readonly delta: string;
}

/** Another worker has the task now; whatever this one still wants to write is void. */
export class LeaseLost extends Error {}

export interface RuntimeParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly agents: Agents;
}

/** Credentials of a client, by their names: never shown, hashed or logged. */
type Headers = Readonly<Record<string, string>>;

interface Folded {
  readonly task: Task | undefined;
  readonly head: string | undefined;
}

interface Loaded {
  readonly folded: Folded;
  readonly nowMs: number;
}

export class Runtime {
  readonly store: Store;
  readonly agents: Agents;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #cache = new Map<string, Folded>();
  readonly #listeners = new Set<(task: Task) => void>();
  readonly #elsewhereListeners = new Set<(key: TaskKey) => void>();
  readonly #textListeners = new Set<(text: LiveText) => void>();
  readonly #headers = new Map<string, Headers>();

  constructor({ store, clock, ids, agents }: RuntimeParts) {
    this.store = store;
    this.agents = agents;
    this.#clock = clock;
    this.#ids = ids;
  }

  /** Called after each append of this node with the task as it is then; answers how to stop. */
  onChange(listener: (task: Task) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called when another node has changed a task, as far as it has told; answers how to stop. */
  onElsewhere(listener: (key: TaskKey) => void): () => void {
    this.#elsewhereListeners.add(listener);
    return () => this.#elsewhereListeners.delete(listener);
  }

  tellElsewhere(key: TaskKey): void {
    for (const listener of this.#elsewhereListeners) listener(key);
  }

  onText(listener: (text: LiveText) => void): () => void {
    this.#textListeners.add(listener);
    return () => this.#textListeners.delete(listener);
  }

  tellText(text: LiveText): void {
    for (const listener of this.#textListeners) listener(text);
  }

  async load(key: TaskKey): Promise<{ task: Task | undefined; nowMs: number }> {
    const { folded, nowMs } = await this.#load(key);
    return { task: folded.task, nowMs };
  }

  /** The task as this node last saw it, without asking the store; undefined when it does not remember it. */
  peek(key: TaskKey): Task | undefined {
    return this.#cache.get(nameOf(key))?.task;
  }

  async submit(order: {
    readonly tenant: string;
    readonly agent: string;
    readonly contextId?: string;
    readonly principal: Principal;
    readonly message: Message;
    /** For tools that forward some by name. Kept in memory only: a restart forgets them. */
    readonly headers?: Headers;
  }): Promise<Outcome> {
    const nowMs = this.#clock.nowMs();
    const { agent, principal, message, contextId = this.#ids.uuid(nowMs) } = order;
    const known = this.agents.get(agent);
    if (!known) {
      const names = [...this.agents.keys()].join(", ");
      throw new HoldpointError("agent-missing", `there is no agent "${agent}"; there are: ${names}`);
    }
    const key = { tenant: order.tenant, id: this.#ids.uuid(nowMs) };
    const forwards = Object.keys(order.headers ?? {});
    if (order.headers && forwards.length > 0) rememberNewest(this.#headers, nameOf(key), order.headers);
    const submit: Command = { type: "submit", agent, contextId, principal, message, mode: known.mode, forwards };
    const outcome = await this.execute(key, [submit]);
    if (!outcome.ok || outcome.events.length > 0) return outcome;
    // The message was sent before; to somebody else, or elsewhere, it is not the same.
    const { task } = outcome;
    const isSame = task.agent === agent && (order.contextId === undefined || task.contextId === contextId);
    return isSame ? outcome : { ok: false, refusal: { code: "message-reused", messageId: message.messageId } };
  }

  /** Undefined when the client sent some and this process does not have them (any more). */
  headersOf({ key, forwards }: Task): Headers | undefined {
    return this.#headers.get(nameOf(key)) ?? (forwards ? undefined : {});
  }

  /**
   * A person decides. What the tool would do is worked out again first: if that is no longer what was shown, the
   * request is replaced and the person is told (digest-differs).
   */
  async choose(tenant: string, requestId: string, answer: Answer, principal: Principal): Promise<Outcome> {
    const unknown: Outcome = { ok: false, refusal: { code: "request-unknown", requestId } };
    const parsed = parseRequestId(requestId);
    if (!parsed) return unknown;
    const key = { tenant, id: parsed.taskId };
    const loaded = await this.#load(key);
    const { task } = loaded.folded;
    const record = task && findRequest(task, requestId);
    if (!task || !record) return unknown;
    const unable = await this.#askAgainIfChanged(task, record, answer);
    if (unable) return unable;
    const choice = await toChoice(this, task, record, answer);
    if ("refusal" in choice) return choice;
    return this.#execute(key, [{ type: "choose", choice, principal }], undefined, loaded);
  }

  /**
   * A message that answers requests of its task, by their ids: an invalid answer refuses all, one that lost its race is
   * told (`lost`) beside those that counted.
   */
  async answer(
    key: TaskKey,
    message: Message,
    answers: readonly (Answer & { readonly requestId: string })[],
    principal: Principal,
  ): Promise<Outcome> {
    const loaded = await this.#load(key);
    const { task } = loaded.folded;
    if (!task) return { ok: false, refusal: { code: "task-unknown" } };
    const choices: Choice[] = [];
    for (const { requestId, ...answer } of answers) {
      const record = findRequest(task, requestId);
      if (!record) return { ok: false, refusal: { code: "request-unknown", requestId } };
      const choice = await toChoice(this, task, record, answer);
      if ("refusal" in choice) return choice;
      choices.push(choice);
    }
    const command: Command = { type: "receive", message, principal, choices };
    // Nothing is asked again for a message that would be refused whatever its tools say.
    const rehearsal = advanceLog(task, [command], { key, nowMs: loaded.nowMs, epoch: this.store.epoch });
    if (!rehearsal.ok && !rehearsal.lost) return rehearsal;
    for (const { requestId, ...answer } of answers) {
      const record = findRequest(task, requestId);
      const unable = record && (await this.#askAgainIfChanged(task, record, answer));
      if (unable) return unable;
    }
    return this.#execute(key, [command], undefined, loaded);
  }

  /** What a message gave when it was sent before; the same id with another body is refused. Undefined: it is new. */
  findRepeated(key: TaskKey, message: Message, principal: Principal): Promise<Outcome | undefined> {
    return this.#findEarlier(key, [{ type: "receive", message, principal, choices: [] }]);
  }

  /** A message to a task that is under way. */
  receive(key: TaskKey, message: Message, principal: Principal): Promise<Outcome> {
    return this.execute(key, [{ type: "receive", message, principal, choices: [] }]);
  }

  cancel(key: TaskKey, principal: Principal): Promise<Outcome> {
    return this.execute(key, [{ type: "cancel", principal }]);
  }

  /** The one way to change a task. With `fence`, as the worker that holds that lease. */
  execute(key: TaskKey, commands: readonly Command[], fence?: number): Promise<Outcome> {
    return this.#execute(key, commands, fence);
  }

  /** With `loaded`, what the caller has just read: if it is stale by now, the append says so. */
  async #execute(key: TaskKey, commands: readonly Command[], fence?: number, loaded?: Loaded): Promise<Outcome> {
    for (let conflicts = 0; conflicts < CONFLICTS_MAX; conflicts++) {
      const { folded, nowMs } = (conflicts === 0 ? loaded : undefined) ?? (await this.#load(key));
      const result = advanceLog(folded.task, commands, { key, nowMs, epoch: this.store.epoch });
      // What was sent before gives what it gave then, even if the task would say no by now.
      if (!result.ok) return (await this.#findEarlier(key, commands)) ?? result;
      if (!result.task) return { ok: false, refusal: { code: "task-unknown" } };
      const { lost } = result;
      if (result.events.length === 0) return { ok: true, task: result.task, events: [], lost };

      const entries = toEntries(key, folded.head, result.events);
      const rows = rowsOf(result.task, result.events, result.blobs);
      const appended = await this.store.append(key, folded.task?.version ?? 0, entries, rows, fence);
      if (appended === "fenced") throw new LeaseLost(`task ${key.id}: another worker holds it`);
      if (appended === "appended") {
        this.#remember(key, { task: result.task, head: entries.at(-1)?.hash });
        for (const listener of this.#listeners) listener(result.task);
        return { ok: true, task: result.task, events: result.events, lost };
      }
      const earlier = await this.#findEarlier(key, commands);
      if (earlier) return earlier;
    }
    throw new HoldpointError(
      "store-contended",
      `task ${key.id}: ${CONFLICTS_MAX} conflicts in a row; its rows may disagree with its log`,
    );
  }

  /** A message that was sent before gives what it gave then; the same id with another body is refused. */
  async #findEarlier(key: TaskKey, commands: readonly Command[]): Promise<Outcome | undefined> {
    for (const command of commands) {
      if (command.type !== "submit" && command.type !== "receive") continue;
      const { message, principal } = command;
      const id = await this.store.findMessage(key.tenant, messageKey(principal, message.messageId));
      if (id === undefined) continue;
      const { task } = await this.load({ tenant: key.tenant, id });
      const same = task?.messages.some((known) => canonicalJson(known.message) === canonicalJson(message));
      if (task && same && (command.type === "submit" || id === key.id)) return { ok: true, task, events: [] };
      return { ok: false, refusal: { code: "message-reused", messageId: message.messageId } };
    }
    return undefined;
  }

  async #askAgainIfChanged(task: Task, record: RequestRecord, answer: Answer): Promise<Outcome | undefined> {
    const change = await findChange(this, task, record, answer);
    if (change && "refusal" in change) return change;
    if (change) await this.execute(task.key, [change]);
    return undefined;
  }

  async #load(key: TaskKey): Promise<Loaded> {
    const cached = this.#cache.get(nameOf(key));
    const { events, head, nowMs } = await this.store.read(key, cached?.task?.version ?? 0);
    const folded =
      events.length === 0 && cached ? cached : { task: replay(key, events, cached?.task), head: head ?? cached?.head };
    if (folded.task) this.#remember(key, folded);
    return { folded, nowMs };
  }

  #remember(key: TaskKey, folded: Folded): void {
    const name = nameOf(key);
    const known = this.#cache.get(name);
    // Two readers may finish out of order; the longer log wins.
    if ((known?.task?.version ?? 0) > (folded.task?.version ?? 0)) return;
    if (folded.task?.end) this.#headers.delete(name);
    rememberNewest(this.#cache, name, folded);
  }
}

function rememberNewest<T>(map: Map<string, T>, name: string, value: T): void {
  map.delete(name);
  map.set(name, value);
  if (map.size <= CACHE_MAX) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    break;
  }
}
