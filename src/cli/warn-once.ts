/** Warnings for a person: what goes on failing in the same words is said once, not with every attempt. */
import type { Terminal } from "./terminal.ts";

/** What was quiet for so long and comes back is news. */
export const FORGET_MS = 10 * 60_000;
/** Beyond this the oldest are forgotten. */
export const REMEMBERED_MAX = 1000;

export function warnOnce({ clock, note }: Pick<Terminal, "note"> & WithTime): (text: string) => void {
  /** When each was heard last, the newest at the end. */
  const heard = new Map<string, number>();
  return (text) => {
    const nowMs = clock.nowMs();
    const beforeMs = heard.get(text);
    heard.delete(text);
    heard.set(text, nowMs);
    for (const oldest of heard.keys()) {
      if (heard.size <= REMEMBERED_MAX) break;
      heard.delete(oldest);
    }
    if (beforeMs === undefined || nowMs - beforeMs >= FORGET_MS) note(`${text}\n`);
  };
}

interface WithTime {
  readonly clock: Pick<Terminal["clock"], "nowMs">;
}
