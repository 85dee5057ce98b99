/** Finds what is shown. Whatever is not the caller's tenant's does not exist. */
import { findTool } from "../runtime/agent.ts";
import { bringBack } from "../runtime/long-arguments.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Page, RequestQuery, TaskListRow } from "../store/store.ts";
import type { TaskEvent, TaskKey } from "../task/event.ts";
import { replay } from "../task/log.ts";
import { parseRequestId, requestId } from "../task/request.ts";
import { projectRequest, type RequestView, toIso } from "../task/request-view.ts";
import { findRequest, type RequestRecord, type Task, type TaskState } from "../task/task.ts";

export interface Found {
  readonly task: Task;
  readonly record: RequestRecord;
}

export async function findRecord(runtime: Runtime, tenant: string, id: string): Promise<Found | undefined> {
  const parsed = parseRequestId(id);
  if (!parsed) return undefined;
  const { task } = await runtime.load({ tenant, id: parsed.taskId });
  const record = task && findRequest(task, id);
  return task && record ? { task, record } : undefined;
}

/** With all bytes of its arguments, also those that stand beside the log: a person must see everything. */
export async function showRequest(runtime: Runtime, { task, record }: Found): Promise<RequestView> {
  const view = projectRequest(task, record);
  const tool = view.tool === null ? undefined : findTool(runtime.agents, task, view.tool);
  if (!tool || view.args === null) return view;
  return { ...view, args: await bringBack(runtime.store, task.key, tool, view.args) };
}

export interface RequestPage {
  readonly requests: readonly RequestView[];
  readonly nextCursor?: string;
}

/** The oldest first. Arguments that stand beside the log are only referred to. */
export async function listRequests(runtime: Runtime, query: RequestQuery): Promise<RequestPage> {
  const { items, nextCursor } = await runtime.store.listOpenRequests(query);
  const requests = await Promise.all(
    items.map(async ({ taskId, n }) => {
      const found = await findRecord(runtime, query.tenant, requestId(taskId, n));
      // It may have been decided since it was listed.
      return found && !found.record.decision ? [projectRequest(found.task, found.record)] : [];
    }),
  );
  return { requests: requests.flat(), ...(nextCursor === undefined ? {} : { nextCursor }) };
}

/** A task with its whole log, from one reading. */
export async function readTask(
  runtime: Runtime,
  key: TaskKey,
): Promise<{ task: Task; events: readonly TaskEvent[] } | undefined> {
  const { events } = await runtime.store.read(key);
  const task = replay(key, events);
  return task && { task, events };
}

export interface TaskRowView {
  readonly id: string;
  readonly agent: string;
  readonly contextId: string;
  readonly state: TaskState;
  readonly version: number;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface TaskPage {
  readonly tasks: readonly TaskRowView[];
  readonly nextCursor?: string;
}

export function projectTaskPage({ items, nextCursor }: Page<TaskListRow>): TaskPage {
  const tasks = items.map(({ taskId, agent, contextId, state, version, createdAtMs, updatedAtMs }) => ({
    id: taskId,
    agent,
    contextId,
    state,
    version,
    createdAt: toIso(createdAtMs),
    updatedAt: toIso(updatedAtMs),
  }));
  return { tasks, ...(nextCursor === undefined ? {} : { nextCursor }) };
}
