/**
 * Tasks that wait in their worker's slot (`hitl.mode: blocking`). Without a server that is the command itself: they live
 * as long as it does, and no other command can decide for them.
 */
import { OWNER } from "../server/auth.ts";
import type { Holdpoint } from "../server/compose.ts";
import type { Task } from "../task/task.ts";
import type { Terminal } from "./terminal.ts";

const PAGE = 200;
/** What waits beyond this is settled all the same, only later. */
const LOOKED_AT_MAX = 1000;
const SETTLE_MAX_MS = 5000;
const LOOK_AGAIN_MS = 10;

/** Whether a task of this agent could come to wait for a person in this very process. */
export async function mayWaitHere({ agents, config }: Holdpoint, name: string): Promise<boolean> {
  const agent = agents.get(name);
  if (agent?.mode !== "blocking" || !agent.tracked) return false;
  // What a function may ask is not known before it does.
  if (config.agents.get(name)?.type === "code") return true;
  return (await agent.tools.list()).some(({ gated }) => gated);
}

/**
 * Whoever waited with a task is gone, and the worker here ends it as lost. Lets that happen before anybody lists it or
 * decides about it, and says so. `openedAtMs`: when the folder was opened.
 */
export async function settleLost(
  holdpoint: Holdpoint,
  openedAtMs: number,
  { clock, note }: Pick<Terminal, "clock" | "note">,
): Promise<void> {
  const { config, store } = holdpoint;
  // Other nodes may share the database: there the one who waits may be alive.
  if (config.store?.type === "postgres") return;
  const untilMs = openedAtMs + SETTLE_MAX_MS;
  for (const id of await waitingTasks(holdpoint)) {
    let task = await load(holdpoint, id);
    while (task?.mode === "blocking" && !task.end && clock.nowMs() < untilMs) {
      await clock.sleep(LOOK_AGAIN_MS);
      task = await load(holdpoint, id);
    }
  }
  // Some were ended before they could be listed as open.
  const { items } = await store.listTasks({ tenant: OWNER.tenant, limit: PAGE });
  for (const { taskId: id, updatedAtMs } of items) {
    if (updatedAtMs < openedAtMs) break;
    const task = await load(holdpoint, id);
    if (task?.mode !== "blocking" || task.end?.code !== "lost") continue;
    const where = "waited for a person in a command or a server that has stopped (hitl.mode blocking)";
    note(`task ${id} is lost: it ${where}. Nothing about it can be decided any more; run it again.\n`);
  }
}

async function load({ runtime }: Holdpoint, id: string): Promise<Task | undefined> {
  return (await runtime.load({ tenant: OWNER.tenant, id })).task;
}

async function waitingTasks({ store }: Holdpoint): Promise<ReadonlySet<string>> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.listOpenRequests({ tenant: OWNER.tenant, limit: PAGE, ...(cursor ? { cursor } : {}) });
    ids.push(...page.items.map(({ taskId }) => taskId));
    cursor = page.nextCursor;
  } while (cursor && ids.length < LOOKED_AT_MAX);
  return new Set(ids);
}
