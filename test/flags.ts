/** Flags of the programs under test/: a wrong one is told in a line, not with a stack, and never ignored. */
import { type ParseArgsConfig, parseArgs } from "node:util";

const USAGE_EXIT = 2;

export function readFlags<T extends ParseArgsConfig>(usage: string, config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    return stop(`${error instanceof Error ? error.message : error}\n${usage}`);
  }
}

export function stop(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(USAGE_EXIT);
}
