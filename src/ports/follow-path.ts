/** Where a path leads: each link followed by hand, so that every place on the way is known. */
import type { Stats } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";

export interface Followed {
  /** Real as far as it exists; the rest as it is written. */
  readonly path: string;
  /** Every place on the way, before its link was followed. */
  readonly passed: readonly string[];
}

/** As many as Linux follows. */
const LINKS_MAX = 40;
const PARTS_MAX = 4096;

/** `path` is absolute. Undefined for a circle of links, which leads nowhere. */
export async function followPath(path: string): Promise<Followed | undefined> {
  const rest = path.split("/").reverse();
  const passed: string[] = [];
  let at = "/";
  let links = 0;
  let isThere = true;
  for (let part = rest.pop(); part !== undefined; part = rest.pop()) {
    if (part === "" || part === ".") continue;
    if (part === "..") {
      at = dirname(at);
      isThere = true;
      continue;
    }
    const next = join(at, part);
    passed.push(next);
    if (passed.length > PARTS_MAX) return undefined;
    const stats: Stats | undefined = isThere ? await lstat(next).catch(() => undefined) : undefined;
    isThere = stats !== undefined;
    if (!stats?.isSymbolicLink()) {
      at = next;
      continue;
    }
    if (++links > LINKS_MAX) return undefined;
    const target = await readlink(next).catch(() => undefined);
    if (target === undefined) {
      at = next;
      continue;
    }
    if (target.startsWith("/")) at = "/";
    rest.push(...target.split("/").reverse());
  }
  return { path: at, passed };
}
