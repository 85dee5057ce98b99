/** What `holdpoint dev` prints while it runs: each request as it opens, each decision, each end. */
import type { Runtime } from "../runtime/runtime.ts";
import { projectDecision, projectRequest, toIso } from "../task/request-view.ts";
import type { RequestRecord, Task } from "../task/task.ts";
import { whatOf } from "./inbox.ts";
import { quote } from "./render.ts";
import type { Terminal } from "./terminal.ts";
import { followUps, sayDecision, timeOf, titleOf } from "./words.ts";
import { wrapLines } from "./wrap.ts";

export function announce(runtime: Runtime, terminal: Terminal, suffix: string): () => void {
  return runtime.onChange((task) => {
    for (const record of task.requests) {
      // The events of one append have one time; what changed in this one bears it.
      if ((record.decision?.atMs ?? record.openedAtMs) === task.updatedAtMs)
        tellRequest(terminal, task, record, suffix);
    }
    if (task.end) {
      const { state, message } = task.end;
      const mark = state === "completed" ? terminal.paint.green("✓") : terminal.paint.red("✕");
      const words = quote(message).map((line) => `        ${line}`);
      const lines = [`${timeOf(toIso(task.updatedAtMs))}  ${mark} ${state}`, ...words];
      terminal.out(wrapLines(`${lines.join("\n")}\n`, terminal.output.columns));
    }
  });
}

export function tellRequest(
  { out, paint, isInteractive }: Terminal,
  task: Task,
  record: RequestRecord,
  suffix: string,
): void {
  const request = projectRequest(task, record);
  const time = timeOf(toIso(task.updatedAtMs));
  if (record.decision) {
    const said = sayDecision(projectDecision(record.decision));
    out(`${time}  ${titleOf(request)} ${said}   ${paint.dim(request.id)}\n`);
    return;
  }
  const risk = request.risk === "high" ? paint.red("HIGH") : request.risk;
  out(`${time}  ${paint.yellow("◷")} ${request.id}  ${whatOf(request)}  ${risk}\n`);
  for (const command of followUps(request, suffix, isInteractive)) out(`          ${command}\n`);
}
