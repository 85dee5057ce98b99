/** Prints a task as it goes on: the agent's text as it comes, tools as they run, decisions as they are made. */
import type { TaskEvent, TimelineEntry } from "../client/client.ts";
import { QuoteWriter } from "./quote-writer.ts";
import { renderEntry } from "./render.ts";
import { StatusLine } from "./status-line.ts";
import type { Terminal } from "./terminal.ts";
import { visible } from "./words.ts";
import { wrapLines } from "./wrap.ts";

export class TaskPrinter {
  readonly #terminal: Terminal;
  readonly #status: StatusLine;
  readonly #agent: string;
  /** Nothing at or before this is printed: it was seen before. */
  #seq: number;
  /** What of the agent's running reply has been printed. */
  #live = { turn: 0, attempt: 0, text: "" };
  #lastSaid = "";
  /** With data for programs on stdout, the words go with the rest. */
  readonly #words: QuoteWriter;

  constructor(terminal: Terminal, agent: string, options: { readonly afterSeq: number; readonly isQuiet: boolean }) {
    this.#terminal = terminal;
    this.#status = new StatusLine(terminal);
    this.#agent = agent;
    this.#seq = options.afterSeq;
    const { note, errors, out, output } = terminal;
    this.#words = options.isQuiet ? new QuoteWriter(note, errors.columns) : new QuoteWriter(out, output.columns);
  }

  show(event: TaskEvent): void {
    if (event.type === "text") {
      this.#showText(event);
      return;
    }
    const [entries, state] =
      event.type === "task" ? [event.task.timeline, event.task.state] : [event.change.timeline, event.change.state];
    for (const entry of entries) {
      if (entry.seq <= this.#seq) continue;
      this.#seq = entry.seq;
      this.#showEntry(entry);
    }
    if (state === "working" && this.#live.text === "" && entries.at(-1)?.type !== "effect-claimed") {
      this.#status.show(`${visible(this.#agent)} · thinking`);
    }
  }

  /** Before anybody else writes to the terminal. */
  pause(): void {
    this.#status.clear();
    this.#endLine();
  }

  #showText({ turn, attempt, delta }: TaskEvent & { type: "text" }): void {
    this.#status.clear();
    const { turn: earlier, attempt: before, text } = this.#live;
    if (turn !== earlier || attempt !== before) {
      this.#words.end();
      if (turn === earlier && text !== "") this.#terminal.note("(cut off; the agent starts over)\n");
      this.#live = { turn, attempt, text: "" };
      this.#introduce();
    }
    this.#live = { turn, attempt, text: this.#live.text + delta };
    this.#words.write(delta);
  }

  #showEntry(entry: TimelineEntry): void {
    const { type, says = "", turn } = entry;
    if (type === "task-submitted" || type === "request-opened") return;
    // A task usually ends with the words that were just said.
    if (type === "task-completed" && says === this.#lastSaid) return;
    if (type === "model-replied" || type === "task-completed") {
      this.#showReply(turn ?? 0, says);
      return;
    }
    this.#status.clear();
    this.#endLine();
    const { note, paint, errors } = this.#terminal;
    note(wrapLines(`${renderEntry(entry, paint, `${markOf(type)} `).join("\n")}\n`, errors.columns));
    if (type === "effect-claimed") this.#status.show(`${visible(this.#agent)} · ${visible(entry.tool ?? "")}`);
  }

  #showReply(turn: number, says: string): void {
    this.#status.clear();
    const { turn: running, text } = this.#live;
    const isRest = turn === running && says.startsWith(text);
    if (!isRest) this.#endLine();
    if (!isRest && says !== "") this.#introduce();
    this.#words.write(isRest ? says.slice(text.length) : says);
    this.#words.end();
    this.#live = { turn: 0, attempt: 0, text: "" };
    this.#lastSaid = says;
  }

  #introduce(): void {
    const { note, paint, output } = this.#terminal;
    if (output.isTTY) note(`${paint.cyan(`${visible(this.#agent)} ›`)}\n`);
  }

  #endLine(): void {
    this.#words.end();
    this.#live = { turn: 0, attempt: 0, text: "" };
  }
}

function markOf(type: TimelineEntry["type"]): string {
  switch (type) {
    case "effect-claimed":
      return "⚙";
    case "effect-finished":
      return "✓";
    case "task-failed":
    case "task-canceled":
    case "task-rejected":
    case "call-refused":
      return "✕";
    case "effect-unknown":
      return "?";
    default:
      return "·";
  }
}
