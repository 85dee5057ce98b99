/** What the runtime needs of an agent. How it thinks is its own; what may run is the gate's. */
import type { WantedCall } from "../task/command.ts";
import type { Usage } from "../task/event.ts";
import type { JsonObject } from "../task/json.ts";
import type { Task } from "../task/task.ts";
import type { Tool } from "../tools/tool.ts";
import type { Toolbox } from "../tools/toolbox.ts";

export interface Agent {
  readonly name: string;
  readonly description: string;
  readonly tools: Toolbox;
  /** How long a person may take; null waits for ever. */
  readonly inputTimeoutMs: number | null;
  readonly onTimeout: "fail" | "deny";
  /** Without tracking nobody could be asked: every gated call is denied. */
  readonly tracked: boolean;
  /** How a new task waits: put away, or in its worker's slot. */
  readonly mode: WaitingMode;
  /** How many of its tasks are worked on at once; those that wait in their slot count. */
  readonly workerPool: number;
  readonly recovery: Recovery;
  /** One model call: what the model says to this task as it stands. */
  think(task: Task, thinking: Thinking): Promise<Reply>;
}

export type WaitingMode = "async" | "blocking";

/** What becomes of a task that was working when its worker died. */
export interface Recovery {
  readonly autoResume: boolean;
  /** Older than this it fails instead; null: never. */
  readonly resumeTimeoutMs: number | null;
}

/** Puts tasks away, asks for ever, goes on after a crash. */
export const DURABLE = {
  inputTimeoutMs: null,
  onTimeout: "deny",
  tracked: true,
  mode: "async",
  workerPool: 64,
  recovery: { autoResume: true, resumeTimeoutMs: null },
} as const satisfies Partial<Agent>;

export interface Thinking {
  readonly signal: AbortSignal;
  /** Text that comes before the whole reply: for whoever watches, never for the log. */
  readonly onText: (delta: string) => void;
}

export interface Reply {
  readonly text: string;
  readonly calls: readonly WantedCall[];
  readonly usage?: Usage;
  /** Written before the reply itself. */
  readonly artifacts?: readonly Artifact[];
  /** The task ends with this reply, and not well. */
  readonly end?: { readonly state: "rejected" | "failed"; readonly message: string; readonly code: string };
}

export interface Artifact {
  readonly artifact: JsonObject;
  readonly append: boolean;
  readonly lastChunk: boolean;
}

export type Agents = ReadonlyMap<string, Agent>;

export function findTool(agents: Agents, task: Task, name: string): Tool | undefined {
  return agents.get(task.agent)?.tools.get(name);
}
