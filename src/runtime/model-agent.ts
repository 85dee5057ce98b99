/** An agent whose thoughts come from a model. The task's log is its whole memory; nothing is kept between two calls. */
import { type Model, ModelBusy, ModelFailed } from "../models/model.ts";
import type { Store } from "../store/store.ts";
import { nameOf } from "../task/event.ts";
import type { Task } from "../task/task.ts";
import type { Agent, Reply, Thinking } from "./agent.ts";
import { projectConversation, textOf } from "./conversation.ts";
import { RetryLater } from "./runtime.ts";
import { readSession } from "./session.ts";

const BUSY_FIRST_MS = 1000;
const BUSY_MAX_MS = 60_000;
/** About an hour of a provider that wants to be asked later; then it is a failure like any other. */
const BUSY_TIMES_MAX = 60;

export interface ModelAgentOptions extends Omit<Agent, "think"> {
  readonly model: Model;
  readonly store: Store;
  readonly instruction: string;
  readonly iterationsMax: number;
  readonly streaming: boolean;
}

export function createModelAgent(options: ModelAgentOptions): Agent {
  const { model, store, instruction, iterationsMax, streaming, ...agent } = options;
  const busyTimes = new Map<string, number>();

  const ask = async (task: Task, { signal, onText }: Thinking): Promise<Reply> => {
    const readBlob = (sha256: string) => store.readBlob(task.key, sha256);
    const [opening] = task.messages;
    const prompt = {
      system: instruction,
      messages: [...(await readSession(store, task)), ...(await projectConversation(task, readBlob))],
      tools: (await agent.tools.list()).map(({ name, description, parameters }) => ({ name, description, parameters })),
      opening: opening ? textOf(opening.message) : "",
      turn: task.turns.length + 1,
    };
    return model.reply(prompt, streaming ? { signal, onText } : { signal });
  };

  return {
    ...agent,
    async think(task, thinking) {
      if (task.turns.length >= iterationsMax) {
        return fail("too-many-iterations", `stopped after ${iterationsMax} model calls (reasoning.max_iterations)`);
      }
      const name = nameOf(task.key);
      try {
        const reply = await ask(task, thinking);
        busyTimes.delete(name);
        return reply;
      } catch (error) {
        if (error instanceof ModelFailed) return fail("model-failed", error.message);
        if (!(error instanceof ModelBusy)) throw error;
        const times = busyTimes.get(name) ?? 0;
        if (times >= BUSY_TIMES_MAX) throw error;
        busyTimes.set(name, times + 1);
        const afterMs = error.retryAfterMs ?? Math.min(BUSY_FIRST_MS * 2 ** times, BUSY_MAX_MS);
        throw new RetryLater(error.message, afterMs, { cause: error });
      }
    },
  };
}

function fail(code: string, message: string): Reply {
  return { text: "", calls: [], end: { state: "failed", code, message } };
}
