/** Agents, in process, with a scripted model: from the message to the durable pause, from the decision to the tool. */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Script } from "../src/config/config.ts";
import { createScriptedModel } from "../src/models/scripted.ts";
import { systemClock } from "../src/ports/clock.ts";
import { systemIds } from "../src/ports/ids.ts";
import { DURABLE } from "../src/runtime/agent.ts";
import { createModelAgent } from "../src/runtime/model-agent.ts";
import { SqliteStore } from "../src/store/sqlite.ts";
import { createScriptedTool } from "../src/testing/scripted-agent.ts";
import { createToolbox } from "../src/tools/toolbox.ts";
import { timeFdatasync } from "./floor.ts";
import { describeMachine, type Figure, printReport, saveReport } from "./gate-report.ts";
import { closedLoops, type Summary, summarize } from "./measure.ts";
import { approve, Follower, type Open, type Order, startMeasured, TENANT } from "./workload.ts";

export const AGENTS_HELP = `agents [--tasks n]
  --tasks    how many tasks for each figure (1000)`;

const SCRIPT: Script = {
  scenarios: [
    {
      match: ".",
      turns: [
        { say: "I will refund it.", call: [{ tool: "refund", args: { order: "ORD-123456", amount: 125.5 } }] },
        { say: "Refunded." },
      ],
    },
  ],
};
const SYNCS = 1000;
const WARM_UP = 200;
/** Latency is that of a node that is not busy with the end of the last task. */
const REST_MS = 2;

interface Measured {
  readonly pause: Summary;
  readonly start: Summary;
}

export async function agents(args: readonly string[], root: string): Promise<void> {
  const { values } = parseArgs({ args: [...args], options: { tasks: { type: "string", default: "1000" } } });
  const tasks = Math.max(1, Number(values.tasks) || 1000);
  const results = join(root, "bench", "results");
  mkdirSync(results, { recursive: true });
  const folder = mkdtempSync(join(results, "run-"));
  const floor = summarize(timeFdatasync(folder, SYNCS));
  const figures: Figure[] = [];
  for (const synchronous of ["normal", "full"] as const) {
    const measured = await measureOneByOne(join(folder, `${synchronous}.db`), synchronous, tasks);
    figures.push(...toFigures(synchronous, measured, floor));
  }
  figures.push(...(await measureTogether(join(folder, "together.db"), tasks)));
  rmSync(folder, { recursive: true });
  const machine = describeMachine(root, floor.p50Ms);
  printReport(figures, machine);
  process.stderr.write(`${saveReport(results, "agents", { machine, figures })}\n`);
}

function toFigures(synchronous: "normal" | "full", { pause, start }: Measured, floor: Summary): Figure[] {
  const part = `One task after the other, synchronous = ${synchronous.toUpperCase()}`;
  const atMost = synchronous === "normal" ? 0.5 : 3 * floor.p50Ms + 0.5;
  const figure = (name: string, summary: Summary): Figure[] => [
    {
      part,
      name: `${name}, p50`,
      value: summary.p50Ms,
      unit: "ms",
      floors: [{ name: "fdatasync", value: floor.p50Ms }],
      target: { atMost },
    },
    {
      part,
      name: `${name}, p99`,
      value: summary.p99Ms,
      unit: "ms",
      floors: [{ name: "fdatasync", value: floor.p99Ms }],
    },
  ];
  return [...figure("message to durable pause", pause), ...figure("decision to tool started", start)];
}

async function measureOneByOne(path: string, synchronous: "normal" | "full", tasks: number): Promise<Measured> {
  const world = openWorld(path, synchronous);
  const pauses: number[] = [];
  const starts: number[] = [];
  for (const order of orders(WARM_UP + tasks)) {
    const orderedMs = performance.now();
    const open = await world.follower.pause(order);
    pauses.push(performance.now() - orderedMs);
    // What comes after the tool has started is not part of it, and not part of the next one either.
    const over = world.follower.isOver(order);
    const decidedMs = performance.now();
    await world.start(open);
    starts.push(performance.now() - decidedMs);
    await over;
    await sleep(REST_MS);
  }
  await world.close();
  const after = (durationsMs: readonly number[]) => summarize({ durationsMs: durationsMs.slice(WARM_UP), wallMs: 1 });
  return { pause: after(pauses), start: after(starts) };
}

/** All at once: how long until all have paused, until all are over, and how much memory that takes. */
async function measureTogether(path: string, tasks: number): Promise<Figure[]> {
  const world = openWorld(path, "full");
  await closedLoops(orders(WARM_UP), 16, (order) => world.follower.pause(order));
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 5);
  const works = orders(tasks);
  const open = new Map<Order, Open>();
  const pauseMs = await timed(() =>
    Promise.all(works.map(async (order) => open.set(order, await world.follower.pause(order)))),
  );
  const finishMs = await timed(() => Promise.all([...open].map(([order, each]) => world.follower.resume(order, each))));
  clearInterval(watch);
  await world.close();
  const part = `${tasks} tasks at once, synchronous = FULL`;
  return [
    { part, name: "all paused", value: pauseMs / 1000, unit: "s" },
    { part, name: "all decided and over", value: finishMs / 1000, unit: "s" },
    { part, name: "RSS above what it was before", value: (peak - before) / 1e6, unit: "MB" },
  ];
}

function openWorld(path: string, synchronous: "normal" | "full") {
  const store = SqliteStore.open({ path, clock: systemClock, ids: systemIds, synchronous });
  const started = new Map<string, () => void>();
  const refund = createScriptedTool({
    name: "refund",
    gated: true,
    run: async ({ idempotencyKey }) => {
      started.get(idempotencyKey)?.();
      return { outcome: "done", result: { refunded: 125.5 } };
    },
  });
  const agent = createModelAgent({
    ...DURABLE,
    name: "support",
    description: "",
    instruction: "You are kind.",
    iterationsMax: 50,
    streaming: true,
    store,
    model: createScriptedModel(SCRIPT, systemClock),
    tools: createToolbox([refund]),
  });
  const node = startMeasured(store, new Map([[agent.name, agent]]));
  return {
    follower: new Follower(node.runtime),
    async start(open: Open): Promise<void> {
      const runs = new Promise<void>((resolve) => started.set(open.id, resolve));
      await approve(node.runtime, open);
      await runs;
      started.delete(open.id);
    },
    async close(): Promise<void> {
      await node.stop();
      await store.close();
    },
  };
}

function orders(count: number): Order[] {
  return Array.from({ length: count }, () => ({
    tenant: TENANT,
    agent: "support",
    principal: { name: "cust-20831", issuer: "https://login.example.com", tenant: TENANT, via: "a2a" },
    message: { messageId: randomUUID(), role: "user", parts: [{ text: "ORD-123456 arrived broken." }] },
  }));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const beganMs = performance.now();
  await work();
  return performance.now() - beganMs;
}
