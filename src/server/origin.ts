/** Where the client has reached us: its Host has been checked by then. */
import type { Context } from "hono";

export function originOf(c: Context, trustedProxy: boolean): string {
  const { protocol, host } = new URL(c.req.url);
  const proxied = trustedProxy ? c.req.header("x-forwarded-proto")?.split(",")[0]?.trim() : undefined;
  const scheme = proxied === "https" || proxied === "http" ? `${proxied}:` : protocol;
  return `${scheme}//${c.req.header("host") ?? host}`;
}
