/** Whoever sends the tasks of a story and answers what they ask, in whichever process is alive. */

import type { Answer } from "../../src/runtime/answers.ts";
import type { HoldpointNode } from "../../src/runtime/node.ts";
import type { Runtime } from "../../src/runtime/runtime.ts";
import type { Message } from "../../src/task/event.ts";
import type { Request } from "../../src/task/request.ts";
import { findRequest, isOver, type Task } from "../../src/task/task.ts";
import type { Evidence } from "./evidence.ts";
import { AGENT, createPrincipal, OUTCOME_OF, type Story, TENANT } from "./story.ts";

const ME = createPrincipal("ana");

export type Errands = Pick<Story, "messageIds" | "saysMore" | "stopped">;

/** Sends what is to be done and answers what is asked; whatever it has not been told, it does again. */
export async function playPerson(
  { runtime }: Pick<HoldpointNode, "runtime">,
  story: Errands,
  { acks }: Evidence,
  answerTo: (request: Request) => Answer | undefined,
): Promise<void> {
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

  async function followTask(runtime: Runtime, story: Errands, first: Task): Promise<void> {
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
    // It was replaced, and what replaced it is asked anew.
    if (refusal.code === "digest-differs") return;
    const isLate = refusal.code === "already-decided" && refusal.decision.by !== undefined;
    if (!isLate && refusal.code !== "request-expired") throw new Error(`${id}: ${JSON.stringify(refusal)}`);
  }
}

function isToBeStopped({ stopped = [] }: Errands, task: Task): boolean {
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
