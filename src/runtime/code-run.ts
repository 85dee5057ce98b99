/**
 * One run of an agent's function from the log. What is recorded answers at once; what is not suspends the function for
 * good: it is left where it stands, and the next run meets the answer.
 *
 * C1  A key is used once in a run, and means the same call in every run (else the code has changed).
 * C2  Nothing is executed here: tools, questions and steps become calls, and those go through the gate.
 * C3  What the function gets is a copy: it cannot change what is remembered of the log.
 */
import { HoldpointError } from "../errors.ts";
import type { Clock } from "../ports/clock.ts";
import { sha256 } from "../task/digest.ts";
import { canonicalJson, findJsonProblem, isObject, type Json, type JsonObject } from "../task/json.ts";
import type { Artifact, Reply } from "./agent.ts";
import type { History, RecordedCall } from "./code-history.ts";
import { checkAgainst, checkValues, toQuestion } from "./code-question.ts";
import type { AgentContext, AgentFunction, AskForm, Schema, StepFunction, ToolName } from "./define-agent.ts";

/** Each run meets every key again; a function with more to do should start further tasks. */
export const KEYS_MAX = 1000;
const KEY_CHARS_MAX = 200;
const ARTIFACT_BYTES_MAX = 1024 * 1024;

/** The names under which steps and questions stand in the log. */
export const STEP = "step";
export const IDEMPOTENT_STEP = "idempotent_step";
export const ASK = "ask";

export interface FoundStep {
  readonly work: StepFunction<unknown>;
  readonly idempotent: boolean;
}

type NewCall = Reply["calls"][number];
type Returned = { readonly text: string } | { readonly error: unknown };

export class CodeRun {
  /** What it wants now, in order. */
  readonly calls: NewCall[] = [];
  readonly artifacts: Artifact[] = [];
  /** Steps that it has met and that have no outcome yet. */
  readonly steps = new Map<string, FoundStep>();
  /** How the function came to its end; undefined while it waits. */
  returned: Returned | undefined;
  end: Reply["end"];
  readonly #history: History;
  readonly #hasTool: (name: string) => boolean;
  readonly #keys = new Set<string>();
  readonly #waits = Promise.withResolvers<void>();
  #replied: string | undefined;
  #isLeft = false;
  #inside: string | undefined;

  constructor(history: History, hasTool: (name: string) => boolean) {
    this.#history = history;
    this.#hasTool = hasTool;
  }

