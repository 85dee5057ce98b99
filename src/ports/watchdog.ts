/** A limit of time for work that cannot be asked to stop: a hostile pattern or schema inside a synchronous call. */
import { type Context, createContext, Script } from "node:vm";

/** Returned instead of a result when the time was over. */
export const TIME_OVER = Symbol("time over");

/**
 * Runs `work` for at most `ms`. V8 ends it from outside, in the middle of a loop or of a backtracking regular
 * expression; so it must hold nothing that has to be put back.
 */
export function withinMs<T>(ms: number, work: () => T): T | typeof TIME_OVER {
  let result: T | typeof TIME_OVER = TIME_OVER;
  const outer = current;
  current = () => {
    result = work();
  };
  try {
    context ??= createContext({ work: () => current() });
    CALL.runInContext(context, { timeout: ms });
    return result;
  } catch (error) {
    // Not `instanceof`: the error may come from another realm.
    if ((error as { code?: unknown } | undefined)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return TIME_OVER;
    throw error;
  } finally {
    current = outer;
  }
}

const CALL = new Script("work()");
/** One for the process: making it costs more than a call. */
let context: Context | undefined;
let current: () => void = () => {};
