/** What a client wants forwarded to tools. */
import type { Context } from "hono";

const FORWARD = "x-forward-";

/** `X-Forward-<Name>` of a client, as `<name>`; which of them a tool gets is the configuration's matter. */
export function forwardedHeaders(c: Context): Record<string, string> {
  const all = Object.entries(c.req.header()).filter(([name]) => name.startsWith(FORWARD));
  return Object.fromEntries(all.map(([name, value]) => [name.slice(FORWARD.length), value]));
}
