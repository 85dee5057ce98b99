/** The SHA-256 of a program, so that what was approved is what runs. Kept as long as the file is the same one. */
import { createHash } from "node:crypto";
import { type BigIntStats, constants } from "node:fs";
import { open } from "node:fs/promises";

/** A larger program is not hashed, and so not run. */
const HASHED_BYTES_MAX = 1024 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
const KEPT_MAX = 256;

const kept = new Map<string, string>();

/** Undefined for what cannot be read, is no regular file, or is too large. */
export async function hashProgram(path: string): Promise<string | undefined> {
  const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = constants;
  const handle = await open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW).catch(() => undefined);
  if (!handle) return undefined;
  try {
    const stats = await handle.stat({ bigint: true });
    if (!stats.isFile() || stats.size > HASHED_BYTES_MAX) return undefined;
    const key = keyOf(stats);
    const known = kept.get(key);
    if (known !== undefined) return known;
    const hash = createHash("sha256");
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let at = 0; ; ) {
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, at);
      if (bytesRead === 0) break;
      at += bytesRead;
      if (at > HASHED_BYTES_MAX) return undefined;
      hash.update(chunk.subarray(0, bytesRead));
    }
    const sha256 = hash.digest("hex");
    // Written to while it was read: the hash is of neither, and is not kept.
    if (keyOf(await handle.stat({ bigint: true })) === key) keep(key, sha256);
    return sha256;
  } finally {
    await handle.close().catch(() => undefined);
  }
}

/** The time of modification can be set back by its owner, that of change cannot. */
function keyOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

function keep(key: string, sha256: string): void {
  if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value ?? "");
  kept.set(key, sha256);
}
