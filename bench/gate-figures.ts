/** From what was measured to what is reported: which floor stands beside a figure, and which target. */
import type { Size } from "./bed.ts";
import type { Answered, Attended } from "./gate-attend.ts";
import type { Expired } from "./gate-expire.ts";
import type { Figure, Target } from "./gate-report.ts";
import type { Compared, Level } from "./gate-throughput.ts";
import type { Summary } from "./measure.ts";

const MB = 1e6;
const TARGETS = {
  readyMs: 1500,
  rssMb: 130,
  scanP99Ms: 1,
  pausedBytes: 2560,
  pausedRows: 5,
  closedS: 30,
  stallMs: 50,
  decisionsPerSecond: 8000,
  decisionsShare: 0.5,
} as const;

export interface Database {
  readonly name: string;
  readonly decisionP99Ms: number;
  /** Whether the targets for SQLite at 64 and for the bytes of a pause are meant for it. */
  readonly isEmbedded: boolean;
}

export function throughputFigures({ name, isEmbedded }: Database, levels: readonly Level[]): Figure[] {
  return levels.flatMap(({ atOnce, pause, decide, resume }) => [
    ...comparedFigures(`${name}: submit to durable pause`, atOnce, pause),
    ...comparedFigures(`${name}: a decision, workers idle`, atOnce, decide, isEmbedded && atOnce === 64),
    ...comparedFigures(`${name}: approval to completed, workers running`, atOnce, resume),
  ]);
}

function comparedFigures(part: string, atOnce: number, compared: Compared, isJudged = false): Figure[] {
  const { product, bare, fdatasync } = compared;
  const figure = (what: string, unit: "/s" | "ms", pick: (summary: Summary) => number): Figure => ({
    part,
    name: `${atOnce} at once, ${what}`,
    value: pick(product),
    unit,
    floors: [
      { name: "bare", value: pick(bare) },
      { name: "fdatasync", value: pick(fdatasync) * (unit === "/s" ? atOnce : 1) },
    ],
  });
  const rate = figure("rate", "/s", ({ perSecond }) => perSecond);
  return [
    isJudged ? { ...rate, target: { atLeast: TARGETS.decisionsPerSecond } } : rate,
    ...(isJudged
      ? [{ ...rate, name: `${atOnce} at once, rate beside bare`, target: { shareAtLeast: TARGETS.decisionsShare } }]
      : []),
    figure("p50", "ms", ({ p50Ms }) => p50Ms),
    figure("p99", "ms", ({ p99Ms }) => p99Ms),
  ];
}

export function sizeFigures({ name, isEmbedded }: Database, what: string, size: Size): Figure[] {
  const part = `${name}: what one paused task takes`;
  const target = (atMost: number): { target: Target } | object => (isEmbedded ? { target: { atMost } } : {});
  return [
    {
      part,
      name: `bytes, ${what}`,
      value: size.bytes / size.tasks,
      unit: "bytes",
      floors: [{ name: "texts and hashes", value: size.payloadBytes / size.tasks }],
      ...target(TARGETS.pausedBytes),
    },
    {
      part,
      name: `rows, ${what}`,
      value: size.rows / size.tasks,
      unit: "rows",
      target: { atMost: TARGETS.pausedRows },
    },
  ];
}

/** A process that only opens the file and reads 50 rows. */
export interface Bareness {
  readonly readyMs: number;
  readonly rssBytes: number;
}

export function attendFigures(
  { name, decisionP99Ms }: Database,
  tasks: string,
  what: string,
  attended: Attended,
  ready?: { readonly readyMs: readonly number[]; readonly bare: Bareness },
): Figure[] {
  const part = `${name}: a node with ${tasks} paused tasks, ${what}`;
  const { memory, list, due, decide1, decide16, decideBusy, peakRssBytes } = attended;
  const p99 = (what: string, { product, bare }: Answered, atMost: number): Figure => ({
    part,
    name: `${what}, p99`,
    value: product.p99Ms,
    unit: "ms",
    floors: [{ name: "bare", value: bare.p99Ms }],
    target: { atMost },
  });
  const p50 = (what: string, { product, bare }: Answered): Figure => ({
    part,
    name: `${what}, p50`,
    value: product.p50Ms,
    unit: "ms",
    floors: [{ name: "bare", value: bare.p50Ms }],
  });
  const answered = (what: string, result: Answered | undefined, atMost: number) =>
    result ? [p50(what, result), p99(what, result, atMost)] : [];
  const weight = (what: string, bytes: number, target?: Target): Figure => ({
    part,
    name: what,
    value: bytes / MB,
    unit: "MB",
    ...(ready ? { floors: [{ name: "bare process", value: ready.bare.rssBytes / MB }] } : {}),
    ...(target ? { target } : {}),
  });
  return [
    ...(ready
      ? [
          {
            part,
            name: `exec to ready, slowest of ${ready.readyMs.length}`,
            value: Math.max(...ready.readyMs),
            unit: "ms",
            floors: [{ name: "bare process", value: ready.bare.readyMs }],
            target: { atMost: TARGETS.readyMs },
          } as const,
        ]
      : []),
    weight("RSS", memory.rssBytes, { atMost: TARGETS.rssMb }),
    weight("RSS after gc", memory.rssAfterGcBytes),
    weight("RSS at its peak, after all of this", peakRssBytes),
    { part, name: "heap after gc", value: memory.heapBytes / MB, unit: "MB" },
    ...answered("list 50", list, TARGETS.scanP99Ms),
    ...answered("due scan, nothing due", due, TARGETS.scanP99Ms),
    ...answered("a decision, 1 at once", decide1, decisionP99Ms),
    ...answered("a decision, 16 at once", decide16, decisionP99Ms),
    ...(decideBusy
      ? [
          {
            part,
            name: "a decision, 16 at once, workers running, p99",
            value: decideBusy.p99Ms,
            unit: "ms",
            target: { atMost: decisionP99Ms },
          } as const,
        ]
      : []),
  ];
}

/** `idleMs` is the longest stall of a process beside it that had nothing to do: what the machine itself adds. */
export function expiryFigures(
  { name }: Database,
  tasks: number,
  order: "opened" | "random",
  expired: Expired,
  idleMs: number,
): Figure[] {
  const isJudged = order === "opened";
  const how = isJudged ? "in the order of opening" : "at random";
  const part = `${name}: ${tasks.toLocaleString("en")} deadlines in one second, ${how}`;
  const { closedMs, stalls, bare, peakRssBytes } = expired;
  const target = (atMost: number): { target: Target } | object => (isJudged ? { target: { atMost } } : {});
  return [
    {
      part,
      name: "first deadline to last closed",
      value: closedMs / 1000,
      unit: "s",
      floors: [{ name: "bare, 64 a commit", value: tasks / bare.perSecond }],
      ...target(TARGETS.closedS),
    },
    {
      part,
      name: "longest stall of the event loop",
      value: stalls.maxMs,
      unit: "ms",
      floors: [
        { name: "idle process", value: idleMs },
        { name: "longest bare commit", value: bare.maxMs },
      ],
      ...target(TARGETS.stallMs),
    },
    { part, name: "longest stall by Node's histogram", value: stalls.histogramMaxMs, unit: "ms" },
    { part, name: "event loop delay, p99", value: stalls.p99Ms, unit: "ms" },
    { part, name: "RSS at its peak", value: peakRssBytes / MB, unit: "MB" },
  ];
}
