/** Single keys from a terminal, for as long as somebody listens. */
import { emitKeypressEvents } from "node:readline";
import { type Key, QUIET_MS, SHOWN_MS } from "./arming.ts";
import { Ending, EXIT } from "./exit.ts";
import type { Terminal } from "./terminal.ts";

interface Keypress {
  readonly name?: string;
  readonly ctrl?: boolean;
}

/**
 * Gives every key to `onKey` until it answers something, `stop` is called, or `signal` aborts (undefined). Ctrl-C ends
 * the command.
 */
export function listenToKeys<T>(
  { input }: Terminal,
  signal: AbortSignal,
  onKey: (key: Key, done: (value: T) => void) => void,
  onStart: (done: (value: T) => void) => void = () => undefined,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const finish = () => {
      input.off("keypress", listener);
      signal.removeEventListener("abort", onAbort);
      input.setRawMode(false);
      input.pause();
    };
    const done = (value: T | undefined) => {
      finish();
      resolve(value);
    };
    const onAbort = () => done(undefined);
    const listener = (text: string | undefined, { name, ctrl }: Keypress) => {
      if (ctrl && name === "c") {
        finish();
        return reject(new Ending(EXIT.interrupted));
      }
      onKey({ text: ctrl ? "" : (text ?? ""), name }, done);
    };
    if (signal.aborted) return resolve(undefined);
    emitKeypressEvents(input);
    input.setRawMode(true);
    input.on("keypress", listener);
    input.resume();
    signal.addEventListener("abort", onAbort, { once: true });
    onStart(done);
  });
}

/** Swallows what is being typed for something else, until it is quiet: then a question can be put. */
export async function waitForQuiet(terminal: Terminal, signal: AbortSignal): Promise<void> {
  const { clock } = terminal;
  let quietAtMs = clock.nowMs() + SHOWN_MS;
  await listenToKeys<true>(
    terminal,
    signal,
    () => {
      quietAtMs = Math.max(quietAtMs, clock.nowMs() + QUIET_MS);
    },
    async (done) => {
      while (clock.nowMs() < quietAtMs && !signal.aborted) await clock.sleep(quietAtMs - clock.nowMs(), signal);
      if (!signal.aborted) done(true);
    },
  );
}
