/** All figures on SQLite FULL. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { startOften, startProcess } from "./children.ts";
import type { GateRun } from "./gate.ts";
import {
  attendFigures,
  type Bareness,
  type Database,
  expiryFigures,
  sizeFigures,
  throughputFigures,
} from "./gate-figures.ts";
import type { Deadlines } from "./gate-prepare.ts";
import type { Figure } from "./gate-report.ts";
import { watchStalls } from "./measure.ts";

const SQLITE: Database = { name: "SQLite FULL", decisionP99Ms: 25, isEmbedded: true };
const DAY_MS = 86_400_000;

export async function measureSqlite(run: GateRun): Promise<Figure[]> {
  const { scale, folder, children, say } = run;
  const { tasks, scans, decisions } = scale;

  say("SQLite: pause, decide, resume");
  const beds = { product: fileIn(run, "product.db"), twin: fileIn(run, "twin.db") };
  const levels = await children.run("throughput", { ...beds, disk: folder, levels: scale.levels });

  say(`SQLite: ${tasks} tasks without deadlines`);
  const address = fileIn(run, "plain.db");
  const size = await children.run("prepare", { address, tasks });
  const ready = { readyMs: await startOften(children, address, scale.starts), bare: await startBare(address.path) };
  say("SQLite: lists, due scans and decisions over them");
  const attended = await children.run("attend", { address, tasks, scans, decisions });

  const count = tasks.toLocaleString("en");
  return [
    ...throughputFigures(SQLITE, levels),
    ...sizeFigures(SQLITE, "no deadline", size),
    ...attendFigures(SQLITE, count, "no deadlines", attended, ready),
    ...(await measureDeadlines(run, "opened")),
    ...(await measureDeadlines(run, "random")),
  ];
}

async function measureDeadlines(run: GateRun, order: Deadlines["order"]): Promise<Figure[]> {
  const { children, say } = run;
  const { tasks, scans, decisions } = run.scale;
  const deadlines = { fromMs: Date.now() + DAY_MS, order };
  const address = fileIn(run, `${order}.db`);
  say(`SQLite: ${tasks} tasks with deadlines in one second, ${order}`);
  const size = await children.run("prepare", { address, tasks, deadlines });
  const attended =
    order === "opened" ? await children.run("attend", { address, tasks, scans, decisions: 0 }) : undefined;

  say("SQLite: all of them expire");
  const twin = fileIn(run, `${order}-twin.db`);
  copyFileSync(address.path, twin.path);
  const stopWatch = watchStalls();
  const expired = await children.run("expire", {
    address,
    twin,
    tasks,
    bareTasks: decisions,
    deadlinesFromMs: deadlines.fromMs,
  });
  const idle = stopWatch();
  return [
    ...(attended ? sizeFigures(SQLITE, "with a deadline", size) : []),
    ...(attended ? attendFigures(SQLITE, tasks.toLocaleString("en"), "with deadlines", attended) : []),
    ...expiryFigures(SQLITE, tasks, order, expired, idle.maxMs),
  ];
}

function fileIn({ folder }: GateRun, name: string) {
  return { kind: "sqlite", path: join(folder, name) } as const;
}

/** The least that a process over this database can be. */
async function startBare(path: string): Promise<Bareness> {
  const script = `
    const db = new (require("node:sqlite").DatabaseSync)(${JSON.stringify(path)});
    db.prepare("select * from requests where status = 'open' limit 50").all();
    process.send(process.memoryUsage().rss, () => process.disconnect());`;
  const [told] = await startProcess(["-e", script]);
  return { readyMs: told.atMs, rssBytes: Number(told.message) };
}
