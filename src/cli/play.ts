/**
 * What `holdpoint dev` shows: a task pauses before it deletes files, its worker process is killed, a person decides,
 * and another process goes on from there. Everything is real: the files, the SIGKILL, the database.
 */
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../ports/clock.ts";
import { listFolder, makePrivateFolder, removeFolder, writePrivateFile } from "../ports/files.ts";
import { systemIds } from "../ports/ids.ts";
import { spawnModule } from "../ports/processes.ts";
import { startNode } from "../runtime/node.ts";
import { verifyAudit } from "../store/seal.ts";
import { SqliteStore } from "../store/sqlite.ts";
import type { Principal } from "../task/request.ts";
import { findRequest, isOver, type Task } from "../task/task.ts";
import { type DataFolder, dataFolder } from "./data-folder.ts";
import { createPlayAgent } from "./play-agent.ts";

const TENANT = "default";
const PAUSE_MS = 400;

export async function play(folder: DataFolder, stopping: AbortSignal): Promise<void> {
  const stage = join(folder.path, "play");
  const workspace = join(stage, "workspace");
  const { database } = dataFolder(stage);
  removeFolder(stage);
  makePrivateFolder(workspace);
  for (const year of [2019, 2020, 2026]) writePrivateFile(join(workspace, `report-${year}.csv`), `year\n${year}\n`);
  const since = systemClock.nowMs();
  const say = (text: string): void => {
    process.stdout.write(`  ${String(systemClock.nowMs() - since).padStart(5)} ms  ${text}\n`);
  };
  const files = () => listFolder(workspace).join(", ");

  process.stdout.write("\nA task that is paused, killed, decided and finished:\n\n");
  const worker = spawnModule(
    fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "play-worker.ts" : "play-worker.js", import.meta.url)),
    [database, workspace],
  );
  say(`worker ${worker.pid} starts: "Tidy up the reports."   files: ${files()}`);
  const paused = await firstLine(worker.lines);
  if (stopping.aborted) return;
  if (!paused) return say("the worker ended before it could ask; see the lines above");
  const { taskId, requestId } = JSON.parse(paused) as { taskId: string; requestId: string };
  await worker.kill();
  say(`◷ the task waits for a person; worker ${worker.pid} is killed (SIGKILL)`);
  await systemClock.sleep(PAUSE_MS, stopping);

  const store = SqliteStore.open({ path: database, clock: systemClock, ids: systemIds });
  const agent = createPlayAgent(workspace);
  const node = startNode({ store, clock: systemClock, ids: systemIds, agents: new Map([[agent.name, agent]]) });
  const key = { tenant: TENANT, id: taskId };
  const { task } = await node.runtime.load(key);
  const request = task && findRequest(task, requestId)?.request;
  if (!request) return say("the request is lost: this must never happen; please report it");
  say(`process ${process.pid} opens the same database and finds the request: ${request.prompt}`);
  say(`  digest ${request.digest.slice(0, 23)}… binds the decision to exactly this   files: ${files()}`);
  await systemClock.sleep(PAUSE_MS, stopping);

  const over = waitForEnd(node.runtime.onChange.bind(node.runtime), taskId);
  const ana: Principal = { name: "ana", issuer: "play", tenant: TENANT, via: "dev" };
  await node.runtime.choose(TENANT, requestId, { choice: "approve", digest: request.digest }, ana);
  say("✓ ana approves; the tool runs once, with the bytes that were shown");
  const ended = await over;
  say(`✓ ${ended.end?.state}: "${ended.end?.message}"   files: ${files()}`);
  const again = await node.runtime.choose(TENANT, requestId, { choice: "deny" }, { ...ana, name: "ben" });
  if (!again.ok && again.refusal.code === "already-decided") {
    say(`✗ ben denies too late: already ${again.refusal.decision.outcome} by ${again.refusal.decision.principal.name}`);
  }
  await node.stop();
  const report = await verifyAudit(store);
  say(
    `${report.ok ? "✓" : "✗"} audit: ${report.events} events under ${report.seals} seals, ${report.ok ? "nothing was changed" : report.problems.join("; ")}`,
  );
  await store.close();
  process.stdout.write(`\nSee for yourself: npx holdpoint audit verify --data ${relative(".", stage)}\n`);
  process.stdout.write("The server stays up; Ctrl-C stops it.\n");
}

async function firstLine(lines: AsyncIterable<string>): Promise<string | undefined> {
  for await (const line of lines) return line;
  return undefined;
}

function waitForEnd(onChange: (listener: (task: Task) => void) => () => void, taskId: string): Promise<Task> {
  return new Promise((resolve) => {
    const forget = onChange((task) => {
      if (task.key.id !== taskId || !isOver(task)) return;
      forget();
      resolve(task);
    });
  });
}
