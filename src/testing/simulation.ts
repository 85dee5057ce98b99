/**
 * One simulated story, from a seed: replicas that work, people who decide, tools with side effects, and whatever goes
 * wrong. The result is a history that the checker has judged.
 */
import { isFault } from "../errors.ts";
import type { Agents } from "../runtime/agent.ts";
import { type HoldpointNode, startNode } from "../runtime/node.ts";
import { MemoryStore } from "../store/memory.ts";
import { verifyAudit } from "../store/seal.ts";
import type { Message } from "../task/event.ts";
import { type Outcome, type Principal, type Request, requestId } from "../task/request.ts";
import type { Finished, Work } from "../tools/tool.ts";
import { type Ack, checkHistory, type History, type TaskHistory } from "./checker.ts";
import { wrapPort } from "./crash-points.ts";
import { type LedgerEntry, toLedgerEntry } from "./ledger.ts";
import { Random } from "./random.ts";
import { createStory, type Story, type StoryKind } from "./sim-story.ts";
import { type Chaos, Host, SimWorld } from "./sim-world.ts";

const TENANT = "default";

export interface SimulationResult {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly points: ReadonlySet<string>;
  readonly places: number;
  readonly trace: readonly string[];
  readonly stats: {
    readonly tasks: number;
    readonly effects: number;
    readonly crashes: number;
    readonly steps: number;
  };
}

export async function simulate(
  seed: number,
  chaos?: Partial<Chaos>,
  story: StoryKind = "agents",
): Promise<SimulationResult> {
  return new Simulation(seed, chaos, story).run();
}

interface Replica {
  readonly host: Host;
  readonly node: HoldpointNode;
}

class Simulation {
  readonly #seed: number;
  readonly #random: Random;
  readonly #world: SimWorld;
  readonly #store: MemoryStore;
  readonly #ledger: LedgerEntry[] = [];
  readonly #acks: Ack[] = [];
  readonly #early: string[] = [];
  readonly #replicas: Replica[] = [];
  readonly #orders: { message: Message; done: boolean }[];
  /** What a tool's plan shows; it changes now and then, and what was asked about is then no longer what would run. */
  #revision = 0;
  #hosts = 0;
  readonly #story: Story;

