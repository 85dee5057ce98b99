/** Writes the global chain, off the path of every commit. */
import { isFault } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Audit } from "../store/store.ts";

const EVERY_MS = 1000;
/** Bounds how long one seal holds the writer. */
const EVENTS_MAX = 500;

export class Sealer {
  readonly #audit: Audit;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(audit: Audit, clock: Clock) {
    this.#audit = audit;
    this.#clock = clock;
  }

  start(): void {
    this.#loop = this.#seal();
  }

  /** Seals what is left, so that a clean stop leaves nothing open to unnoticed change. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
    await this.#sealAll();
  }

  async #seal(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await this.#sealAll();
      await this.#clock.sleep(EVERY_MS, this.#stopping.signal);
    }
  }

  async #sealAll(): Promise<void> {
    try {
      while (await this.#audit.sealNext(EVENTS_MAX)) await this.#clock.turn();
    } catch (error) {
      // The events are still there: the next round seals them.
      if (!isFault(error)) throw error;
    }
  }
}
