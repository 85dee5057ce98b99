/** From commands to a longer log: what the runtime and every test do between reading and appending. Pure. */
import type { Circumstances, Command, Refusal } from "./command.ts";
import { decide } from "./decide.ts";
import { EVENT_VERSION, type Fact, type TaskEvent, type TaskKey } from "./event.ts";
import { evolve, type Task } from "./task.ts";
import type { Blob, Lost } from "./verdict.ts";

export type Advance =
  | {
      readonly ok: true;
      readonly task: Task | undefined;
      readonly events: readonly TaskEvent[];
      readonly blobs: readonly Blob[];
      readonly lost: readonly Lost[];
    }
  | { readonly ok: false; readonly refusal: Refusal; readonly lost?: readonly Lost[] };

/** Decides the commands one after the other; all count, or none. */
export function advanceLog(task: Task | undefined, commands: readonly Command[], now: Circumstances): Advance {
  const events: TaskEvent[] = [];
  const blobs: Blob[] = [];
  const lost: Lost[] = [];
  let current = task;
  for (const command of commands) {
    const verdict = decide(current, command, now);
    if (!verdict.ok) return verdict;
    for (const fact of verdict.facts) {
      const event = envelop(fact, current, now);
      events.push(event);
      current = evolve(current, event, now.key);
    }
    blobs.push(...verdict.blobs);
    lost.push(...(verdict.lost ?? []));
  }
  return { ok: true, task: current, events, blobs, lost };
}

export function replay(key: TaskKey, events: readonly TaskEvent[], from?: Task): Task | undefined {
  return events.reduce<Task | undefined>((task, event) => evolve(task, event, key), from);
}

function envelop(fact: Fact, task: Task | undefined, { nowMs }: Circumstances): TaskEvent {
  const agent = fact.type === "task-submitted" ? fact.agent : (task?.agent ?? "");
  return {
    ...fact,
    seq: (task?.version ?? 0) + 1,
    // Within a log time never goes back, whatever a database's clock does.
    at: Math.max(nowMs, task?.updatedAtMs ?? 0),
    v: EVENT_VERSION,
    path: [agent],
  };
}
