/** Follows a task until it ends or waits for somebody who is not here; asks the person who is. */
import { type Client, ClientError, type RequestView, type TaskView } from "../client/client.ts";
import { askAnswer, askApproval, type Said } from "./ask.ts";
import type { Connection } from "./connect.ts";
import { Ending, EXIT, type ExitCode } from "./exit.ts";
import { renderRequest } from "./render.ts";
import { TaskPrinter } from "./task-printer.ts";
import type { Terminal } from "./terminal.ts";
import { visible } from "./words.ts";

/** A server that restarts is given this long to come back. */
const RECONNECTS_MAX = 20;
const RECONNECT_MS = 500;

export interface FollowOptions {
  readonly task: Pick<TaskView, "id" | "agent">;
  /** What the caller has seen already. */
  readonly afterSeq: number;
  /** Ask at this terminal, go on waiting for others, or come back at a pause. */
  readonly atPause: "ask" | "wait" | "return";
  readonly waitMs: number | undefined;
  /** Words to stderr, because stdout is for data. */
  readonly isQuiet: boolean;
}

export type Followed =
  | { readonly type: "ended"; readonly result: NonNullable<TaskView["result"]> }
  | { readonly type: "waiting"; readonly open: readonly RequestView[] }
  | { readonly type: "timed-out"; readonly open: readonly RequestView[] };

export async function followTask(
  { client }: Connection,
  terminal: Terminal,
  options: FollowOptions,
): Promise<Followed> {
  const { task, afterSeq, atPause, waitMs, isQuiet } = options;
  const stop = new AbortController();
  const timeUp = new AbortController();
  const printer = new TaskPrinter(terminal, task.agent, { afterSeq, isQuiet });
  const watched = new WatchedTask(terminal, client, task.id, printer, stop.signal);
  if (waitMs !== undefined) void terminal.clock.sleep(waitMs, stop.signal).then(() => timeUp.abort());
  const handled = new Set<string>();
  try {
    for (;;) {
      const seen = watched.changes;
      if (watched.error !== undefined) throw watched.error;
      if (watched.result) return { type: "ended", result: watched.result };
      if (timeUp.signal.aborted) return { type: "timed-out", open: watched.open };
      const [next] = watched.open.filter(({ id }) => !handled.has(id));
      if (next && atPause === "return") return { type: "waiting", open: watched.open };
      if (next && atPause === "ask") {
        printer.pause();
        const stopped = AbortSignal.any([timeUp.signal, watched.closed(next.id)]);
        const said = await askAbout(client, terminal, next.id, stopped);
        if (said === "left") return { type: "waiting", open: watched.open };
        if (said === "done") handled.add(next.id);
        continue;
      }
      await watched.changed(seen, timeUp.signal);
    }
  } finally {
    stop.abort();
    printer.pause();
  }
}

/** The newest state of a task, kept up to date in the background. */
class WatchedTask {
  open: readonly RequestView[] = [];
  result: TaskView["result"];
  error: unknown;
  /** Counts up with everything that is heard. */
  changes = 0;
  readonly #listeners = new Set<() => void>();

  constructor(terminal: Terminal, client: Client, id: string, printer: TaskPrinter, signal: AbortSignal) {
    void this.#watch(terminal, client, id, printer, signal).catch((error: unknown) => {
      this.error = error;
      this.#tell();
    });
  }

  /** Resolves once more has been heard than `seen`, or `signal` aborts. */
  changed(seen: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        if (this.changes === seen && !signal.aborted) return;
        this.#listeners.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#listeners.add(done);
      signal.addEventListener("abort", done);
      done();
    });
  }

  /** Aborts when the request is not open any more. */
  closed(id: string): AbortSignal {
    const controller = new AbortController();
    const look = () => {
      if (this.open.some((request) => request.id === id) && this.error === undefined) return;
      this.#listeners.delete(look);
      controller.abort();
    };
    this.#listeners.add(look);
    look();
    return controller.signal;
  }

  async #watch(terminal: Terminal, client: Client, id: string, printer: TaskPrinter, signal: AbortSignal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        for await (const event of client.watchTask(id, signal)) {
          failures = 0;
          if (event.type === "task") {
            this.open = event.task.requests.filter(({ status }) => status === "open");
            this.result = event.task.result;
          }
          if (event.type === "change") {
            this.open = event.change.open;
            this.result = event.change.result;
          }
          printer.show(event);
          if (event.type !== "text") this.#tell();
        }
      } catch (error) {
        const isAway = error instanceof ClientError && error.status === 0;
        if (!isAway || ++failures > RECONNECTS_MAX) throw error;
      }
      if (this.result) return;
      await terminal.clock.sleep(RECONNECT_MS, signal);
    }
  }

  #tell(): void {
    this.changes++;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Shows a request whole and sends what the person says. */
async function askAbout(
  client: Client,
  terminal: Terminal,
  id: string,
  signal: AbortSignal,
): Promise<"done" | "again" | "left"> {
  const { note, paint, clock, errors } = terminal;
  const request = await client.getRequest(id);
  if (request.status !== "open") return "done";
  note(`\n${renderRequest(request, paint, clock.nowMs(), errors.columns)}\n`);
  const said = await ask(terminal, request, signal);
  if (said.type === "leave") return "left";
  if (said.type === "stopped") {
    const now = await client.getRequest(id);
    if (now.status !== "open") note("Somebody else was quicker; nothing was sent from here.\n");
    return "done";
  }
  try {
    await client.decide(id, toOrder(said, request.digest));
    return "done";
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    note(`${paint.red("✗")} ${visible(error.message)}\n`);
    if (error.status === 422) return "again";
    if (error.status === 403) return "left";
    // Lost, expired or changed: what is open now comes with the next change.
    if (error.status === 409 || error.status === 410 || error.status === 412) return "done";
    throw error;
  }
}

function ask(terminal: Terminal, request: RequestView, signal: AbortSignal): Promise<Said> {
  return request.kind === "approval" ? askApproval(terminal, request, signal) : askAnswer(terminal, request, signal);
}

export function toOrder(said: Exclude<Said, { type: "leave" | "stopped" }>, digest: string) {
  switch (said.type) {
    case "approve":
      return { decision: "approve", digest, ...(said.editedArgs ? { editedArgs: said.editedArgs } : {}) } as const;
    case "deny":
      return { decision: "deny", digest, ...(said.reason === "" ? {} : { reason: said.reason }) } as const;
    case "answer":
      return { decision: "answer", digest, values: said.values } as const;
  }
}

/** How a followed task ends the command. */
export function endOf(followed: Followed): ExitCode {
  switch (followed.type) {
    case "ended":
      return followed.result.state === "completed" ? EXIT.done : EXIT.failed;
    case "waiting":
      return EXIT.waiting;
    case "timed-out":
      return EXIT.timedOut;
  }
}

/** Rejects when somebody wants the command to end. */
export function interrupt(): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => reject(new Ending(EXIT.interrupted)));
  });
  // A signal that comes when nobody waits any more is no bug.
  interrupted.catch(() => undefined);
  return interrupted;
}
