/** What the runtime needs of an agent and its tools. How they think and act is theirs; what may run is the gate's. */
import type { ToolCall, Usage } from "../task/event.ts";
import type { Json, JsonObject } from "../task/json.ts";
import type { Risk, ToolFacts } from "../task/request.ts";
import type { Task } from "../task/task.ts";

export interface Agent {
  readonly name: string;
  readonly tools: ReadonlyMap<string, Tool>;
  /** How long a person may take; null waits for ever. */
  readonly inputTimeoutMs: number | null;
  readonly onTimeout: "fail" | "deny";
  /** One model call: what the model says to this task as it stands. */
  think(task: Task, signal: AbortSignal): Promise<Reply>;
}

export interface Reply {
  readonly text: string;
  readonly calls: readonly Omit<ToolCall, "callId">[];
  readonly usage?: Usage;
}

export interface Tool {
  readonly name: string;
  /** Whether its rule asks a person. */
  readonly gated: boolean;
  readonly risk: Risk;
  readonly editable: boolean;
  /** May run again under the same idempotency key without a second effect. */
  readonly idempotent: boolean;
  /** What to do when a crash leaves the outcome unknown; `retry` counts only for an idempotent tool. */
  readonly onAmbiguous: "ask" | "fail" | "retry";
  /** What these arguments would do now, in full; without any effect. */
  prepare(args: JsonObject): Promise<ToolFacts>;
  promptFor(args: JsonObject): string;
  run(work: Work): Promise<Finished>;
}

/** All that an executor gets: what was shown, hashed and approved. */
export interface Work {
  readonly args: JsonObject;
  readonly facts: ToolFacts;
  readonly idempotencyKey: string;
  readonly signal: AbortSignal;
}

export interface Finished {
  readonly outcome: "done" | "failed";
  readonly result: Json;
}

export type Agents = ReadonlyMap<string, Agent>;

export function findTool(agents: Agents, task: Task, name: string): Tool | undefined {
  return agents.get(task.agent)?.tools.get(name);
}