  /** Until the function ends, or waits for something that is not recorded. */
  async start(run: AgentFunction, clock: Pick<Clock, "turn">, signal?: AbortSignal): Promise<void> {
    const ended = this.#call(run);
    // What it waits for outside `step` is waited for here too: there is no telling what that is.
    await beforeAbort(Promise.race([ended, this.#waits.promise]), signal);
    // All that can go on without the world outside goes on first, so that parallel calls become one turn.
    await clock.turn();
    this.#isLeft = true;
  }

  /** From here on somebody executes this step of it: using the context would wait for ever. */
  enter(key: string): void {
    this.#inside = key;
  }

  async #call(run: AgentFunction): Promise<void> {
    try {
      const text: unknown = (await run(this.#context())) ?? "";
      if (typeof text !== "string") throw misuse(`the function returned ${typeof text}; it must return text`);
      this.returned = { text: this.#replied ?? text };
    } catch (error) {
      this.returned = { error };
    }
  }

  #context(): AgentContext {
    return {
      message: structuredClone(this.#history.message),
      step: <T>(key: string, work: StepFunction<T>, { idempotent = false } = {}) => {
        const { tenant, id } = this.#history.key;
        this.#use(key, "step");
        const recorded = this.#find(key, idempotent ? IDEMPOTENT_STEP : STEP, { step: key, task: id, tenant });
        if (!recorded?.outcome) this.steps.set(key, { work, idempotent });
        // What comes back was `work`'s result when it was written.
        return this.#settle(recorded, (value) => value as T);
      },
      // The overloads say what each form gives; `checkValues` sees to it.
      ask: ((key: string, form: AskForm) => {
        this.#use(key, "ask");
        const { title, prompt, schema } = toQuestion(key, form);
        const recorded = this.#find(key, ASK, { title, prompt, schema });
        const message = recorded?.outcome?.ok ? structuredClone(recorded.outcome.message) : undefined;
        const read = (values: Json) => checkValues(key, form, values as JsonObject); // a decision's values are an object
        return this.#settle(recorded, async (value) => ({ values: await read(value), message }));
      }) as AgentContext["ask"],
      tool: <T>(key: string, tool: ToolName, args: JsonObject = {}, options?: { readonly result: Schema<T> }) => {
        this.#use(key, "tool");
        const recorded = this.#find(key, this.#nameTool(key, tool), args);
        return this.#settle(recorded, (value) => (options ? checkAgainst(key, options.result, value) : (value as T)));
      },
      ran: (key) => {
        const recorded = this.#history.calls.get(key);
        if (!recorded?.outcome?.ok) throw misuse(`ran("${key}"): it has not run; await its tool first`);
        return structuredClone(recorded.ran);
      },
      artifact: (key, content) => {
        this.#use(key, "artifact");
        const artifact = this.#toJson(key, { artifactId: key, ...content }, ARTIFACT_BYTES_MAX);
        const written = this.#history.artifacts.get(key);
        if (written && canonicalJson(written) !== canonicalJson(artifact)) return this.#changed(key);
        if (!written) this.artifacts.push({ artifact, append: false, lastChunk: true });
        return Promise.resolve();
      },
      reply: (parts) => {
        this.#mustBeOutside("reply()");
        if (this.#keys.size > 0) throw misuse("reply() answers instead of a task: it must be the only act");
        this.#replied = typeof parts === "string" ? parts : parts.map(toText).join("\n");
      },
      reject: (reason) => {
        this.#mustBeOutside("reject()");
        this.#finish({ state: "rejected", message: reason.toWellFormed(), code: "rejected" });
        throw new Error(`rejected: ${reason}`);
      },
    };
  }

  /** C1. Misuse is thrown at once, where it stands in the function. */
  #use(key: string, what: string): void {
    const named = `${what}("${key}")`;
    this.#mustBeOutside(named);
    if (typeof key !== "string" || key === "" || key.length > KEY_CHARS_MAX || !key.isWellFormed()) {
      throw misuse(`${named}: a key is a text of 1 to ${KEY_CHARS_MAX} characters`);
    }
    if (this.#replied !== undefined) throw misuse(`${named} after reply(): a reply must be the only act`);
    if (this.#keys.has(key))
      throw misuse(`the key "${key}" is used twice; each step, ask, tool and artifact has its own`);
    if (this.#keys.size >= KEYS_MAX) throw misuse(`${named}: more than ${KEYS_MAX} keys in one task`);
    this.#keys.add(key);
  }

  #mustBeOutside(named: string): void {
    if (this.#inside === undefined) return;
    throw misuse(`${named} inside step("${this.#inside}"): a step is one act; do this before or after it`);
  }

  /** What the log has under this key; what it has not becomes a call. */
  #find(key: string, tool: string, args: JsonObject): RecordedCall | undefined {
    const wanted = this.#toJson(key, args);
    const recorded = this.#history.calls.get(key);
    if (!recorded) {
      if (!this.#isLeft) this.calls.push({ tool, args: wanted, modelCallId: key });
      return undefined;
    }
    if (isSame(recorded, kindOf(tool), wanted)) return recorded;
    void this.#changed(key);
    return undefined;
  }

  /** A tool that is gone still answers from the log. Steps and questions are no tools that could be called. */
  #nameTool(key: string, tool: ToolName): string {
    const name = typeof tool === "string" ? tool : tool.name;
    if (this.#hasTool(name) || this.#history.calls.has(key)) return name;
    throw misuse(`tool("${key}"): this agent has no tool "${name}"; name it in the agent's tools, or mend the name`);
  }

  #settle<T>(recorded: RecordedCall | undefined, read: (value: Json) => T | Promise<T>): Promise<T> {
    const outcome = recorded?.outcome;
    if (!outcome || this.end) return this.#wait();
    const settled = outcome.ok
      ? Promise.resolve(structuredClone(outcome.value)).then(read)
      : Promise.reject<T>(outcome.error);
    // The function may be suspended elsewhere before it comes to look at this one; that must not end the process.
    settled.catch(() => {});
    return settled;
  }

  #wait<T>(): Promise<T> {
    this.#waits.resolve();
    return new Promise(() => {});
  }

  #changed(key: string): Promise<never> {
    this.#finish({ state: "failed", message: `code changed at ${key}`, code: "code-changed" });
    return this.#wait();
  }

  #finish(end: NonNullable<Reply["end"]>): void {
    this.end ??= end;
    this.#waits.resolve();
  }

  /** What of it is too long for the log is refused there, by one rule for all. */
  #toJson(key: string, value: object, bytesMax = Number.POSITIVE_INFINITY): JsonObject {
    const problem = findJsonProblem(value, bytesMax);
    if (problem) throw misuse(`"${key}" cannot be kept: ${problem.pointer || "it"}: ${problem.text}`);
    return structuredClone(value) as JsonObject; // plain JSON, as just seen
  }
}

/** A long argument stands beside the log, which has its hash. */
function isSame({ tool, args, isUnkept }: RecordedCall, wantedTool: string, wanted: JsonObject): boolean {
  if (kindOf(tool) !== wantedTool) return false;
  if (isUnkept) return true;
  const asKept = Object.entries(wanted).map(([name, value]) => {
    const kept = args[name];
    const isAside = typeof value === "string" && isObject(kept) && kept.blob === sha256(value);
    return [name, isAside ? kept : value];
  });
  return canonicalJson(args) === canonicalJson(Object.fromEntries(asKept));
}

/** Whether a step may run again is not its input. */
function kindOf(tool: string): string {
  return tool === IDEMPOTENT_STEP ? STEP : tool;
}

function toText(part: JsonObject): string {
  if (typeof part.text === "string") return part.text;
  throw misuse(`reply() takes text for now; ${JSON.stringify(part).slice(0, 100)} is none`);
}

function misuse(text: string): HoldpointError {
  return new HoldpointError("usage-invalid", text);
}

async function beforeAbort(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return work;
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
