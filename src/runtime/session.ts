/**
 * What was said before: the earlier tasks of a context, for the model of the next one. Trimmed by rule: the newest
 * tasks that fit, each whole or not at all, tool calls left out.
 */
import type { PromptMessage } from "../models/model.ts";
import type { Store } from "../store/store.ts";
import { replay } from "../task/log.ts";
import { isOver, type Task } from "../task/task.ts";
import { textOf } from "./conversation.ts";

const SESSION_TASKS_MAX = 20;
export const SESSION_CHARS_MAX = 32 * 1024;

export async function readSession(store: Store, task: Task): Promise<PromptMessage[]> {
  const { tenant } = task.key;
  const query = { tenant, contextId: task.contextId, limit: SESSION_TASKS_MAX + 1 };
  const { items } = await store.listTasks(query);
  const earlier = items
    .filter(({ taskId, agent, createdAtMs }) => {
      const isBefore = createdAtMs < task.createdAtMs || (createdAtMs === task.createdAtMs && taskId < task.key.id);
      return isBefore && agent === task.agent;
    })
    .toSorted((a, b) => b.createdAtMs - a.createdAtMs || (a.taskId < b.taskId ? 1 : -1));
  const told: PromptMessage[][] = [];
  let chars = 0;
  for (const { taskId } of earlier) {
    const key = { tenant, id: taskId };
    const past = replay(key, (await store.read(key)).events);
    if (!past || !isOver(past)) continue;
    const messages = tell(past);
    chars += messages.reduce((sum, { text }) => sum + text.length, 0);
    if (chars > SESSION_CHARS_MAX) break;
    told.unshift(messages);
  }
  return told.flat();
}

function tell(task: Task): PromptMessage[] {
  const said = task.messages.filter(({ decided }) => !decided).map(({ message }) => textOf(message));
  const users = said.map((text): PromptMessage => ({ role: "user", text }));
  return [...users, { role: "assistant", text: task.end?.message ?? "", calls: [] }];
}
