/** Where a command reads and writes: data on stdout, everything else on stderr; colour only where it is wanted. */
import type { ReadStream } from "node:tty";
import { type Clock, systemClock } from "../ports/clock.ts";

export interface Terminal {
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: ReadStream | NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errors: NodeJS.WriteStream;
  /** Whether there is a person to ask. */
  readonly isInteractive: boolean;
  /** Writes data. */
  out(text: string): void;
  /** Writes what a person reads beside the data. */
  note(text: string): void;
  readonly paint: Paint;
}

export type Paint = Readonly<Record<keyof typeof CODES, (text: string) => string>>;

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;

export function createTerminal(): Terminal {
  const env = process.env;
  const [stdin, stdout, stderr] = [process.stdin, process.stdout, process.stderr];
  return {
    clock: systemClock,
    env,
    input: stdin,
    output: stdout,
    errors: stderr,
    isInteractive: stdin.isTTY === true && stderr.isTTY === true && env.TERM !== "dumb",
    out: (text) => void stdout.write(text),
    note: (text) => void stderr.write(text),
    paint: createPaint(stdout.isTTY === true && stderr.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb"),
  };
}

function createPaint(hasColour: boolean): Paint {
  const paint = (code: number) => (text: string) => (hasColour ? `\u001b[${code}m${text}\u001b[0m` : text);
  // Every name of CODES gets its function.
  return Object.fromEntries(Object.entries(CODES).map(([name, code]) => [name, paint(code)])) as Paint;
}

/** One JSON value on one line. What could hide or move text in a terminal is escaped; it reads back the same. */
export function toJsonLine(value: unknown): string {
  const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
  const escaped = JSON.stringify(value).replace(hidden, (characters) =>
    Array.from({ length: characters.length }, (_, i) => {
      const code = characters.charCodeAt(i).toString(16).padStart(4, "0");
      return `\\u${code}`;
    }).join(""),
  );
  return `${escaped}\n`;
}
