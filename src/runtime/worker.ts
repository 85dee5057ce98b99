/**
 * Works on a task that is due: asks `next` what comes, does it, writes it down, until the task waits or is over.
 *
 * G1  An effect is claimed in the log before the tool is called, with facts worked out in that moment.
 * G2  The tool gets the arguments of the log, nothing that was kept in memory.
 * G3  A claim that this worker did not make in this very advance was cut off: it is never simply run again.
 */
import { isFault, unreachable } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Lease } from "../store/store.ts";
import { OPEN_REQUESTS_MAX } from "../task/ask.ts";
import type { Command } from "../task/command.ts";
import { callDigest } from "../task/digest.ts";
import { nameOf, type TaskKey } from "../task/event.ts";
import { findJsonProblem, type JsonObject } from "../task/json.ts";
import { advanceLog } from "../task/log.ts";
import { next, type Step } from "../task/next.ts";
import type { RequestId, ToolFacts } from "../task/request.ts";
import { argsOf, type Call, callStatus, type Effect, findCall, type Task } from "../task/task.ts";
import type { Agent, Finished, Tool, Work } from "./agent.ts";
import { deadlineOf, draftApproval, draftInDoubt } from "./drafts.ts";
import type { Outcome, Runtime } from "./runtime.ts";

/** After this many failures in a row the task ends; nothing is silently stuck. */
export const ATTEMPTS_MAX = 5;
/** Then the slot goes to somebody else and the task, being due, comes round again. */
const STEPS_MAX = 1000;
/** A step that is refused again and again on an unchanged task is a failure, not a reason to spin. */
const IDLE_MAX = 3;
/** A tool that floods is cut off from the log, not the log from the tool. */
const RESULT_BYTES_MAX = 4 * 1024 * 1024;
/** Claim and outcome are worth waiting for a database that is away for a moment: otherwise a person must be asked. */
const INSIST_TRIES_MAX = 5;
const INSIST_RETRY_MS = 200;

export interface WorkerParts {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly ids: Ids;
}

export class Worker {
  readonly #runtime: Runtime;
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #running = new Map<string, AbortController>();

  constructor({ runtime, clock, ids }: WorkerParts) {
    this.#runtime = runtime;
    this.#clock = clock;
    this.#ids = ids;
    runtime.onChange((task) => {
      if (task.cancelRequestedBy || task.end) this.#running.get(nameOf(task.key))?.abort();
    });
  }

  /** Works until the task waits or is over. A failure counts; the last one that counts ends the task. */
  async advance(lease: Lease): Promise<void> {
    const { key, fence, attempts } = lease;
    const abort = new AbortController();
    this.#running.set(nameOf(key), abort);
    try {
      await this.#work(key, fence, abort.signal);
    } catch (error) {
      const final = attempts + 1 >= ATTEMPTS_MAX && !(isFault(error) && error.retry);
      if (!final) throw error;
      const why = error instanceof Error ? error.message : String(error);
      const message = `gave up after ${ATTEMPTS_MAX} failed attempts: ${why}`;
      await this.#runtime.execute(key, [{ type: "fail", message, code: "advance-failed" }], fence);
    } finally {
      this.#running.delete(nameOf(key));
    }
  }

  async #work(key: TaskKey, fence: number, signal: AbortSignal): Promise<void> {
    let version = 0;
    let idle = 0;
    for (let steps = 0; steps < STEPS_MAX; steps++) {
      const { task, nowMs } = await this.#runtime.load(key);
      if (!task) return;
      idle = task.version === version ? idle + 1 : 0;
      version = task.version;
      const agent = this.#runtime.agents.get(task.agent);
      if (!agent) {
        const message = `the agent "${task.agent}" is no longer configured`;
        await this.#runtime.execute(key, [{ type: "fail", message, code: "agent-missing" }], fence);
        return;
      }
      const round = { task, agent, fence, signal, nowMs };
      const step = nextStep(round, task);
      if (step.type === "rest") return;
      if (idle >= IDLE_MAX) throw new Error(`"${step.type}" was refused ${IDLE_MAX} times in a row`);
      if (step.type === "run") await this.#run(round, step.call);
      else if (step.type === "settle") await this.#settle(round, step.effect);
      else await this.#record(round, step);
    }
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
      case "think": {
        const reply = await round.agent.think(task, round.signal);
        return [{ type: "reply", turn: step.turn, messagesHeard: task.messages.length, ...reply }];
      }
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

