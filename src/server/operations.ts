/** Is it alive, and may work be sent here? Without a token, because machines ask. */
import { Hono } from "hono";
import type { Clock } from "../ports/clock.ts";
import type { TaskStore } from "../store/store.ts";

const PING_TIMEOUT_MS = 2000;

export interface OperationsParts {
  readonly store: Pick<TaskStore, "ping">;
  readonly clock: Clock;
  readonly isDraining: () => boolean;
}

export function operationsRoutes({ store, clock, isDraining }: OperationsParts): Hono {
  return new Hono()
    .get("/healthz", (c) => c.json({ status: "ok" }))
    .get("/readyz", async (c) => {
      if (isDraining()) return c.json({ status: "draining" }, 503);
      const answer = store.ping().then(
        () => true,
        () => false,
      );
      const ready = await Promise.race([answer, clock.sleep(PING_TIMEOUT_MS).then(() => false)]);
      return ready
        ? c.json({ status: "ready" })
        : c.json({ status: "unavailable", reason: "the store does not answer" }, 503);
    });
}
