/** Patterns in a configuration: JavaScript regular expressions. */
import type { Report, Span } from "./source.ts";

/** Whether a text is a JavaScript pattern; reported where it is none. */
export function checkPattern(pattern: string, at: Span, flags: string, report: Report): boolean {
  try {
    new RegExp(pattern, flags);
    return true;
  } catch (error) {
    // "Invalid regular expression: /…/: why": the pattern itself may come from a variable.
    const why = error instanceof Error ? error.message.slice(error.message.lastIndexOf(": ") + 2) : "";
    report.error(at, `not a valid pattern (JavaScript regular expression): ${why}`);
    return false;
  }
}
