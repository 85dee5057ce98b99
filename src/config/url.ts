/** Addresses in a configuration. They may carry a password, so no message quotes them. */
import type { Section } from "./section.ts";

export function readUrl<K extends string>(
  section: Section<K>,
  key: K,
  protocols: readonly string[] = ["http", "https"],
): string | undefined {
  const text = section.secret(key);
  if (text === undefined) return undefined;
  const protocol = URL.canParse(text) ? new URL(text).protocol.slice(0, -1) : undefined;
  if (protocol !== undefined && protocols.includes(protocol)) return text;
  section.report.error(section.valueSpanOf(key), `"${key}" must be an address that begins with ${protocols[0]}://`);
  return undefined;
}
