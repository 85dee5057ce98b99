/** What is going on, on one line that is drawn over and over; where nobody watches, a plain line for each change. */
import type { Terminal } from "./terminal.ts";
import { describeDuration } from "./words.ts";

const FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const FRAME_MS = 100;

export class StatusLine {
  readonly #terminal: Terminal;
  #stop: AbortController | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Shows `text` and how long it has been so, until something else is written. */
  show(text: string): void {
    const { clock, note, errors, isInteractive } = this.#terminal;
    this.clear();
    if (!isInteractive || !errors.isTTY) return;
    const stop = new AbortController();
    this.#stop = stop;
    const sinceMs = clock.nowMs();
    void (async () => {
      for (let i = 0; !stop.signal.aborted; i++) {
        const frame = FRAMES.charAt(i % FRAMES.length);
        note(`\r\u001b[2K${frame} ${text} ${describeDuration(clock.nowMs() - sinceMs)}`);
        await clock.sleep(FRAME_MS, stop.signal);
      }
    })();
  }

  clear(): void {
    if (!this.#stop) return;
    this.#stop.abort();
    this.#stop = undefined;
    this.#terminal.note("\r\u001b[2K");
  }
}
