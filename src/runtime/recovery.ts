/** Which tasks do not go on after their server stopped. What is lost is said, never silently dropped. */
import type { Lease } from "../store/store.ts";
import { openRequests, type Task } from "../task/task.ts";
import type { Agent } from "./agent.ts";

/** Asked at the first look of an advance: whoever waited in his slot for this task is gone, or it was cut off. */
export function findLoss(
  task: Task,
  agent: Agent | undefined,
  { abandoned }: Pick<Lease, "abandoned">,
  nowMs: number,
): { readonly code: string; readonly message: string } | undefined {
  const lost = (message: string) => ({
    code: "lost",
    message: `lost: the server stopped while this task was ${message}`,
  });
  if (task.mode === "blocking" && openRequests(task).length > 0) return lost("waiting (hitl.mode blocking)");
  if (!abandoned || !agent || task.version === 1 || isAtRest(task)) return undefined;
  const { autoResume, resumeTimeoutMs } = agent.recovery;
  if (!autoResume) return lost("working, and it is not resumed (task.checkpoint)");
  if (resumeTimeoutMs === null || nowMs - task.updatedAtMs <= resumeTimeoutMs) return undefined;
  return lost(`working, longer ago than ${resumeTimeoutMs / 1000} s (task.checkpoint.recovery.resume_timeout)`);
}

/** It waits for a person, who has all the time that the request gives; or somebody has just decided. */
function isAtRest(task: Task): boolean {
  const isDecided = task.requests.some(({ decision }) => decision?.atMs === task.updatedAtMs);
  return isDecided || openRequests(task).length > 0;
}
