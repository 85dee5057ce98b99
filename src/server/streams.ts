/**
 * Server-sent events with a bound: a reader that falls behind is cut off, one that goes away leaves nothing behind.
 *
 * S1  At most one principal's share of streams is open.
 * S2  What waits to be read stays under 1 MiB and one frame.
 */
import type { Clock } from "../ports/clock.ts";
import type { Principal } from "../task/request.ts";

const HEARTBEAT_MS = 15_000;
const STREAM_BYTES_MAX = 1024 * 1024;
const STREAMS_PER_PRINCIPAL_MAX = 100;

export interface Outlet {
  /** Aborts when the stream is over, whoever ended it. */
  readonly signal: AbortSignal;
  send(event: string, data: unknown, id?: string): void;
  /** Without a name, as A2A has it; a client that comes back says the last id that it has seen. */
  sendFrame(id: string, data: unknown): void;
}

export class Streams {
  readonly #clock: Clock;
  readonly #stopping: AbortSignal;
  readonly #open = new Map<string, number>();

  constructor(clock: Clock, stopping: AbortSignal) {
    this.#clock = clock;
    this.#stopping = stopping;
  }

  /** How many are open, for tests and metrics. */
  get size(): number {
    return [...this.#open.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Streams what `run` sends until it returns; undefined when the principal has too many already. */
  open({ tenant, issuer, name }: Principal, run: (outlet: Outlet) => Promise<void>): Response | undefined {
    const owner = JSON.stringify([tenant, issuer, name]);
    const count = this.#open.get(owner) ?? 0;
    if (count >= STREAMS_PER_PRINCIPAL_MAX) return undefined;
    this.#open.set(owner, count + 1);
    const ended = new AbortController();
    const end = () => ended.abort();
    ended.signal.addEventListener(
      "abort",
      () => {
        this.#stopping.removeEventListener("abort", end);
        const left = (this.#open.get(owner) ?? 1) - 1;
        if (left > 0) this.#open.set(owner, left);
        else this.#open.delete(owner);
      },
      { once: true },
    );
    this.#stopping.addEventListener("abort", end, { once: true });
    if (this.#stopping.aborted) end();
    return new Response(createBody(this.#clock, ended, run), {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" },
    });
  }
}

function createBody(
  clock: Clock,
  ended: AbortController,
  run: (outlet: Outlet) => Promise<void>,
): ReadableStream<Uint8Array> {
  const { signal } = ended;
  const encoder = new TextEncoder();
  let isClosed = false;
  const start = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    const close = (error?: unknown) => {
      if (isClosed) return;
      isClosed = true;
      if (error === undefined) controller.close();
      else controller.error(error);
      ended.abort();
    };
    const write = (text: string) => {
      if (isClosed || signal.aborted) return;
      if ((controller.desiredSize ?? 0) <= 0) return close(new Error("the reader is too slow"));
      controller.enqueue(encoder.encode(text));
    };
    // JSON has no raw newline: no value can end a frame or begin another.
    const send = (event: string, data: unknown, id?: string) =>
      write(`${id === undefined ? "" : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    const sendFrame = (id: string, data: unknown) => write(`id: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
    signal.addEventListener("abort", () => close(), { once: true });
    void run({ signal, send, sendFrame }).then(() => close(), close);
    void beat(clock, signal, () => write(": still here\n\n"));
  };
  const cancel = () => {
    isClosed = true;
    ended.abort();
  };
  return new ReadableStream<Uint8Array>(
    { start, cancel },
    new ByteLengthQueuingStrategy({ highWaterMark: STREAM_BYTES_MAX }),
  );
}

async function beat(clock: Clock, signal: AbortSignal, write: () => void): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(HEARTBEAT_MS, signal);
    write();
  }
}
