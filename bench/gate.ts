/** The gate's own figures: pause, decide, and 100,000 tasks that wait. In process, on SQLite FULL and PostgreSQL. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Children } from "./children.ts";
import { timeFdatasync } from "./floor.ts";
import { measurePostgres } from "./gate-postgres.ts";
import { describeMachine, type Figure, printReport, saveReport } from "./gate-report.ts";
import { measureSqlite } from "./gate-sqlite.ts";
import { type Summary, summarize } from "./measure.ts";

export interface GateRun {
  readonly scale: Scale;
  readonly root: string;
  /** For databases; inside the repository, so on its disk. */
  readonly folder: string;
  readonly children: Children;
  /** What happens now, for whoever waits. */
  say(text: string): void;
}

interface Scale {
  readonly tasks: number;
  readonly scans: number;
  readonly decisions: number;
  readonly starts: number;
  readonly levels: readonly { readonly atOnce: number; readonly tasks: number }[];
}

const FULL: Scale = {
  tasks: 100_000,
  scans: 1000,
  decisions: 2000,
  starts: 5,
  levels: [
    { atOnce: 1, tasks: 2_000 },
    { atOnce: 16, tasks: 8_000 },
    { atOnce: 64, tasks: 16_000 },
  ],
};

const QUICK: Scale = {
  tasks: 5_000,
  scans: 200,
  decisions: 300,
  starts: 2,
  levels: [
    { atOnce: 1, tasks: 200 },
    { atOnce: 16, tasks: 800 },
    { atOnce: 64, tasks: 1_600 },
  ],
};

export const GATE_HELP = `gate [--quick] [--only sqlite|postgres] [--profile] [--keep]
  --quick    5,000 tasks instead of 100,000, and shorter loops
  --only     one database
  --profile  CPU profiles of every process, in bench/results/profiles
  --keep     leave the databases in bench/results`;

export async function gate(args: readonly string[], root: string): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string" },
      profile: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
    },
  });
  const results = join(root, "bench", "results");
  mkdirSync(results, { recursive: true });
  const folder = mkdtempSync(join(results, "run-"));
  const startMs = performance.now();
  try {
    const run: GateRun = {
      scale: values.quick ? QUICK : FULL,
      root,
      folder,
      children: new Children(root, folder, values.profile ? join(results, "profiles") : undefined),
      say: (text) => process.stderr.write(`${Math.round((performance.now() - startMs) / 1000)} s  ${text}\n`),
    };
    const disk = summarize(timeFdatasync(folder, 2000));
    const figures = diskFigures(disk);
    if (values.only !== "postgres") figures.push(...(await measureSqlite(run)));
    if (values.only !== "sqlite") figures.push(...(await measurePostgres(run)));
    const machine = describeMachine(root, disk.p50Ms);
    run.say(saveReport(results, "gate", { machine, scale: run.scale, figures }));
    printReport(figures, machine);
  } finally {
    if (!values.keep) rmSync(folder, { recursive: true, force: true });
  }
}

function diskFigures({ perSecond, p50Ms, p99Ms }: Summary): Figure[] {
  const part = "The disk: append 4 KiB, fdatasync";
  return [
    { part, name: "rate", value: perSecond, unit: "/s" },
    { part, name: "p50", value: p50Ms, unit: "ms" },
    { part, name: "p99", value: p99Ms, unit: "ms" },
  ];
}
