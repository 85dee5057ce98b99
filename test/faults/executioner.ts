/** Ends its own process at a chosen port call, as the operating system would. */
import type { CallHandler, PortCall } from "../../src/testing/crash-points.ts";
import type { Death, Evidence } from "./evidence.ts";

/** A port call of a process, by its number or by its point. */
export type Place = `${number | string}:${Death["when"]}`;

/** Counts the port calls of this process, and ends it at the chosen one as the operating system would. */
export class Executioner implements CallHandler {
  readonly trace: string[] = [];
  readonly #place: string | undefined;
  readonly #evidence: Evidence;

  constructor(place: string | undefined, evidence: Evidence) {
    this.#place = place;
    this.#evidence = evidence;
  }

  async async<T>(call: PortCall, perform: () => Promise<T>): Promise<T> {
    const n = this.#enter(call);
    try {
      return await perform();
    } finally {
      this.#dieAt(n, call, "after");
    }
  }

  sync<T>(call: PortCall, perform: () => T): T {
    const n = this.#enter(call);
    try {
      return perform();
    } finally {
      this.#dieAt(n, call, "after");
    }
  }

  #enter(call: PortCall): number {
    const n = this.trace.push(call.point);
    this.#dieAt(n, call, "before");
    return n;
  }

  #dieAt(n: number, { point }: PortCall, when: Death["when"]): void {
    if (this.#place !== `${n}:${when}` && this.#place !== `${point}:${when}`) return;
    this.#evidence.deaths.write({ point, when });
    process.kill(process.pid, "SIGKILL");
  }
}
