/** The figures on PostgreSQL: a real server of its own, started for them, with fsync on. */
import { postgresAvailable, startPostgres } from "../test/postgres/server.ts";
import { startOften, startProcess } from "./children.ts";
import type { GateRun } from "./gate.ts";
import { attendFigures, type Bareness, type Database, sizeFigures, throughputFigures } from "./gate-figures.ts";
import type { Figure } from "./gate-report.ts";

const POSTGRES: Database = { name: "PostgreSQL", decisionP99Ms: 60, isEmbedded: false };

export async function measurePostgres({ scale, root, folder, children, say }: GateRun): Promise<Figure[]> {
  const available = postgresAvailable();
  if (!available.ok) {
    say(`PostgreSQL is left out: ${available.reason}`);
    return [];
  }
  const { tasks, scans, decisions } = scale;
  const server = await startPostgres();
  const makeDatabase = async () => ({ kind: "postgres", url: await server.createDatabase() }) as const;
  try {
    say("PostgreSQL: pause, decide, resume");
    const beds = { product: await makeDatabase(), twin: await makeDatabase() };
    const levels = await children.run("throughput", { ...beds, disk: folder, levels: scale.levels });

    say(`PostgreSQL: ${tasks} tasks without deadlines`);
    const address = await makeDatabase();
    const size = await children.run("prepare", { address, tasks });
    const ready = {
      readyMs: await startOften(children, address, scale.starts),
      bare: await startBare(root, address.url),
    };
    say("PostgreSQL: lists, due scans and decisions over them");
    const attended = await children.run("attend", { address, tasks, scans, decisions });
    return [
      ...throughputFigures(POSTGRES, levels),
      ...sizeFigures(POSTGRES, "no deadline", size),
      ...attendFigures(POSTGRES, tasks.toLocaleString("en"), "no deadlines", attended, ready),
    ];
  } finally {
    await server.remove();
  }
}

/** The least that a process over this database can be. */
async function startBare(root: string, url: string): Promise<Bareness> {
  const script = `
    const client = new (require("pg").Client)({ connectionString: ${JSON.stringify(url)} });
    client.connect()
      .then(() => client.query("select * from holdpoint.requests where status = 'open' limit 50"))
      .then(() => process.send(process.memoryUsage().rss, () => { process.disconnect(); client.end(); }));`;
  const [told] = await startProcess(["-e", script], root);
  return { readyMs: told.atMs, rssBytes: Number(told.message) };
}
