/**
 * Works on a task that is due: asks `next` what comes, does it, writes it down, until the task waits or is over. What
 * runs a tool stands in `runner.ts`.
 */
import { isFault, unreachable } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Lease } from "../store/store.ts";
import { OPEN_REQUESTS_MAX } from "../task/ask.ts";
import type { Command } from "../task/command.ts";
import { nameOf, type TaskKey } from "../task/event.ts";
import { advanceLog } from "../task/log.ts";
import { next, type Step } from "../task/next.ts";
import type { RequestDraft } from "../task/request.ts";
import { type Call, isOver, openRequests, type Task } from "../task/task.ts";
import { CallRefused, type Tool } from "../tools/tool.ts";
import type { Agent } from "./agent.ts";
import { deadlineOf, draftApproval, draftQuestion } from "./drafts.ts";
import { bringBack, putAside } from "./long-arguments.ts";
import { Pools } from "./pool.ts";
import { findLoss } from "./recovery.ts";
import { prepareCall, type Round, Runner, type RunnerParts, refuseCall } from "./runner.ts";
import { RetryLater, type Runtime } from "./runtime.ts";

/** After this many failures in a row the task ends; nothing is silently stuck. */
export const ATTEMPTS_MAX = 5;
/** Then the slot goes to somebody else and the task, being due, comes round again. */
const STEPS_MAX = 1000;
/** A step that is refused again and again on an unchanged task is a failure, not a reason to spin. */
const IDLE_MAX = 3;
/** A decision made on another node is seen after this long by whoever waits in his slot. */
const LOOK_AGAIN_MS = 1000;

export class Worker {
  readonly #runtime: Runtime;
  readonly #clock: Clock;
  readonly #runner: Runner;
  readonly #running = new Map<string, AbortController>();
  readonly #waiting = new Map<string, AbortController>();
  readonly #stopping = new AbortController();
  readonly #pools = new Pools();
  /** Tasks that this worker has been waiting for in a slot: coming back to one is no loss. */
  readonly #slots = new Set<string>();