  /** All questions of a turn at once; more than a person can be asked are refused. */
  async #ask({ agent, task }: Round, calls: readonly Call[]): Promise<Command[]> {
    const refused = calls.slice(OPEN_REQUESTS_MAX).map(({ callId }): Command => {
      const text = `More than ${OPEN_REQUESTS_MAX} calls of one turn need approval; this one was not asked.`;
      return { type: "refuse-call", callId, code: "too-many-requests", text };
    });
    // The time to answer begins when the question is there, not before the model has thought of it.
    const { nowMs } = await this.#runtime.load(task.key);
    const drafts = await Promise.all(
      calls.slice(0, OPEN_REQUESTS_MAX).flatMap((call) => {
        const tool = agent.tools.get(call.tool);
        const about = { ...call, expiresAtMs: deadlineOf(agent, nowMs), onTimeout: agent.onTimeout };
        return tool ? [tool.prepare(call.args).then((facts) => draftApproval(tool, about, facts))] : [];
      }),
    );
    return [...refused, { type: "open", drafts }];
  }

  /** The gate, from the worker's side: work out what would run, claim it, run it, write down what came of it. */
  async #run(round: Round, call: Call): Promise<void> {
    const { task, agent, fence, signal } = round;
    const tool = agent.tools.get(call.tool);
    if (!tool) return;
    const args = argsOf(task, call);
    const facts = await tool.prepare(args);
    const status = callStatus(task, call);
    if (status.type === "allowed") {
      const scope = { key: task.key, epoch: this.#runtime.store.epoch };
      if (callDigest(scope, status.requestId, call.tool, args, facts) !== status.digest) {
        await this.#askAgain(round, tool, call, status.requestId, facts);
        return;
      }
    }
    const token = this.#ids.token();
    const mayRetry = tool.idempotent && tool.onAmbiguous === "retry";
    const claim: Command = { type: "claim", callId: call.callId, token, gated: tool.gated, facts, mayRetry };
    const claimed = await this.#insist(task.key, claim, fence);
    if (!claimed.ok) return;
    const effect = Object.values(claimed.task.effects).find((candidate) => candidate.token === token);
    if (!effect) return;
    const idempotencyKey = effect.requestId ?? `${task.key.id}-${call.callId}`;
    const finished = await this.#act(claimed.task, tool, effect, { facts, idempotencyKey, signal });
    await this.#insist(task.key, { type: "finish", effectId: effect.effectId, token, ...finished }, fence);
  }

  /** G2. Between the look and the claim somebody may have decided anew: the bytes are those of the claim, re-hashed. */
  async #act(task: Task, tool: Tool, effect: Effect, work: Omit<Work, "args">): Promise<Finished> {
    const call = findCall(task, effect.callId);
    const args = call ? argsOf(task, call) : {};
    const scope = { key: task.key, epoch: this.#runtime.store.epoch };
    if (callDigest(scope, effect.requestId ?? "", tool.name, args, work.facts) !== effect.digest) {
      return { outcome: "failed", result: "not run: what would run is not what was claimed" };
    }
    return runTool(tool, { ...work, args });
  }

  /** What was approved is no longer what would run: ask about that, with a fresh deadline. */
  async #askAgain(
    { task, agent, fence, nowMs }: Round,
    tool: Tool,
    call: Call,
    requestId: RequestId,
    facts: ToolFacts,
  ): Promise<void> {
    const { callId } = call;
    const args = argsOf(task, call);
    const about = { callId, args, expiresAtMs: deadlineOf(agent, nowMs), onTimeout: agent.onTimeout };
    const draft = draftApproval(tool, about, facts);
    const replaces = { requestId, state: "approved" } as const;
    await this.#runtime.execute(task.key, [{ type: "ask-again", callId, draft, replaces }], fence);
  }

  /** Claim and outcome bear a token, so the same again is harmless when an answer was lost. */
  async #insist(key: TaskKey, command: Command, fence: number): Promise<Outcome> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#runtime.execute(key, [command], fence);
      } catch (error) {
        if (!isFault(error) || !error.retry || tries >= INSIST_TRIES_MAX) throw error;
        await this.#clock.sleep(INSIST_RETRY_MS * tries);
      }
    }
  }

  /** G3. */
  async #settle(round: Round, effect: Effect): Promise<void> {
    const { task, agent, fence, nowMs } = round;
    const call = task.calls[effect.callId];
    const tool = call && agent.tools.get(call.tool);
    const why = "the worker stopped before it could write down the outcome";
    const doubt = { type: "doubt", effectId: effect.effectId, why } as const;
    if (!call || !tool) {
      await this.#runtime.execute(task.key, [{ ...doubt, onAmbiguous: "fail" }], fence);
      return;
    }
    const args = argsOf(task, call);
    const facts = await tool.prepare(args);
    const mayRetry = this.#mayRetry(task, tool, effect, args, facts);
    if (mayRetry && effect.status.type === "unknown") return this.#run(round, call);
    const fallback = tool.onAmbiguous === "fail" ? "fail" : "ask";
    const draft = draftInDoubt(agent, tool, call, effect, args, facts, nowMs);
    const onAmbiguous = mayRetry ? "retry" : fallback;
    await this.#runtime.execute(task.key, [{ ...doubt, onAmbiguous, draft }], fence);
  }

  /** Declared idempotent, to be repeated, and still exactly what was allowed then. */
  #mayRetry(task: Task, tool: Tool, effect: Effect, args: JsonObject, facts: ToolFacts): boolean {
    if (!tool.idempotent || tool.onAmbiguous !== "retry" || (tool.gated && !effect.requestId)) return false;
    const scope = { key: task.key, epoch: this.#runtime.store.epoch };
    return callDigest(scope, effect.requestId ?? "", tool.name, args, facts) === effect.digest;
  }
}

/** What one look at a task is made of. */
interface Round {
  readonly task: Task;
  readonly agent: Agent;
  readonly fence: number;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

type Recordable = Exclude<Step, { type: "rest" | "run" | "settle" }>;

function nextStep({ agent, nowMs }: Round, task: Task): Step {
  return next(task, (name) => agent.tools.get(name)?.gated, nowMs);
}

/** A tool that throws has failed, and one that answers nonsense has still run: results for the model, both. */
async function runTool(tool: Tool, work: Work): Promise<Finished> {
  try {
    const { outcome, result = null } = await tool.run(work);
    const problem = findJsonProblem(result, RESULT_BYTES_MAX);
    return { outcome, result: problem ? `the result cannot be kept: ${problem.pointer} ${problem.text}` : result };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { outcome: "failed", result: text.toWellFormed() };
  }
}
