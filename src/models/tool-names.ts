/** Our tool names in the letters that every provider takes, and back, without collisions. */
import { sha256 } from "../task/digest.ts";

/** Taken by OpenAI, Anthropic and Google alike; Google wants a letter or "_" first. */
const LEGAL = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;
const LENGTH_MAX = 64;
const HASH_LENGTH = 8;

export interface ToolNames {
  /** Only for a name that the table was made of. */
  toWire(name: string): string;
  /** What the table does not know comes back as it is: a tool that the model made up. */
  toOurs(wire: string): string;
}

/** A table for one prompt: the tools it offers and those that its history names. */
export function createToolNames(names: Iterable<string>): ToolNames {
  const wires = new Map<string, string>();
  const ours = new Map<string, string>();
  const take = (name: string, wire: string) => {
    wires.set(name, wire);
    ours.set(wire, name);
  };
  const all = [...new Set(names)].sort();
  // Legal names first: they keep their own, whatever a disguise would like to be called.
  for (const name of all.filter(isLegal)) take(name, name);
  for (const name of all.filter((name) => !isLegal(name))) {
    let salt = 0;
    while (ours.has(disguise(name, salt))) salt++;
    take(name, disguise(name, salt));
  }
  return {
    toWire: (name) => wires.get(name) ?? disguise(name, 0),
    toOurs: (wire) => ours.get(wire) ?? wire,
  };
}

function isLegal(name: string): boolean {
  // The library keeps tools in an object, where this key would not be one.
  return LEGAL.test(name) && name !== "__proto__";
}

/** Readable for the model; the hash tells apart what looks alike. */
function disguise(name: string, salt: number): string {
  const readable = name.replace(/[^A-Za-z0-9_-]+/g, "_").replace(/^(?![A-Za-z_])/, "_");
  return `${readable.slice(0, LENGTH_MAX - HASH_LENGTH - 1)}_${sha256(`${salt} ${name}`).slice(0, HASH_LENGTH)}`;
}
