/** Reads everything back and says what is wrong with it: the invariants, the audit, and what is not over. */
import { verifyAudit } from "../../src/store/seal.ts";
import type { Store, TaskListRow } from "../../src/store/store.ts";
import { checkHistory, type TaskHistory } from "../../src/testing/checker.ts";
import type { Evidence } from "./evidence.ts";
import { TENANT, TOOL_RULES } from "./story.ts";

export interface Judgement {
  readonly problems: readonly string[];
  readonly tasks: readonly TaskHistory[];
  readonly effects: number;
}

/** Of a store on which everything was given the time to end. */
export async function judge(store: Store, { ledger, acks }: Evidence, toolRules = TOOL_RULES): Promise<Judgement> {
  const tasks = await readTasks(store);
  const entries = ledger.read();
  const problems = checkHistory({ tasks, ledger: entries, acks: acks.read(), toolRules, settled: true });
  const audit = await verifyAudit(store);
  problems.push(...audit.problems.map((problem) => `I35 ${problem}`));
  if (audit.unsealed > 0) problems.push(`I35 ${audit.unsealed} events are not sealed`);
  return { problems, tasks, effects: entries.length };
}

async function readTasks(store: Store): Promise<TaskHistory[]> {
  const rows: TaskListRow[] = [];
  for (let cursor: string | undefined, first = true; first || cursor; first = false) {
    const page = await store.listTasks({ tenant: TENANT, limit: 200, ...(cursor ? { cursor } : {}) });
    rows.push(...page.items);
    cursor = page.nextCursor;
  }
  return Promise.all(
    rows.map(async ({ taskId, state }) => {
      const key = { tenant: TENANT, id: taskId };
      const { events } = await store.read(key);
      const count = events.filter(({ type }) => type === "request-opened").length;
      const numbers = Array.from({ length: count }, (_, i) => i + 1);
      const requestRows = await Promise.all(numbers.map((n) => store.readRequestRow(key, n)));
      return { key, events, rowState: state, requestRows };
    }),
  );
}