  constructor(seed: number, chaos: Partial<Chaos> = {}, kind: StoryKind = "agents") {
    const random = new Random(seed);
    this.#seed = seed;
    this.#random = random;
    this.#world = new SimWorld(random, {
      crash: random.pick([0, 0.004, 0.01, 0.03]),
      storeFault: random.pick([0, 0.01, 0.05]),
      freeze: random.pick([0, 0.01]),
      clockJump: random.pick([0, 0, 0.01]),
      faultsMax: random.below(8),
      ...chaos,
    });
    this.#store = new MemoryStore({ nowMs: () => this.#world.nowMs() }, `epoch-${seed}`);
    this.#story = createStory(kind, {
      random,
      act: (name, work) => this.#effect(name, work),
      revision: () => this.#revision,
    });
    this.#orders = Array.from({ length: 1 + random.below(2) }, (_, i) => ({
      message: { messageId: `message-${i}`, role: "user", parts: [{ text: "go" }] },
      done: false,
    }));
  }

  async run(): Promise<SimulationResult> {
    const world = this.#world;
    const count = 1 + this.#random.below(3);
    world.onDeath = (host) => this.#restartLater(host);
    for (let i = 0; i++ < count; ) this.#startReplica();
    const clients = this.#orders.flatMap((order) => [
      this.#order(order),
      ...(this.#random.chance(0.3) ? [this.#order(order)] : []),
    ]);
    const people = ["ana", "ben", "eve"].slice(0, 1 + this.#random.below(3)).map((name) => this.#person(name));
    void Promise.all([...clients, ...people]);
    if (this.#random.chance(0.15)) void this.#canceler();
    const settled = await world.run(() => this.#isSettled());
    const history = await this.#history(settled);
    const violations = [
      ...this.#early,
      ...checkHistory(history),
      ...(settled ? [] : ["I5 the story did not come to its end"]),
    ];
    while (await this.#store.sealNext(1000));
    violations.push(...(await verifyAudit(this.#store)).problems.map((problem) => `I35 ${problem}`));
    return {
      seed: this.#seed,
      violations,
      points: world.points,
      places: world.places,
      trace: world.trace,
      stats: { tasks: history.tasks.length, effects: this.#ledger.length, crashes: world.crashes, steps: world.steps },
    };
  }

  /** A tool acts: at that moment there are at least as many claims for it in the log as it has acted. */
  async #effect(name: string, work: Work): Promise<Finished> {
    const entry = toLedgerEntry(name, work);
    this.#ledger.push(entry);
    const runs = this.#ledger.filter(({ idempotencyKey }) => idempotencyKey === entry.idempotencyKey).length;
    const claims = (await this.#logs()).flatMap(({ key, events }) =>
      events.filter(
        (event) =>
          event.type === "effect-claimed" && (event.requestId ?? `${key.id}-${event.callId}`) === entry.idempotencyKey,
      ),
    );
    if (name === "write" && runs > 1) this.#early.push(`I13 ${name} ran twice for ${entry.idempotencyKey}`);
    if (claims.length < runs)
      this.#early.push(`I13 ${name} ran for ${entry.idempotencyKey} before its claim was in the log`);
    if (this.#random.chance(0.1)) throw new Error("the tool broke");
    return { outcome: this.#random.chance(0.1) ? "failed" : "done", result: `ran ${name}` };
  }

  #startReplica(): void {
    const host = new Host(`node-${++this.#hosts}`);
    const handler = this.#world.handlerOf(host);
    const store = wrapPort("store", this.#store, handler);
    const agent = this.#story.createAgent(handler, store);
    const agents: Agents = new Map([[agent.name, agent]]);
    let n = 0;
    const ids = {
      uuid: () => `${host.name}-${++n}-${this.#random.below(1e9)}`,
      token: () => `${host.name}-token-${++n}-${this.#random.below(1e9)}`,
    };
    const node = startNode({
      store,
      clock: wrapPort("clock", this.#world.clockOf(host), handler),
      ids: wrapPort("ids", ids, handler),
      agents,
    });
    if (!host.dead) this.#replicas.push({ host, node });
  }

  #restartLater(host: Host): void {
    const at = this.#replicas.findIndex((replica) => replica.host === host);
    if (at >= 0) this.#replicas.splice(at, 1);
    void this.#world
      .clockOf()
      .sleep(this.#random.below(10_000))
      .then(() => this.#startReplica());
  }

  /** Somebody who wants an answer: asks any living node, and again after each failure, with the same message id. */
  async #order(order: { message: Message; done: boolean }): Promise<void> {
    const principal: Principal = { name: "client", issuer: "sim", tenant: TENANT, via: "sim" };
    await this.#persist(async ({ host, node }) => {
      const { message } = order;
      const result = await host.answer(node.runtime.submit({ tenant: TENANT, agent: "assistant", principal, message }));
      if (!result.ok) throw new Error(`submit was refused: ${result.refusal.code}`);
      this.#acks.push({ type: "submitted", taskId: result.task.key.id, messageId: message.messageId });
      order.done = true;
    });
  }

  /** Looks at what is open, now and then, and decides something; after a failure the same thing again. */
  async #person(name: string): Promise<void> {
    const clock = this.#world.clockOf();
    const principal: Principal = { name, issuer: "sim", tenant: TENANT, via: "sim" };
    for (;;) {
      await clock.sleep(20 + this.#random.below(1500));
      if (!this.#world.isCalm && this.#random.chance(0.05)) this.#revision++;
      const { items } = await this.#store.listOpenRequests({ tenant: TENANT });
      const [first] = items;
      if (!first) continue;
      const row = this.#random.chance(0.5) ? first : this.#random.pick(items);
      const id = requestId(row.taskId, row.n);
      const request = (await this.#find(row.taskId, id)) ?? undefined;
      if (!request) continue;
      const answer = this.#makeUpMind(request);
      await this.#persist(async ({ host, node }) => {
        const result = await host.answer(node.runtime.choose(TENANT, id, answer, principal));
        if (result.ok) this.#acks.push({ type: "decided", requestId: id, outcome: OUTCOMES[answer.choice], by: name });
        else if (!ORDINARY.has(result.refusal.code))
          this.#early.push(`I1 ${name} was refused with ${result.refusal.code}`);
      });
    }
  }

  #makeUpMind(request: Request) {
    const random = this.#random;
    if (random.chance(0.05)) return { choice: "cancel" } as const;
    if (request.kind === "in-doubt") {
      return { choice: "answer", values: { outcome: random.pick(["done", "failed", "retry"]) } } as const;
    }
    if (request.kind !== "approval") return { choice: "answer", values: { answer: "this one" } } as const;
    const digest = random.chance(0.7) ? { digest: request.digest } : {};
    if (random.chance(0.25)) return { choice: "deny", reason: "no", ...digest } as const;
    if (random.chance(0.2))
      return { choice: "approve", editedArgs: { ...request.args, edited: random.below(100) }, ...digest } as const;
    return { choice: "approve", ...digest } as const;
  }

  async #canceler(): Promise<void> {
    await this.#world.clockOf().sleep(this.#random.below(4000));
    const [task] = (await this.#store.listTasks({ tenant: TENANT })).items;
    if (!task) return;
    const principal: Principal = { name: "boss", issuer: "sim", tenant: TENANT, via: "sim" };
    await this.#persist(async ({ host, node }) => {
      await host.answer(node.runtime.cancel({ tenant: TENANT, id: task.taskId }, principal));
    });
  }

  /** A client's patience: another node, a little later, until it gets an answer. */
  async #persist(attempt: (replica: Replica) => Promise<void>): Promise<void> {
    for (;;) {
      const replica = this.#replicas.length > 0 ? this.#random.pick(this.#replicas) : undefined;
      try {
        if (replica) return await attempt(replica);
      } catch (error) {
        if (!isFault(error) || !error.retry) throw error;
      }
      await this.#world.clockOf().sleep(50 + this.#random.below(1000));
    }
  }

  async #find(taskId: string, id: string): Promise<Request | undefined> {
    const { events } = await this.#store.read({ tenant: TENANT, id: taskId });
    const opened = events.find((event) => event.type === "request-opened" && event.request.id === id);
    return opened?.type === "request-opened" ? opened.request : undefined;
  }

  async #isSettled(): Promise<boolean> {
    if (!this.#orders.every(({ done }) => done)) return false;
    const { items } = await this.#store.listTasks({ tenant: TENANT });
    return items.every(({ state }) => ENDS.has(state));
  }

  async #logs(): Promise<TaskHistory[]> {
    const { items } = await this.#store.listTasks({ tenant: TENANT, limit: 200 });
    return Promise.all(
      items.map(async ({ taskId, state }) => {
        const key = { tenant: TENANT, id: taskId };
        const { events } = await this.#store.read(key);
        const count = events.filter(({ type }) => type === "request-opened").length;
        const requestRows = await Promise.all(
          Array.from({ length: count }, (_, i) => this.#store.readRequestRow(key, i + 1)),
        );
        return { key, events, rowState: state, requestRows };
      }),
    );
  }

  async #history(settled: boolean): Promise<History> {
    const toolRules = new Map(
      this.#story.tools.map((tool) => [
        tool.name,
        {
          gated: tool.gated,
          mayRetry: (tool.idempotent && tool.onAmbiguous === "retry") || tool.settle !== undefined,
          settles: tool.settle !== undefined,
        },
      ]),
    );
    return { tasks: await this.#logs(), ledger: this.#ledger, acks: this.#acks, toolRules, settled };
  }
}

const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "canceled", "rejected"]);
const OUTCOMES: Record<"approve" | "deny" | "answer" | "cancel", Outcome> = {
  approve: "approved",
  deny: "denied",
  answer: "answered",
  cancel: "canceled",
};
/** What a person may hear without anything being wrong. */
const ORDINARY: ReadonlySet<string> = new Set(["already-decided", "request-expired", "digest-differs", "task-over"]);
