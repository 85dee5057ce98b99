/**
 * What is appended to a task, as it comes: from this node at once, from other nodes by a hint, or at the next look, which
 * is one query for all that are followed here. Whoever stops following leaves nothing behind.
 */
import type { Clock } from "../ports/clock.ts";
import { nameOf, type TaskEvent, type TaskKey } from "../task/event.ts";
import type { Runtime } from "./runtime.ts";

export interface FollowerParts {
  readonly runtime: Runtime;
  readonly clock: Clock;
  /** How often it looks for what other nodes have appended; absent: there are none. */
  readonly lookAgainMs?: number;
}

interface Ear {
  readonly key: TaskKey;
  /** How much of the log it has heard. */
  version: number;
  news: AbortController;
}

/** A reason of its own: without one, each abort would make an error with a stack. */
const NEWS = "news";

export class Follower {
  readonly #parts: FollowerParts;
  readonly #ears = new Map<string, Set<Ear>>();
  #looking: AbortController | undefined;

  constructor(parts: FollowerParts) {
    this.#parts = parts;
    parts.runtime.onChange(({ key, version }) => this.#tell(key, version));
    parts.runtime.onElsewhere((key) => this.#tell(key));
  }

  /** How many follow, for tests and metrics. */
  get size(): number {
    return [...this.#ears.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** The events after `version`, whole appends, until `signal` aborts or nobody wants more. */
  async *follow(key: TaskKey, version: number, signal: AbortSignal): AsyncGenerator<readonly TaskEvent[], void, void> {
    const ear: Ear = { key, version, news: new AbortController() };
    const wake = () => ear.news.abort(NEWS);
    this.#add(ear);
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        // A new ear before each reading: what is appended from here on is heard.
        ear.news = new AbortController();
        const { events } = await this.#parts.runtime.store.read(key, ear.version);
        const last = events.at(-1);
        if (!last) {
          if (!signal.aborted) await sleepUntil(ear.news.signal);
          continue;
        }
        ear.version = last.seq;
        yield events;
      }
    } finally {
      signal.removeEventListener("abort", wake);
      this.#remove(ear);
    }
  }

  #tell(key: TaskKey, version = Number.POSITIVE_INFINITY): void {
    for (const ear of this.#ears.get(nameOf(key)) ?? []) if (ear.version < version) ear.news.abort(NEWS);
  }

  #add(ear: Ear): void {
    const name = nameOf(ear.key);
    this.#ears.set(name, (this.#ears.get(name) ?? new Set()).add(ear));
    if (this.#parts.lookAgainMs === undefined || this.#looking) return;
    this.#looking = new AbortController();
    void this.#look(this.#parts.lookAgainMs, this.#looking.signal);
  }

  #remove(ear: Ear): void {
    const name = nameOf(ear.key);
    const ears = this.#ears.get(name);
    ears?.delete(ear);
    if (ears?.size === 0) this.#ears.delete(name);
    if (this.#ears.size > 0) return;
    this.#looking?.abort(NEWS);
    this.#looking = undefined;
  }

  async #look(everyMs: number, signal: AbortSignal): Promise<void> {
    const { clock, runtime } = this.#parts;
    for (;;) {
      await clock.sleep(everyMs, signal);
      if (signal.aborted) return;
      const keys = [...this.#ears.values()].flatMap(([ear]) => (ear ? [ear.key] : []));
      // While the store is away there is nothing to hear; the next look asks again.
      const versions = await runtime.store.readVersions(keys).catch(() => []);
      for (const [i, version] of versions.entries()) {
        const key = keys[i];
        if (key) this.#tell(key, version);
      }
    }
  }
}

function sleepUntil(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
