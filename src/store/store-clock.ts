/**
 * The clock of a store that lives on one machine. It never goes back behind what it has shown or what was committed,
 * and it goes on ticking when the wall clock is set back: a deadline that has passed stays passed, and one that is
 * ahead still comes.
 */
import type { Clock } from "../ports/clock.ts";

export class StoreClock {
  readonly #clock: Pick<Clock, "nowMs">;
  #wallMs: number;
  #shownMs: number;

  constructor(clock: Pick<Clock, "nowMs">, committedMs = 0) {
    this.#clock = clock;
    this.#wallMs = clock.nowMs();
    this.#shownMs = Math.max(this.#wallMs, committedMs);
  }

  nowMs(): number {
    const wallMs = this.#clock.nowMs();
    const passedMs = Math.max(0, wallMs - this.#wallMs);
    this.#wallMs = wallMs;
    this.#shownMs = Math.max(wallMs, this.#shownMs + passedMs);
    return this.#shownMs;
  }
}
