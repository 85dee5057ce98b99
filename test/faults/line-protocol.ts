/** Talking to a child process: one JSON value for each line, questions down its stdin and answers up its stdout. */
import { type ChildProcessByStdio, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { FaultCode } from "../../src/errors.ts";
import { HoldpointError, isFault } from "../../src/errors.ts";

type Operation = (args: never) => unknown;
export type Operations = Record<string, Operation>;

interface Question {
  readonly id: number;
  readonly operation: string;
  readonly args: unknown;
}

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly fault?: { readonly code?: FaultCode; readonly message: string };
}

/** What a child tells without being asked. */
interface News {
  readonly news: string;
  readonly about?: unknown;
}

/** Child side: answers until stdin is closed. */
export async function serve(operations: Operations): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) void answer(JSON.parse(line));

  async function answer({ id, operation, args }: Question): Promise<void> {
    try {
      print({ id, value: await operations[operation]?.(args as never) });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      print({ id, fault: isFault(error) ? { code: error.code, message } : { message } });
    }
  }
}

export function tell(news: string, about?: unknown): void {
  print({ news, about });
}

function print(line: Answer | News): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

export interface Command {
  readonly program: string;
  readonly args?: readonly string[];
  /** Run under something else: `strace`, `unshare`. */
  readonly under?: readonly string[];
  readonly options?: SpawnOptions;
}

/** Parent side. A fault of the child is thrown here as the same fault. */
export class Child<Ops extends Operations> {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  readonly #news: News[] = [];
  #onNews: () => void = () => {};
  #asked = 0;
  #errors = "";
  #death: Error | undefined;
  readonly ended: Promise<void>;

  constructor({ program, args = [], under = [], options = {} }: Command) {
    const words = [...under, process.execPath, "--disable-warning=ExperimentalWarning", program, ...args];
    this.#process = spawn(words[0] ?? "", words.slice(1), { ...options, stdio: ["pipe", "pipe", "pipe"] });
    this.#process.stdin.on("error", () => {}); // it has died; whoever waits for an answer learns it from that
    this.#process.stderr.on("data", (chunk) => {
      this.#errors += chunk;
    });
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#hear(JSON.parse(line)));
    this.ended = once(this.#process, "close").then(([code, signal]) => {
      this.#death = new Error(`${program} ended with ${signal ?? code}: ${this.#errors}`);
      for (const { reject } of this.#waiting.values()) reject(this.#death);
      this.#waiting.clear();
      this.#onNews();
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  ask<Name extends keyof Ops & string>(
    operation: Name,
    ...[args]: Parameters<Ops[Name]>
  ): Promise<Awaited<ReturnType<Ops[Name]>>> {
    const id = ++this.#asked;
    return new Promise((resolve, reject) => {
      if (this.#death) return reject(this.#death);
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#process.stdin.write(`${JSON.stringify({ id, operation, args })}\n`);
    });
  }

  /** The next thing of this kind that it tells, or has told and nobody has heard. */
  async hear<T>(kind: string): Promise<T> {
    for (;;) {
      const i = this.#news.findIndex(({ news }) => news === kind);
      if (i >= 0) return this.#news.splice(i, 1)[0]?.about as T;
      if (this.#death) throw this.#death;
      await new Promise<void>((resolve) => {
        this.#onNews = resolve;
      });
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.ended;
  }

  /** Lets it come to its end by itself. */
  async stop(): Promise<void> {
    this.#process.stdin.end();
    await this.ended;
  }

  #hear(line: Answer | News): void {
    if ("news" in line) {
      this.#news.push(line);
      this.#onNews();
      return;
    }
    const waiting = this.#waiting.get(line.id);
    this.#waiting.delete(line.id);
    if (!line.fault) {
      waiting?.resolve(line.value);
      return;
    }
    const { code, message } = line.fault;
    waiting?.reject(code ? new HoldpointError(code, message) : new Error(message));
  }
}
