/**
 * What a stream tells of new events: the same for every reader, however the events were read, with ids made from
 * positions.
 */
import type { TaskEvent } from "../task/event.ts";
import { evolve, openRequests, type Task } from "../task/task.ts";
import { projectToolMessage, type Speech } from "./project-message.ts";
import { isAskedWithNext, projectArtifact, projectStatus } from "./project-task.ts";
import type { Frame, WireMessage, WireUpdate } from "./wire.ts";

/** `task` is the task before `events`, which are whole appends and follow on it. */
export function projectEvents(
  task: Task,
  events: readonly TaskEvent[],
  speech: Speech,
): { readonly frames: readonly Frame[]; readonly task: Task } {
  const frames: Frame[] = [];
  let now = task;
  // How many decisions of the message that was just read are still to come.
  let brought = 0;
  for (const [i, event] of events.entries()) {
    now = evolve(now, event, task.key);
    if (event.type === "message-received") brought = event.decided.length;
    else if (event.type === "request-decided" && brought > 0) brought--;
    const isHalf = brought > 0 || continues(event, events[i + 1]);
    const update = isHalf ? undefined : projectEvent(now, event, speech);
    if (update) frames.push({ id: `${event.seq}-1`, update, rests: isResting(now) });
  }
  return { frames, task: now };
}

/** Waiting for a person, or over. */
export function isResting(task: Task): boolean {
  return task.end !== undefined || openRequests(task).length > 0;
}

/** Whether the rest of the same append says what the status is: half of it would be a status that never was. */
function continues(event: TaskEvent, next: TaskEvent | undefined): boolean {
  if (event.type === "request-opened") return isAskedWithNext(event, next);
  if (event.type !== "request-decided") return false;
  // Closed with its task, or replaced: the end or the new question follows.
  if (event.by === "task" || event.by === "policy") return true;
  const isSameAppend = event.by === "deadline" && next?.at === event.at;
  return isSameAppend && (next?.type === "request-decided" || next?.type === "task-failed");
}

function projectEvent(task: Task, event: TaskEvent, speech: Speech): WireUpdate | undefined {
  switch (event.type) {
    case "request-opened":
    case "request-decided":
    case "task-completed":
    case "task-failed":
    case "task-canceled":
    case "task-rejected":
      return statusUpdate(task, event, speech);
    case "artifact-updated":
      return {
        artifactUpdate: {
          taskId: task.key.id,
          contextId: task.contextId,
          artifact: projectArtifact(event.artifact),
          append: event.append,
          lastChunk: event.lastChunk,
        },
      };
    default: {
      const message = projectToolMessage(task, event);
      return message && statusUpdate(task, event, speech, message);
    }
  }
}

function statusUpdate(task: Task, event: TaskEvent, speech: Speech, message?: WireMessage): WireUpdate {
  const { key, contextId } = task;
  return { statusUpdate: { taskId: key.id, contextId, status: projectStatus(task, event, speech, message) } };
}
