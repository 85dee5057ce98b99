/**
 * A whole Holdpoint in a process of its own, on SQLite, that kills itself at a given port call:
 *
 *   node test/faults/worker-process.ts <folder> <story> [17:before | store.append:after]
 *
 * that is, before its 17th port call, or after its first `store.append` has taken effect and before anybody knows.
 * It sends the story's tasks, works on them, and plays the person, until everything is over; then it seals, says which
 * port calls it made, and exits with 0. Started again on the same folder it goes on where the last one was killed.
 */
import { join } from "node:path";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { type HoldpointNode, startNode } from "../../src/runtime/node.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import type { Message } from "../../src/task/event.ts";
import { findRequest, isOver, type Task } from "../../src/task/task.ts";
import { type CallHandler, type PortCall, wrapPort } from "../../src/testing/crash-points.ts";
import { type Death, type Evidence, openEvidence } from "./evidence.ts";
import {
  AGENT,
  answerTo,
  createAgent,
  createPrincipal,
  OUTCOME_OF,
  STORIES,
  type Story,
  type StoryName,
  TENANT,
} from "./story.ts";

/** A port call of a process, by its number or by its point. */
export type Place = `${number | string}:${Death["when"]}`;

const ME = createPrincipal("ana");
/** A story that hangs has failed; and nothing outlives a test that has ended before it. */
const LIFE_MAX_MS = 20_000;

/** Counts the port calls of this process, and ends it at the chosen one as the operating system would. */
class Executioner implements CallHandler {
  readonly trace: string[] = [];
  readonly #place: string | undefined;
  readonly #evidence: Evidence;

  constructor(place: string | undefined, evidence: Evidence) {
    this.#place = place;
    this.#evidence = evidence;
  }

  async async<T>(call: PortCall, perform: () => Promise<T>): Promise<T> {
    const n = this.#enter(call);
    try {
      return await perform();
    } finally {
      this.#dieAt(n, call, "after");
    }
  }

  sync<T>(call: PortCall, perform: () => T): T {
    const n = this.#enter(call);
    try {
      return perform();
    } finally {
      this.#dieAt(n, call, "after");
    }
  }

  #enter(call: PortCall): number {
    const n = this.trace.push(call.point);
    this.#dieAt(n, call, "before");
    return n;
  }

  #dieAt(n: number, { point }: PortCall, when: Death["when"]): void {
    if (this.#place !== `${n}:${when}` && this.#place !== `${point}:${when}`) return;
    this.#evidence.deaths.write({ point, when });
    process.kill(process.pid, "SIGKILL");
  }
}

async function main(folder: string, story: Story, place: string | undefined): Promise<void> {
  const evidence = openEvidence(folder);
  const handler = new Executioner(place, evidence);
  const clock = wrapPort("clock", systemClock, handler);
  const ids = wrapPort("ids", systemIds, handler);
  const open = () => SqliteStore.open({ path: join(folder, "test.db"), clock, ids });
  const store = wrapPort("store", handler.sync<Store>({ point: "store.open", args: [] }, open), handler);
  const agent = wrapPort(
    "agent",
    createAgent(
      story,
      (entry) => evidence.ledger.write(entry),
      (tool) => wrapPort("tool", tool, handler),
    ),
    handler,
  );
  // So short that a tool outlives a heartbeat, and that nobody waits long for a deadline.
  const waker = { heartbeatMs: 5, pollMs: 20, onFailure: (_: unknown, error: unknown) => fail(error) };
  const node = startNode({ store, clock, ids, agents: new Map([[agent.name, agent]]), waker });
  await playPerson(node, story, evidence);
  await node.stop();
  await store.close();
  process.stdout.write(`${JSON.stringify({ trace: handler.trace })}\n`);
}

/** Sends what is to be done and answers what is asked; whatever it has not been told, it does again. */
async function playPerson({ runtime }: HoldpointNode, story: Story, { acks }: Evidence): Promise<void> {
  const told = new Set(acks.read().map((ack) => (ack.type === "submitted" ? ack.messageId : ack.requestId)));
  const tasks = await Promise.all(
    story.messageIds.map(async (messageId) => {
      const message = createMessage(messageId);
      const result = await runtime.submit({ tenant: TENANT, agent: AGENT, principal: ME, message });
      if (!result.ok) throw new Error(`${messageId} was refused: ${JSON.stringify(result.refusal)}`);
      acks.write({ type: "submitted", taskId: result.task.key.id, messageId });
      return result.task;
    }),
  );
  await Promise.all(tasks.map((task) => followTask(runtime, story, task)));

  async function followTask(runtime: Runtime, story: Story, first: Task): Promise<void> {
    for (;;) {
      const changed = nextChange(runtime, first);
      const { task = first } = await runtime.load(first.key);
      if (story.saysMore) await sayMore(task);
      if (isToBeStopped(story, task)) await runtime.cancel(task.key, ME);
      for (const { request } of task.requests) if (!told.has(request.id)) await answer(task, request.id);
      if (isOver(task)) return;
      await changed;
    }
  }

  async function sayMore({ key }: Task): Promise<void> {
    const messageId = `more for ${key.id}`;
    if (told.has(messageId)) return;
    const result = await runtime.receive(key, createMessage(messageId), ME);
    if (!result.ok && result.refusal.code !== "task-over") throw new Error(JSON.stringify(result.refusal));
    if (result.ok) acks.write({ type: "submitted", taskId: key.id, messageId });
    told.add(messageId);
  }

  async function answer(task: Task, id: string): Promise<void> {
    const record = findRequest(task, id);
    const choice = record && answerTo(record.request);
    // What a deadline or the end of the task has closed is nothing to answer any more.
    if (!choice || record.decision?.by) return;
    const result = await runtime.choose(TENANT, id, choice, ME);
    told.add(id);
    if (result.ok)
      return acks.write({ type: "decided", requestId: id, outcome: OUTCOME_OF[choice.choice], by: ME.name });
    const { refusal } = result;
    const isLate = refusal.code === "already-decided" && refusal.decision.by !== undefined;
    if (!isLate && refusal.code !== "request-expired") throw new Error(`${id}: ${JSON.stringify(refusal)}`);
  }
}

function isToBeStopped({ stopped = [] }: Story, task: Task): boolean {
  const isMeant = stopped.some((id) => id === task.messages[0]?.message.messageId);
  return isMeant && !isOver(task) && !task.cancelRequestedBy && Object.keys(task.effects).length > 0;
}

function createMessage(messageId: string): Message {
  return { messageId, role: "user", parts: [{ text: messageId }] };
}

function nextChange(runtime: Runtime, { key }: Task): Promise<void> {
  return new Promise((resolve) => {
    const forget = runtime.onChange((task) => {
      if (task.key.id !== key.id) return;
      forget();
      resolve();
    });
  });
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}

const [folder, name, place] = process.argv.slice(2);
const story: Story | undefined = STORIES[name as StoryName];
if (!folder || !story) fail(`usage: worker-process.ts <folder> <${Object.keys(STORIES).join(" | ")}> [17:before]`);
else {
  setTimeout(() => fail(`not over after ${LIFE_MAX_MS} ms`), LIFE_MAX_MS).unref();
  main(folder, story, place).catch(fail);
}
