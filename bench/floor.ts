/** What the disk itself can do: append 4 KiB and make it durable, again and again. */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Timing } from "./measure.ts";

const BLOCK = Buffer.alloc(4096, 0x5a);

export function timeFdatasync(folder: string, times: number): Timing {
  const path = join(folder, "fdatasync");
  const file = openSync(path, "w");
  const durationsMs: number[] = [];
  const startMs = performance.now();
  for (let i = 0; i < times; i++) {
    const beganMs = performance.now();
    writeSync(file, BLOCK);
    fdatasyncSync(file);
    durationsMs.push(performance.now() - beganMs);
  }
  const wallMs = performance.now() - startMs;
  closeSync(file);
  rmSync(path);
  return { durationsMs, wallMs };
}
