/**
 * The gate, from the worker's side: work out what would run, claim it, run it, write down what came of it.
 *
 * G1  An effect is claimed in the log before the tool is called, with facts worked out in that moment.
 * G2  The tool gets the arguments of the log, nothing that was kept in memory.
 * G3  A claim that this worker did not make in this very advance was cut off: it is never simply run again.
 */
import { isFault } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Command } from "../task/command.ts";
import { callDigest } from "../task/digest.ts";
import type { TaskKey } from "../task/event.ts";
import { findJsonProblem, type JsonObject } from "../task/json.ts";
import type { RequestId, ToolFacts } from "../task/request.ts";
import { argsOf, type Call, callStatus, type Effect, findCall, findRequest, type Task } from "../task/task.ts";
import { CallRefused, type Finished, type Tool, type Work } from "../tools/tool.ts";
import type { Agent } from "./agent.ts";
import { deadlineOf, draftApproval, draftInDoubt } from "./drafts.ts";
import { bringBack } from "./long-arguments.ts";
import type { Outcome, Runtime } from "./runtime.ts";

/** A tool that floods is cut off from the log, not the log from the tool. */
const RESULT_BYTES_MAX = 4 * 1024 * 1024;
/** Claim and outcome are worth waiting for a database that is away for a moment: otherwise a person must be asked. */
const INSIST_TRIES_MAX = 5;
const INSIST_RETRY_MS = 200;
/** Cancel waits as long for what really happened. */
const STOP_MAX_MS = 10_000;
const CUT_OFF = "the worker stopped before it could write down the outcome";

/** What one look at a task is made of. */
export interface Round {
  readonly task: Task;
  readonly agent: Agent;
  readonly fence: number;
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly nowMs: number;
}

export interface RunnerParts {
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly ids: Ids;
}

export class Runner {
  readonly #runtime: Runtime;
  readonly #clock: Clock;
  readonly #ids: Ids;

  constructor({ runtime, clock, ids }: RunnerParts) {
    this.#runtime = runtime;
    this.#clock = clock;
    this.#ids = ids;
  }

