/** Prints a task as it goes on: the agent's text as it comes, tools as they run, decisions as they are made. */
import type { TaskEvent, TimelineEntry } from "../client/client.ts";
import { StatusLine } from "./status-line.ts";
import type { Terminal } from "./terminal.ts";
import { timeOf, visible } from "./words.ts";

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
  readonly #say: (text: string) => void;

  constructor(terminal: Terminal, agent: string, options: { readonly afterSeq: number; readonly isQuiet: boolean }) {
    this.#terminal = terminal;
    this.#status = new StatusLine(terminal);
    this.#agent = agent;
    this.#seq = options.afterSeq;
    this.#say = options.isQuiet ? terminal.note : terminal.out;
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
      if (turn === earlier && text !== "") this.#terminal.note("\n(cut off; the agent starts over)\n");
      this.#live = { turn, attempt, text: "" };
      this.#introduce();
    }
    this.#live = { turn, attempt, text: this.#live.text + delta };
    this.#say(visible(delta));
  }

  #showEntry(entry: TimelineEntry): void {
    const { type, text, says = "", turn } = entry;
    if (type === "task-submitted" || type === "request-opened") return;
    // A task usually ends with the words that were just said.
    if (type === "task-completed" && says === this.#lastSaid) return;
    if (type === "model-replied" || type === "task-completed") {
      this.#showReply(turn ?? 0, says);
      return;
    }
    this.#status.clear();
    this.#endLine();
    const { paint } = this.#terminal;
    const words = says === "" ? "" : `: ${visible(says)}`;
    this.#terminal.note(`${paint.dim(timeOf(entry.at))}  ${markOf(type)} ${visible(text)}${words}\n`);
    if (type === "effect-claimed") this.#status.show(`${visible(this.#agent)} · ${visible(entry.tool ?? "")}`);
  }

  #showReply(turn: number, says: string): void {
    this.#status.clear();
    const { turn: running, text } = this.#live;
    const isRest = turn === running && says.startsWith(text);
    if (!isRest) this.#endLine();
    if (!isRest && says !== "") this.#introduce();
    this.#say(visible(isRest ? says.slice(text.length) : says));
    if (says !== "") this.#say("\n");
    this.#live = { turn: 0, attempt: 0, text: "" };
    this.#lastSaid = says;
  }

  #introduce(): void {
    const { note, paint, output } = this.#terminal;
    if (output.isTTY) note(paint.cyan(`${visible(this.#agent)} › `));
  }

  #endLine(): void {
    if (this.#live.text !== "") this.#say("\n");
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
