import { describe, expect, test } from "vitest";
import { createScriptedModel } from "../../src/models/scripted.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { MemoryStore } from "../../src/store/memory.ts";
import { pointsOf } from "../../src/testing/crash-points.ts";
import { createScriptedAgent, createScriptedTool } from "../../src/testing/scripted-agent.ts";
import { simulate } from "../../src/testing/simulation.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { MENDED_SEEDS } from "./mended-seeds.ts";
import { describeFailure, runSchedules } from "./schedules.ts";

const SCHEDULES = 10_000;

describe("simulated crash schedules", () => {
  test(`${SCHEDULES} of them hold every invariant`, { timeout: 300_000 }, async () => {
    const summary = await runSchedules(1, SCHEDULES);
    console.log(
      `simulation: ${SCHEDULES} schedules, ${summary.crashes} crashes, ${summary.effects} effects, ${summary.failures.length} violations`,
    );
    expect(summary.failures.map(describeFailure)).toEqual([]);
    // A simulation that reaches nothing proves nothing.
    expect(summary.crashes).toBeGreaterThan(SCHEDULES / 2);
    expect(summary.effects).toBeGreaterThan(SCHEDULES);
  });

  test("those of agents without a model hold them too", { timeout: 120_000 }, async () => {
    const summary = await runSchedules(1, 2000, undefined, "calls");
    expect(summary.failures.map(describeFailure)).toEqual([]);
  });

  test("the same seed gives the same run", async () => {
    for (const seed of [3, 77, 1234]) {
      const [first, second] = [await simulate(seed), await simulate(seed)];
      expect(second.trace).toEqual(first.trace);
    }
  });

  test.each(MENDED_SEEDS)("seed $seed stays mended: $bug", async ({ seed, story }) => {
    expect((await simulate(seed, undefined, story)).violations).toEqual([]);
  });
});

describe("every single place to die at", () => {
  // Without chance: one run to count the places, then one for each, dying exactly there and nowhere else.
  const calm = { crash: 0, storeFault: 0, freeze: 0, clockJump: 0, faultsMax: 1000 };

  test.each([
    [11, "calls"],
    [12, "calls"],
    [13, "calls"],
    [2, "agents"],
    [3, "agents"],
    [4, "agents"],
  ] as const)("in the story of seed %i (%s), alone and in pairs", { timeout: 120_000 }, async (seed, story) => {
    const { places } = await simulate(seed, { ...calm, crashAt: new Set() }, story);
    const plans = Array.from({ length: places }, (_, i) => [i + 1]);
    // The second death strikes while the first is being recovered from.
    for (let i = 1; i <= places; i += 3) plans.push([i, i + 5 + (i % 23)]);
    const failures: string[] = [];
    for (const plan of plans) {
      const { violations } = await simulate(seed, { ...calm, crashAt: new Set(plan.map(String)) }, story);
      if (violations.length > 0) failures.push(`die at ${plan.join(" and ")}: ${violations.join("; ")}`);
    }
    expect(failures).toEqual([]);
  });
});

describe("crash points", () => {
  /** Not on the path of any task, so no schedule reaches them. */
  const ASIDE = new Map([
    ["store.readRequestRow", "only the checker compares rows with the log"],
    ["store.listOpenRequests", "people list through the server, not through a node"],
    ["store.listByDeadline", "people list through the server, not through a node"],
    ["store.readVersions", "streams follow tasks through it; a node works without them"],
    ["store.countTasks", "people count through the server, not through a node"],
    ["store.lastSeal", "audit only"],
    ["store.readTrail", "audit only"],
    ["store.purge", "an operator's command"],
    ["store.ping", "health checks"],
    ["store.close", "the end of a process that is not killed"],
  ]);

  test("every call of every port is one that the schedules reach, before and after", async () => {
    const hit = new Set<string>();
    for (const story of ["calls", "agents"] as const) {
      for (let seed = 1; seed <= 300; seed++) {
        for (const point of (await simulate(seed, undefined, story)).points) hit.add(point);
      }
    }
    const tool: Required<Tool> = {
      ...createScriptedTool({ name: "t", gated: true, run: async () => ({ outcome: "done", result: null }) }),
      longArgument: "content",
      rule: { file: "", line: 1 },
      question: () => ({ title: "", prompt: "", schema: {} }),
      settle: async () => "unknown",
    };
    const ports = [
      ...pointsOf("store", new MemoryStore(systemClock)),
      ...pointsOf("clock", systemClock),
      ...pointsOf("ids", systemIds),
      ...pointsOf("tool", tool),
      ...pointsOf("agent", createScriptedAgent("a", [], [])),
      ...pointsOf("model", createScriptedModel({ scenarios: [] }, systemClock)),
    ];
    const missing = ports.filter(
      (point) => !ASIDE.has(point) && !(hit.has(`${point}:before`) && hit.has(`${point}:after`)),
    );
    expect(missing, "a port call that no schedule can die at").toEqual([]);
    const stale = [...ASIDE.keys()].filter((point) => hit.has(`${point}:before`) || !ports.includes(point));
    expect(stale, "a reason that is no longer true").toEqual([]);
  });
});