  async run(round: Round, call: Call): Promise<void> {
    const { task, agent, fence, signal } = round;
    const tool = agent.tools.get(call.tool);
    if (!tool) return;
    const args = argsOf(task, call);
    const facts = await prepareCall(tool, await this.#whole(task, tool, args));
    if (facts instanceof CallRefused) {
      await this.#runtime.execute(task.key, [refuseCall(call, facts)], fence);
      return;
    }
    const status = callStatus(task, call);
    if (status.type === "allowed") {
      const scope = { key: task.key, epoch: this.#runtime.store.epoch };
      if (callDigest(scope, status.requestId, call.tool, args, facts) !== status.digest) {
        await this.#askAgain(round, tool, call, status.requestId, facts);
        return;
      }
    }
    const token = this.#ids.token();
    const mayRetry = status.type === "doubtful" && (await this.#mayRetry(round, tool, status.effect, args, facts));
    const claim: Command = { type: "claim", callId: call.callId, token, gated: tool.gated, facts, mayRetry };
    const claimed = await this.#insist(task.key, claim, fence);
    if (!claimed.ok) return;
    const effect = Object.values(claimed.task.effects).find((candidate) => candidate.token === token);
    if (!effect) return;
    const idempotencyKey = effect.requestId ?? `${task.key.id}-${call.callId}`;
    const headers = this.#runtime.headersOf(task);
    const forwarded = headers ? { headers } : { headersLost: true };
    const finished = await this.#act(claimed.task, tool, effect, { facts, idempotencyKey, signal, ...forwarded });
    if (finished.outcome === "unknown") {
      await this.#doubt({ ...round, task: claimed.task }, tool, call, effect, facts, finished.why);
      return;
    }
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
    return this.#runTool(tool, { ...work, args: await this.#whole(task, tool, args) });
  }

  /** Whoever does not stop when he is asked to is left alone; what became of it nobody knows. */
  async #runTool(tool: Tool, work: Work): Promise<Finished> {
    const { signal } = work;
    const over = new AbortController();
    const givenUp = new Promise<Finished>((resolve) => {
      const giveUp = async () => {
        await this.#clock.sleep(STOP_MAX_MS, over.signal);
        resolve({ outcome: "unknown", why: "it was asked to stop and did not" });
      };
      if (signal.aborted) void giveUp();
      else signal.addEventListener("abort", () => void giveUp(), { once: true, signal: over.signal });
    });
    try {
      return await Promise.race([runTool(tool, work), givenUp]);
    } finally {
      over.abort();
    }
  }

  #whole(task: Task, tool: Tool, args: JsonObject): Promise<JsonObject> {
    return bringBack(this.#runtime.store, task.key, tool, args);
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
  async settle(round: Round, effect: Effect): Promise<void> {
    const { task, agent, fence } = round;
    const call = task.calls[effect.callId];
    const tool = call && agent.tools.get(call.tool);
    if (!call || !tool) {
      const doubt = { type: "doubt", effectId: effect.effectId, why: CUT_OFF, onAmbiguous: "fail" } as const;
      await this.#runtime.execute(task.key, [doubt], fence);
      return;
    }
    const args = argsOf(task, call);
    const whole = await this.#whole(task, tool, args);
    if (effect.status.type === "claimed" && (await settledByItself(tool, task, effect, whole)) === "done") {
      const { effectId, token } = effect;
      const result = `${tool.name} was cut off, and is done: what is there now is what was to be.`;
      await this.#insist(task.key, { type: "finish", effectId, token, outcome: "done", result }, fence);
      return;
    }
    const facts = await prepareCall(tool, whole);
    if (facts instanceof CallRefused) {
      await this.#doubt(round, tool, call, effect, shownFacts(task, effect) ?? UNKNOWN_FACTS, CUT_OFF);
      return;
    }
    const mayRetry = await this.#mayRetry(round, tool, effect, args, facts);
    if (mayRetry && effect.status.type === "unknown") return this.run(round, call);
    await this.#doubt(round, tool, call, effect, facts, CUT_OFF, mayRetry);
  }

  async #doubt(
    { task, agent, fence, nowMs }: Round,
    tool: Tool,
    call: Call,
    effect: Effect,
    facts: ToolFacts,
    why: string,
    mayRetry = false,
  ): Promise<void> {
    const fallback = tool.onAmbiguous === "fail" ? "fail" : "ask";
    const draft = draftInDoubt(agent, tool, call, effect, argsOf(task, call), facts, nowMs);
    const onAmbiguous = mayRetry ? "retry" : fallback;
    const doubt: Command = { type: "doubt", effectId: effect.effectId, why, onAmbiguous, draft };
    await this.#insist(task.key, doubt, fence);
  }

  /** Declared idempotent, or seen not to have happened; and still exactly what was allowed then. */
  async #mayRetry({ task }: Round, tool: Tool, effect: Effect, args: JsonObject, facts: ToolFacts): Promise<boolean> {
    if (tool.gated && !effect.requestId) return false;
    const scope = { key: task.key, epoch: this.#runtime.store.epoch };
    if (callDigest(scope, effect.requestId ?? "", tool.name, args, facts) !== effect.digest) return false;
    if (tool.idempotent && tool.onAmbiguous === "retry") return true;
    return (await settledByItself(tool, task, effect, await this.#whole(task, tool, args))) === "not-done";
  }
}

const UNKNOWN_FACTS: ToolFacts = { identity: "", schemaHash: "", policyVersion: "", plan: {} };

/** What the tool says these arguments would do, or why they may not even be proposed. */
export async function prepareCall(tool: Tool, args: JsonObject): Promise<ToolFacts | CallRefused> {
  try {
    return await tool.prepare(args);
  } catch (error) {
    if (error instanceof CallRefused) return error;
    throw error;
  }
}

export function refuseCall({ callId }: Pick<Call, "callId">, { code, message }: CallRefused): Command {
  return { type: "refuse-call", callId, code, text: message };
}

async function settledByItself(tool: Tool, task: Task, effect: Effect, args: JsonObject) {
  return tool.settle ? tool.settle(args, shownFacts(task, effect)?.plan) : "unknown";
}

/** The facts of the request that allowed it; with edits they are those of other arguments. */
function shownFacts(task: Task, { requestId }: Effect): ToolFacts | undefined {
  const record = requestId && findRequest(task, requestId);
  if (!record || !("facts" in record.request) || record.decision?.editedArgs) return undefined;
  return record.request.facts;
}

/** A tool that throws has failed, and one that answers nonsense has still run: results for the model, both. */
async function runTool(tool: Tool, work: Work): Promise<Finished> {
  try {
    const finished = await tool.run(work);
    if (finished.outcome === "unknown") return finished;
    const { outcome, result = null } = finished;
    const problem = findJsonProblem(result, RESULT_BYTES_MAX);
    return { outcome, result: problem ? `the result cannot be kept: ${problem.pointer} ${problem.text}` : result };
  } catch (error) {
    const text = (error instanceof Error ? error.message : String(error)).toWellFormed();
    // Nobody knows how far it had come when it was stopped.
    if (work.signal.aborted) return { outcome: "unknown", why: `it was stopped: ${text}` };
    return { outcome: "failed", result: text };
  }
}
