/**
 * A world in which production code runs unmodified and nothing happens by itself: the scheduler picks, by a seed, which
 * port call is answered next, which fails, who dies, who freezes, and how the clock moves.
 */
import { HoldpointError } from "../errors.ts";
import { type Clock, systemClock } from "../ports/clock.ts";
import type { CallHandler, PortCall } from "./crash-points.ts";
import type { Random } from "./random.ts";

export interface Chaos {
  /** Probability of each, for every port call, while faults are left. */
  readonly crash: number;
  readonly storeFault: number;
  readonly freeze: number;
  readonly clockJump: number;
  /** How many crashes and other faults at most; then the world calms down and everything must come to an end. */
  readonly faultsMax: number;
  /** Instead of chance: die exactly at these calls, counted over the whole run. */
  readonly crashAt?: ReadonlySet<string>;
}

interface Pending {
  readonly host: Host;
  readonly call: PortCall;
  readonly perform: () => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A process of the simulated world. When it dies, nothing it has called is ever answered. */
export class Host {
  readonly name: string;
  dead = false;
  /** Its calls are not answered before this step: a process that was stopped and goes on later. */
  frozenUntilStep = 0;
  readonly #deaths: ((error: unknown) => void)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** What a client on the other side of the wire sees: an answer, or a connection that breaks. */
  answer<T>(call: Promise<T>): Promise<T> {
    return Promise.race([
      call,
      new Promise<T>((_, reject) => (this.dead ? reject(this.#broken()) : this.#deaths.push(reject))),
    ]);
  }

  die(): void {
    this.dead = true;
    for (const reject of this.#deaths) reject(this.#broken());
  }

  #broken(): HoldpointError {
    return new HoldpointError("store-unavailable", `${this.name} died`);
  }
}

const DAY_MS = 86_400_000;

export class SimWorld {
  readonly random: Random;
  readonly chaos: Chaos;
  /** Every point that was reached, with `before` and `after`. */
  readonly points = new Set<string>();
  /** The calls in the order in which they were answered; what a failing seed shows. */
  readonly trace: string[] = [];
  onDeath: (host: Host) => void = () => {};
  steps = 0;
  faults = 0;
  crashes = 0;
  #calls = 0;
  #elapsedMs = 0;
  #offsetMs = 1_750_000_000_000;
  #pending: Pending[] = [];
  #timers: { atMs: number; host: Host | undefined; fire: () => void }[] = [];

  constructor(random: Random, chaos: Chaos) {
    this.random = random;
    this.chaos = chaos;
  }

  nowMs(): number {
    return this.#elapsedMs + this.#offsetMs;
  }

  get isCalm(): boolean {
    return this.faults >= this.chaos.faultsMax || this.steps > 600;
  }

  /** A clock for production code and for the people outside (`host` undefined). */
  clockOf(host?: Host): Clock {
    return {
      nowMs: () => this.nowMs(),
      turn: async () => {},
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          if (signal?.aborted) return resolve();
          const timer = { atMs: this.#elapsedMs + ms, host, fire: resolve };
          this.#timers.push(timer);
          signal?.addEventListener("abort", () => {
            this.#timers = this.#timers.filter((other) => other !== timer);
            resolve();
          });
        }),
    };
  }

  handlerOf(host: Host): CallHandler {
    return {
      sync: (call, perform) => {
        if (this.#diesAt(host, call, "before")) this.#kill(host, call, "before");
        const result = perform();
        if (!host.dead && this.#diesAt(host, call, "after")) this.#kill(host, call, "after");
        return result;
      },
      async: <T>(call: PortCall, perform: () => Promise<T>) =>
        new Promise<T>((resolve, reject) => {
          if (host.dead) return;
          this.#pending.push({ host, call, perform, resolve: resolve as (value: unknown) => void, reject });
        }),
    };
  }

  /** Runs until `isDone`, or until it is clear that this will never be; answers whether it was done. */
  async run(isDone: () => Promise<boolean>, stepsMax = 6000): Promise<boolean> {
    while (this.steps < stepsMax) {
      // All microtasks run out before the loop turns: what is pending then is all there is.
      await systemClock.turn();
      this.steps++;
      if (this.steps % 16 === 0 && (await isDone())) return true;
      if (!this.isCalm && this.random.chance(this.chaos.clockJump)) this.#jump();
      const ready = this.#pending.filter(({ host }) => host.frozenUntilStep <= this.steps);
      const [only] = ready;
      if (only === undefined || (!this.isCalm && this.random.chance(0.05))) this.#passTime();
      else this.#answer(ready.length === 1 ? only : this.random.pick(ready));
    }
    return isDone();
  }

  #answer(pending: Pending): void {
    const { host, call, perform, resolve, reject } = pending;
    this.#pending = this.#pending.filter((other) => other !== pending);
    if (!this.isCalm && this.random.chance(this.chaos.freeze)) {
      this.faults++;
      host.frozenUntilStep = this.steps + 20 + this.random.below(60);
    }
    if (this.#diesAt(host, call, "before")) {
      this.#kill(host, call, "before");
      return;
    }
    const fault = call.point.startsWith("store.") && !this.isCalm && this.random.chance(this.chaos.storeFault);
    if (fault) this.faults++;
    const kind = fault ? this.random.below(3) : -1;
    this.trace.push(`${host.name} ${call.point}${["", " unavailable", " conflict", " answer lost"][kind + 1]}`);
    const unavailable = () => new HoldpointError("store-unavailable", `${call.point}: the simulated store is away`);
    if (kind === 0) {
      reject(unavailable());
      return;
    }
    if (kind === 1 && call.point === "store.append") {
      resolve("conflict");
      return;
    }
    perform().then(
      (value) => {
        if (host.dead) return;
        if (this.#diesAt(host, call, "after")) return this.#kill(host, call, "after");
        if (kind === 2) reject(unavailable());
        else resolve(value);
      },
      (error) => host.dead || reject(error),
    );
  }

  #diesAt(host: Host, { point }: PortCall, when: "before" | "after"): boolean {
    if (host.dead) return false;
    this.points.add(`${point}:${when}`);
    const place = `${++this.#calls}`;
    if (this.chaos.crashAt) return this.chaos.crashAt.has(place);
    return !this.isCalm && this.random.chance(this.chaos.crash);
  }

  /** How many places there are to die at in this run, so that each can be tried. */
  get places(): number {
    return this.#calls;
  }

  #kill(host: Host, { point }: PortCall, when: string): void {
    this.faults++;
    this.crashes++;
    this.trace.push(`${host.name} DIES ${when} ${point}`);
    this.#pending = this.#pending.filter((other) => other.host !== host);
    this.#timers = this.#timers.filter((timer) => timer.host !== host);
    host.die();
    this.onDeath(host);
  }

  #passTime(): void {
    const next = Math.min(...this.#timers.map(({ atMs }) => atMs));
    if (next === Number.POSITIVE_INFINITY) return;
    this.#elapsedMs = Math.max(this.#elapsedMs, next) + (this.random.chance(0.1) ? this.random.below(3000) : 0);
    const due = this.#timers.filter(({ atMs }) => atMs <= this.#elapsedMs);
    this.#timers = this.#timers.filter(({ atMs }) => atMs > this.#elapsedMs);
    for (const { fire } of due) fire();
  }

  #jump(): void {
    this.faults++;
    this.#offsetMs += this.random.pick([-DAY_MS, -3_600_000, -5000, 5000, 3_600_000, DAY_MS]);
    this.trace.push(`clock jumps to ${this.nowMs()}`);
  }
}