  constructor(parts: RunnerParts) {
    this.#runtime = parts.runtime;
    this.#clock = parts.clock;
    this.#runner = new Runner(parts);
    this.#runtime.onChange((task) => {
      this.#waiting.get(nameOf(task.key))?.abort();
      if (task.end) this.#slots.delete(nameOf(task.key));
      if (task.cancelRequestedBy || task.end) this.#running.get(nameOf(task.key))?.abort();
    });
  }

  /** Whoever waits in his slot gives it up. */
  stop(): void {
    this.#stopping.abort();
    for (const waiting of this.#waiting.values()) waiting.abort();
  }

  /** Works until the task waits or is over. A failure counts; the last one that counts ends the task. */
  async advance(lease: Lease): Promise<void> {
    const { key, fence, attempts } = lease;
    const abort = new AbortController();
    this.#running.set(nameOf(key), abort);
    let leave: (() => void) | undefined;
    const enter = async (agent: Agent) => {
      leave ??= await this.#pools.enter(key, agent.name, agent.workerPool);
    };
    try {
      await this.#work(lease, abort.signal, enter);
    } catch (error) {
      const counts = !(error instanceof RetryLater) && !(isFault(error) && error.retry);
      if (!counts || attempts + 1 < ATTEMPTS_MAX) throw error;
      const why = error instanceof Error ? error.message : String(error);
      const message = `gave up after ${ATTEMPTS_MAX} failed attempts: ${why}`;
      await this.#runtime.execute(key, [{ type: "fail", message, code: "advance-failed" }], fence);
    } finally {
      leave?.();
      this.#running.delete(nameOf(key));
    }
  }

  async #work(lease: Lease, signal: AbortSignal, enter: (agent: Agent) => Promise<void>): Promise<void> {
    const { key, fence, attempts: attempt } = lease;
    let version = 0;
    let idle = 0;
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const { task, nowMs } = await this.#look(key, version);
      if (!task || isOver(task)) return;
      const agent = this.#runtime.agents.get(task.agent);
      if (version === 0 && agent) await enter(agent);
      const isNew = version === 0 && !this.#slots.has(nameOf(key));
      const loss = isNew ? findLoss(task, agent, lease, nowMs) : undefined;
      if (!agent || loss) {
        const missing = { code: "agent-missing", message: `the agent "${task.agent}" is no longer configured` };
        await this.#runtime.execute(key, [{ type: "fail", ...(loss ?? missing) }], fence);
        return;
      }
      idle = task.version === version ? idle + 1 : 0;
      version = task.version;
      const round = { task, agent, fence, attempt, signal, nowMs };
      const step = nextStep(round, task);
      if (step.type === "rest") {
        if (task.mode !== "blocking" || this.#stopping.signal.aborted) return;
        this.#slots.add(nameOf(key));
        await this.#waitInSlot(task, nowMs);
        version = -1; // looking again at the same pause is no idling
        steps = 0;
        continue;
      }
      if (idle >= IDLE_MAX) throw new Error(`"${step.type}" was refused ${IDLE_MAX} times in a row`);
      if (step.type === "run") await this.#runner.run(round, step.call);
      else if (step.type === "settle") await this.#runner.settle(round, step.effect);
      else await this.#record(round, step);
    }
  }

  /**
   * What this worker has just appended it need not read again: if somebody else appended since, the next append finds
   * it, and a task that looks at rest but is not stays due.
   */
  async #look(key: TaskKey, version: number): Promise<{ task: Task | undefined; nowMs: number }> {
    const seen = version > 0 ? this.#runtime.peek(key) : undefined;
    return seen && seen.version > version ? { task: seen, nowMs: seen.updatedAtMs } : this.#runtime.load(key);
  }

  /** Until something is appended, the next deadline passes, or the worker stops. */
  async #waitInSlot(task: Task, nowMs: number): Promise<void> {
    const deadlines = openRequests(task).flatMap(({ expiresAtMs }) => (expiresAtMs === null ? [] : [expiresAtMs]));
    const waiting = new AbortController();
    this.#waiting.set(nameOf(task.key), waiting);
    await this.#clock.sleep(Math.max(0, Math.min(LOOK_AGAIN_MS, ...deadlines.map((at) => at - nowMs))), waiting.signal);
    this.#waiting.delete(nameOf(task.key));
  }

  /** Steps that only write: as many as follow from each other go into one append. */
  async #record(round: Round, first: Recordable): Promise<void> {
    const { task, fence, nowMs } = round;
    const now = { key: task.key, nowMs, epoch: this.#runtime.store.epoch };
    const commands: Command[] = [];
    let ahead = task;
    for (let step: Step = first; ; ) {
      if (step.type === "rest" || step.type === "run" || step.type === "settle") break;
      if (step.type === "think" && commands.length > 0) break;
      // What stands beside the log is there only after the append.
      if (step.type === "ask" && commands.some((command) => "blobs" in command && command.blobs?.length)) break;
      commands.push(...(await this.#commandsFor(round, ahead, step)));
      const result = advanceLog(task, commands, now);
      if (!result.ok || !result.task) break;
      ahead = result.task;
      step = nextStep(round, ahead);
    }
    // A refusal means that the task has moved meanwhile; the next round looks at it afresh.
    await this.#runtime.execute(task.key, commands, fence);
  }

  async #commandsFor(round: Round, task: Task, step: Recordable): Promise<Command[]> {
    switch (step.type) {
      case "think":
        return this.#think(round, task, step.turn);
      case "ask":
        return this.#ask(round, step.calls);
      case "refuse":
        return [{ type: "refuse-call", callId: step.call.callId, code: step.code, text: step.text }];
      case "expire":
        return [{ type: "expire" }];
      case "cancel":
        return [{ type: "cancel", principal: task.cancelRequestedBy ?? task.principal }];
      case "complete":
        return [{ type: "complete", message: step.message }];
      default:
        return unreachable(step);
    }
  }

  async #think({ agent, signal, attempt }: Round, task: Task, turn: number): Promise<Command[]> {
    const onText = (delta: string) => this.#runtime.tellText({ key: task.key, turn, attempt, delta });
    const { artifacts = [], end, ...reply } = await agent.think(task, { signal, onText });
    const updates = artifacts.map((artifact): Command => ({ type: "update-artifact", ...artifact }));
    if (end?.state === "rejected") return [...updates, { type: "reject", message: end.message }];
    if (end) return [...updates, { type: "fail", message: end.message, code: end.code }];
    const aside = putAside(agent, reply.calls);
    return [...updates, { type: "reply", turn, messagesHeard: task.messages.length, ...reply, ...aside }];
  }

  /** All questions of a turn at once; more than a person can be asked are refused. */
  async #ask({ agent, task }: Round, calls: readonly Call[]): Promise<Command[]> {
    // The time to answer begins when the question is there, not before the model has thought of it.
    const { nowMs } = await this.#runtime.load(task.key);
    const asked = await Promise.all(
      calls.slice(0, OPEN_REQUESTS_MAX).flatMap((call) => {
        const tool = agent.tools.get(call.tool);
        return tool ? [this.#draft(task, agent, tool, call, nowMs)] : [];
      }),
    );
    const commands = asked.filter((each) => "type" in each);
    const drafts = asked.filter((each) => "kind" in each);
    for (const { callId } of calls.slice(OPEN_REQUESTS_MAX)) {
      const text = `More than ${OPEN_REQUESTS_MAX} calls of one turn need approval; this one was not asked.`;
      commands.push({ type: "refuse-call", callId, code: "too-many-requests", text });
    }
    return drafts.length > 0 ? [...commands, { type: "open", drafts }] : commands;
  }

  /** The question that a call becomes, or why nobody is asked. Any doubt means no. */
  async #draft(task: Task, agent: Agent, tool: Tool, call: Call, nowMs: number): Promise<RequestDraft | Command> {
    if (!agent.tracked) {
      const text = "Tool requires approval but task tracking not enabled";
      return { type: "refuse-call", callId: call.callId, code: "not-tracked", text };
    }
    const about = { ...call, expiresAtMs: deadlineOf(agent, nowMs), onTimeout: agent.onTimeout };
    const args = await bringBack(this.#runtime.store, task.key, tool, call.args);
    const facts = await prepareCall(tool, args);
    if (facts instanceof CallRefused) return refuseCall(call, facts);
    return tool.question ? draftQuestion(tool, about, tool.question(args)) : draftApproval(tool, about, facts);
  }
}

type Recordable = Exclude<Step, { type: "rest" | "run" | "settle" }>;

function nextStep({ agent, nowMs }: Round, task: Task): Step {
  return next(task, (name) => agent.tools.get(name)?.gated, nowMs);
}
