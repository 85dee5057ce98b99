/** A task as A2A shows it: a pure function of its log. */
import type { TaskEvent } from "../task/event.ts";
import type { JsonObject } from "../task/json.ts";
import type { Request } from "../task/request.ts";
import { toIso } from "../task/request-view.ts";
import { openRequests, stateOf, type Task } from "../task/task.ts";
import {
  projectClientMessage,
  projectDecided,
  projectQuestion,
  projectText,
  projectToolMessage,
  type Speech,
} from "./project-message.ts";
import { WIRE_STATES, type WireArtifact, type WireMessage, type WireStatus, type WireTask } from "./wire.ts";

export interface TaskOptions {
  readonly speech: Speech;
  /** How many of the newest messages; absent: all of them. */
  readonly historyLength?: number | undefined;
  /** Absent: they are shown. */
  readonly withArtifacts?: boolean;
  readonly metadata?: JsonObject;
}

/** `events` is the whole log of `task`. */
export function projectTask(task: Task, events: readonly TaskEvent[], options: TaskOptions): WireTask {
  const { speech, historyLength, withArtifacts = true, metadata } = options;
  const artifacts = withArtifacts ? projectArtifacts(events) : [];
  const since = events.findLast(({ type }) => CHANGES_STATUS.has(type));
  const history = historyLength === 0 ? [] : projectHistory(task, events, speech);
  return {
    id: task.key.id,
    contextId: task.contextId,
    status: projectStatus(task, since, speech),
    ...(artifacts.length > 0 ? { artifacts } : {}),
    ...(history.length > 0 ? { history: historyLength ? history.slice(-historyLength) : history } : {}),
    ...(metadata ? { metadata } : {}),
  };
}

/** What it waits for, or how it ended, since the event `since`; else what was said last. */
export function projectStatus(
  task: Task,
  since: TaskEvent | undefined,
  speech: Speech,
  message?: WireMessage,
): WireStatus {
  const said = projectStanding(task, since, speech) ?? message;
  return {
    state: WIRE_STATES[stateOf(task)],
    ...(said ? { message: said } : {}),
    timestamp: toIso(task.updatedAtMs),
  };
}

function projectStanding(task: Task, since: TaskEvent | undefined, speech: Speech): WireMessage | undefined {
  const seq = since?.seq ?? task.version;
  if (task.end) return projectText(task, seq, task.end.message);
  const open = openRequests(task);
  if (open.length === 0) return undefined;
  const question = projectQuestion(task, seq, open, speech);
  // What is left of a question that was answered in part is another message than the answer.
  return since?.type === "request-opened" ? question : { ...question, messageId: `${question.messageId}-open` };
}

const CHANGES_STATUS: ReadonlySet<TaskEvent["type"]> = new Set([
  "request-opened",
  "request-decided",
  "call-refused",
  "task-completed",
  "task-failed",
  "task-canceled",
  "task-rejected",
]);

/** Everything that was said, asked, called and decided, each once. */
function projectHistory(task: Task, events: readonly TaskEvent[], speech: Speech): WireMessage[] {
  const brought = new Set(events.flatMap((event) => (event.type === "message-received" ? event.decided : [])));
  let asked: Request[] = [];
  return events.flatMap((event, i): WireMessage[] => {
    switch (event.type) {
      case "task-submitted":
      case "message-received":
        return [projectClientMessage(task, event.message)];
      case "request-opened": {
        asked.push(event.request);
        // What was asked together is one message.
        if (isAskedWithNext(event, events[i + 1])) return [];
        const together = asked;
        asked = [];
        return [projectQuestion(task, event.seq, together, speech)];
      }
      case "request-decided":
        return brought.has(event.requestId) ? [] : [projectDecided(task, event)];
      case "task-completed":
      case "task-failed":
      case "task-canceled":
      case "task-rejected":
        return [projectText(task, event.seq, event.message)];
      default: {
        const message = projectToolMessage(task, event);
        return message ? [message] : [];
      }
    }
  });
}

/** All questions of a turn are opened in one append; what replaces another stands alone. */
export function isAskedWithNext(event: TaskEvent, next: TaskEvent | undefined): boolean {
  if (event.type !== "request-opened" || next?.type !== "request-opened") return false;
  return !("supersedes" in next.request && next.request.supersedes !== undefined);
}

function projectArtifacts(events: readonly TaskEvent[]): WireArtifact[] {
  const byId = new Map<string, WireArtifact>();
  for (const event of events) {
    if (event.type !== "artifact-updated") continue;
    const artifact = projectArtifact(event.artifact);
    const earlier = event.append ? byId.get(artifact.artifactId) : undefined;
    const parts = [...(earlier?.parts ?? []), ...artifact.parts];
    byId.set(artifact.artifactId, { ...earlier, ...artifact, parts });
  }
  return [...byId.values()];
}

/** An artifact of the log is JSON that an agent wrote; what A2A requires of one is seen to here. */
export function projectArtifact(artifact: JsonObject): WireArtifact {
  const { artifactId, parts } = artifact;
  return {
    ...artifact,
    artifactId: typeof artifactId === "string" ? artifactId : "artifact",
    // Parts are objects when they were written by `artifact()`, which is the only way.
    parts: Array.isArray(parts) ? (parts as JsonObject[]) : [],
  };
}
