/** Several real processes on a real PostgreSQL that crashes, with workers that freeze, and people who race. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { isFault } from "../../src/errors.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import type { Answer } from "../../src/runtime/answers.ts";
import { Runtime } from "../../src/runtime/runtime.ts";
import type { PostgresStore } from "../../src/store/postgres.ts";
import type { Message, TaskEvent } from "../../src/task/event.ts";
import { type Request, requestId } from "../../src/task/request.ts";
import { findRequest, isOver, openRequests, type Task } from "../../src/task/task.ts";
import { Random } from "../../src/testing/random.ts";
import { describePostgres } from "../postgres/suite.ts";
import { type Evidence, openEvidence } from "./evidence.ts";
import { judge } from "./judge.ts";
import { Child } from "./line-protocol.ts";
import type { NodeOperations, NodeOptions, Told } from "./node-process.ts";
import { AGENT, answerTo, createAgent, createPrincipal, OUTCOME_OF, STORIES, type Story, TENANT } from "./story.ts";

const PROGRAM = fileURLToPath(new URL("./node-process.ts", import.meta.url));
const SEED = 1;

describePostgres("on one PostgreSQL", (suite) => {
  let url = "";
  let folder = "";
  let evidence: Evidence;
  let store: PostgresStore;
  let nodes: Child<NodeOperations>[] = [];

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "holdpoint-postgres-"));
    evidence = openEvidence(folder);
    url = await suite.server.createDatabase();
    store = await suite.open(url);
  });
  afterEach(async () => {
    await Promise.all(nodes.map((node) => node.kill()));
    nodes = [];
    rmSync(folder, { recursive: true });
  });

  async function startNode(options: Omit<NodeOptions, "url" | "folder">): Promise<Child<NodeOperations>> {
    const node = new Child<NodeOperations>({ program: PROGRAM });
    nodes.push(node);
    await node.ask("start", { url, folder, ...options });
    return node;
  }

  async function kill(node: Child<NodeOperations>): Promise<void> {
    nodes = nodes.filter((other) => other !== node);
    await node.kill();
  }

  /** The way in for people: it only decides, and works on nothing. */
  function createRuntime(story: Story): Runtime {
    const agents = new Map([[AGENT, createAgent(story, () => {})]]);
    return new Runtime({ store, clock: systemClock, ids: systemIds, agents });
  }

  async function load(runtime: Runtime, id: string): Promise<Task> {
    const { task } = await runtime.load({ tenant: TENANT, id });
    if (!task) throw new Error(`task ${id} is lost`);
    return task;
  }

  async function submit(runtime: Runtime, messageId: string): Promise<string> {
    const message: Message = { messageId, role: "user", parts: [{ text: "go" }] };
    const order = { tenant: TENANT, agent: AGENT, principal: createPrincipal("client"), message };
    const result = await insist(() => runtime.submit(order));
    if (!result.ok) throw new Error(result.refusal.code);
    evidence.acks.write({ type: "submitted", taskId: result.task.key.id, messageId });
    return result.task.key.id;
  }

  async function choose(runtime: Runtime, who: string, { id }: Request, answer: Answer): Promise<void> {
    const result = await insist(() => runtime.choose(TENANT, id, answer, createPrincipal(who)));
    if (result.ok) evidence.acks.write({ type: "decided", requestId: id, outcome: OUTCOME_OF[answer.choice], by: who });
    else expect(["already-decided", "task-over"]).toContain(result.refusal.code);
  }

  /** Everything is stopped, sealed and judged. */
  async function expectNoViolation() {
    await Promise.all(nodes.map((node) => node.ask("stop")));
    while (await store.sealNext(1000));
    const judgement = await judge(store, evidence);
    expect(judgement.problems).toEqual([]);
    return judgement;
  }

  test("workers and people go on through ten crashes of the database, and nothing is lost or repeated", {
    timeout: 180_000,
  }, async () => {
    const story = STORIES["two turns"];
    const random = new Random(SEED);
    const runtime = createRuntime(story);
    for (const name of ["a", "b", "c"]) await startNode({ name, story });

    let isCalm = false;
    const ids: string[] = [];
    const send = () => submit(runtime, `message ${ids.length}`);
    const client = async () => {
      while (!isCalm) {
        // Impatient: sent again before the first answer is there.
        const [id, again] = await Promise.all([send(), send()]);
        expect(again).toBe(id);
        ids.push(id);
        await sleep(random.below(200));
      }
    };
    let areAllOver = false;
    const person = async (who: string, isKind: boolean) => {
      while (!areAllOver) {
        const { items } = await insist(() => store.listOpenRequests({ tenant: TENANT }));
        for (const { taskId, n } of items) {
          const task = await insist(() => load(runtime, taskId));
          const record = findRequest(task, requestId(taskId, n));
          if (!record || record.decision) continue;
          const answer =
            isKind || record.request.kind !== "approval" ? answerTo(record.request) : ({ choice: "deny" } as const);
          if (answer) await choose(runtime, who, record.request, answer);
        }
        await sleep(20 + random.below(200));
      }
    };
    const crashes = async () => {
      for (let i = 1; i <= 10; i++) {
        await sleep(300 + random.below(700));
        await suite.server.stop("immediate");
        // Longer, now and then, than a worker keeps an outcome that it cannot write down.
        await sleep(i % 5 === 0 ? 2500 : random.below(600));
        await suite.server.start();
        // Now and then a worker dies as well.
        if (i % 4 === 0) {
          if (nodes[0]) await kill(nodes[0]);
          await startNode({ name: `d${i}`, story });
        }
      }
      isCalm = true;
    };
    const people = [person("ana", true), person("ben", false)];
    await Promise.all([client(), crashes()]);
    await vi.waitFor(
      async () => {
        const tasks = await Promise.all(ids.map((id) => load(runtime, id)));
        expect(tasks.filter((task) => !isOver(task)).map(({ key }) => key.id)).toEqual([]);
      },
      { timeout: 60_000, interval: 200 },
    );
    areAllOver = true;
    await Promise.all(people);
    const { tasks, effects } = await expectNoViolation();
    const count = (type: TaskEvent["type"]) =>
      tasks.flatMap(({ events }) => events.filter((event) => event.type === type)).length;
    console.log(
      `10 crashes of PostgreSQL: ${tasks.length} tasks, ${count("request-decided")} decisions,`,
      `${effects} effects, ${count("effect-unknown")} of them in doubt`,
    );
  });

  describe("a worker that is frozen past its lease", () => {
    const story: Story = {
      messageIds: [],
      turns: [{ text: "May I?", calls: [{ tool: "refund", args: { amount: 5, person: "approve" } }] }],
    };
    const LEASE_MS = 600;

    async function freezeInTool() {
      const runtime = createRuntime(story);
      const slow = await startNode({ name: "slow", story, leaseMs: LEASE_MS, holds: ["refund"] });
      const id = await submit(runtime, "please");
      const asked = await waitForRequest(runtime, id, 1);
      await choose(runtime, "ana", asked, { choice: "approve" });
      await slow.hear("holds");

      await startNode({ name: "other", story, leaseMs: LEASE_MS });
      await sleep(2 * LEASE_MS);
      expect(openRequests(await load(runtime, id)), "as long as it lives nobody takes over").toEqual([]);
      slow.signal("SIGSTOP");
      const doubt = await waitForRequest(runtime, id, 2);
      expect(doubt).toMatchObject({ kind: "in-doubt", tool: "refund" });
      return { runtime, id, slow, doubt };
    }

    async function wake(slow: Child<NodeOperations>): Promise<void> {
      slow.signal("SIGCONT");
      await slow.ask("goOn");
      await sleep(LEASE_MS);
    }

    async function waitForRequest(runtime: Runtime, id: string, n: number): Promise<Request> {
      return vi.waitFor(
        async () => {
          const record = (await load(runtime, id)).requests[n - 1];
          if (!record) throw new Error(`request ${n} is not open`);
          return record.request;
        },
        { timeout: 15_000, interval: 20 },
      );
    }

    async function waitForEnd(runtime: Runtime, id: string): Promise<Task> {
      return vi.waitFor(
        async () => {
          const task = await load(runtime, id);
          expect(isOver(task)).toBe(true);
          return task;
        },
        { timeout: 15_000, interval: 20 },
      );
    }

    test("is asked about; the result that it brings too late changes nothing", async () => {
      const { runtime, id, slow, doubt } = await freezeInTool();
      const { version } = await load(runtime, id);
      await wake(slow);
      expect((await load(runtime, id)).version).toBe(version);

      await choose(runtime, "ana", doubt, { choice: "answer", values: { outcome: "done" } });
      const task = await waitForEnd(runtime, id);
      expect(task.effects["call-1-1-1"]?.status.type).toBe("unknown");
      expect((await expectNoViolation()).effects).toBe(1);
    });

    test("and whose work was allowed once more cannot report for his successor", async () => {
      const { runtime, id, slow, doubt } = await freezeInTool();
      await choose(runtime, "ana", doubt, { choice: "answer", values: { outcome: "retry" } });
      const task = await waitForEnd(runtime, id);
      await wake(slow);
      expect((await load(runtime, id)).version).toBe(task.version);
      expect(Object.values(task.effects).map(({ status }) => status.type)).toEqual(["unknown", "done"]);
      expect((await expectNoViolation()).effects).toBe(2);
    });

    test("cannot write any more, even if his successor has not written anything yet", async () => {
      const runtime = createRuntime(story);
      const slow = await startNode({ name: "slow", story, leaseMs: LEASE_MS, holds: ["think"] });
      const id = await submit(runtime, "please");
      await slow.hear("holds");
      const other = await startNode({ name: "other", story, leaseMs: LEASE_MS, holds: ["think"] });
      slow.signal("SIGSTOP");
      await other.hear("holds");
      await wake(slow);
      expect((await load(runtime, id)).version, "only the submission").toBe(1);

      await other.ask("goOn");
      const request = await waitForRequest(runtime, id, 1);
      expect((await load(runtime, id)).turns[0]?.text).toBe("other: May I?");
      await kill(slow);
      await choose(runtime, "ana", request, { choice: "deny" });
      await other.hear("holds");
      await other.ask("goOn");
      await waitForEnd(runtime, id);
      expect((await expectNoViolation()).effects).toBe(0);
    });
  });

  test("2 to 50 people decide the same request in 4 processes: one wins, the others are told who, 500 times", {
    timeout: 180_000,
  }, async () => {
    const REQUESTS = 20;
    const TASKS = 25;
    const calls = Array.from({ length: REQUESTS }, (_, i) => ({ tool: "refund", args: { amount: i } }));
    const story: Story = { messageIds: [], turns: [{ text: "So many things.", calls }] };
    const random = new Random(SEED);
    const runtime = createRuntime(story);
    for (const name of ["a", "b", "c", "d"]) await startNode({ name, story, leaseMs: 5000 });
    const ids: string[] = [];
    for (let i = 0; i < TASKS; i++) ids.push(await submit(runtime, `message ${i}`));

    let deciders = 0;
    for (const id of ids) {
      await vi.waitFor(async () => expect(openRequests(await load(runtime, id))).toHaveLength(REQUESTS), 20_000);
      for (let n = 1; n <= REQUESTS; n++) deciders += await race(requestId(id, n));
    }
    await vi.waitFor(
      async () => {
        for (const id of ids) expect(isOver(await load(runtime, id))).toBe(true);
      },
      { timeout: 30_000, interval: 200 },
    );
    const { effects } = await expectNoViolation();
    console.log(`${TASKS * REQUESTS} races of ${deciders} deciders: one winner each, ${effects} effects`);

    async function race(id: string): Promise<number> {
      const shares: Record<string, Answer>[] = nodes.map(() => ({}));
      const count = 2 + random.below(49);
      for (let i = 1; i <= count; i++) Object.assign(random.pick(shares), { [`person ${i}`]: makeUpMind() });
      const told = (
        await Promise.all(nodes.map((node, i) => node.ask("decide", { requestId: id, deciders: shares[i] ?? {} })))
      ).flat();
      const [winner, ...more] = told.flatMap((one) => ("won" in one ? [one] : []));
      if (!winner) throw new Error(`nobody decided ${id}: ${JSON.stringify(told)}`);
      expect(more, `${id} was decided more than once`).toEqual([]);
      for (const loser of told.filter((one) => one !== winner)) {
        const { decider } = loser;
        const expected: Told = { decider, refused: "already-decided", winner: winner.decider, outcome: winner.won };
        expect(loser).toEqual(expected);
      }
      evidence.acks.write({ type: "decided", requestId: id, outcome: winner.won, by: winner.decider });
      return count;
    }

    function makeUpMind(): Answer {
      return random.pick<Answer>([
        { choice: "approve" },
        { choice: "approve", editedArgs: { amount: random.below(1000) } },
        { choice: "deny", reason: "no" },
        { choice: "cancel" },
      ]);
    }
  });
});

/** As people do when the server is away: the same again, until there is an answer. */
async function insist<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!isFault(error) || !error.retry) throw error;
      await sleep(50);
    }
  }
}
