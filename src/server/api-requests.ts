/** `/api/requests`: what waits for a person, and the one decision for each. The rules stand in `task/`. */
import { Hono } from "hono";
import type { Answer } from "../runtime/answers.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { RequestQuery } from "../store/store.ts";
import { projectRequest } from "../task/request-view.ts";
import type { Task } from "../task/task.ts";
import { DecisionBody, readBody } from "./api-body.ts";
import { defined, RequestsQuery, readQuery, WatchQuery } from "./api-query.ts";
import { findRecord, listRequests, showRequest } from "./api-reading.ts";
import { refused, tooManyStreams, unknown } from "./api-refusals.ts";
import type { ApiParts } from "./app.ts";
import { type AppEnv, requireScope } from "./auth.ts";
import { isSelfApproval } from "./self-approval.ts";
import type { Outlet } from "./streams.ts";

type Decision = ReturnType<typeof DecisionBody.parse>;

const SNAPSHOT_MAX = 200;

export function requestRoutes({ runtime, streams, selfApproval, clock, lookAgainMs }: ApiParts): Hono<AppEnv> {
  return new Hono<AppEnv>()
    .get("/requests", requireScope("task:read"), async (c) => {
      const read = readQuery(c, RequestsQuery);
      if ("response" in read) return read.response;
      const { agent, limit, cursor } = read.query;
      const { tenant } = c.var.caller.principal;
      return c.json(await listRequests(runtime, { tenant, ...defined({ agent, limit, cursor }) }));
    })
    .get("/requests:watch", requireScope("task:read"), (c) => {
      const read = readQuery(c, WatchQuery);
      if ("response" in read) return read.response;
      const { principal } = c.var.caller;
      const query = { tenant: principal.tenant, ...defined(read.query), limit: SNAPSHOT_MAX };
      return (
        streams.open(principal, async (outlet) => {
          await watchRequests(runtime, query, outlet, (signal) => clock.sleep(lookAgainMs, signal));
        }) ?? tooManyStreams(c)
      );
    })
    .get("/requests/:id", requireScope("task:read"), async (c) => {
      const found = await findRecord(runtime, c.var.caller.principal.tenant, c.req.param("id"));
      return found ? c.json(await showRequest(runtime, found)) : unknown(c, "request");
    })
    .post("/requests/:id/decision", requireScope("decide"), async (c) => {
      const read = await readBody(c, DecisionBody);
      if ("response" in read) return read.response;
      const { body } = read;
      const { principal } = c.var.caller;
      const id = c.req.param("id");
      const found = await findRecord(runtime, principal.tenant, id);
      if (!found) return unknown(c, "request");
      if (selfApproval === "deny" && isSelfApproval(found.task, toAnswer(body), principal)) {
        const message = "You asked for this, so someone else must approve it.";
        return c.json({ error: { code: "self-approval", message } }, 403);
      }
      const result = await runtime.choose(principal.tenant, id, toAnswer(body), principal);
      const shown = !result.ok && result.refusal.code === "digest-differs" ? (result.refusal.request?.id ?? id) : id;
      const now = await findRecord(runtime, principal.tenant, shown);
      const request = now && (await showRequest(runtime, now));
      return result.ok ? c.json(request) : refused(c, result.refusal, request);
    });
}

function toAnswer({ decision, ...rest }: Decision): Answer {
  return { choice: decision, ...defined(rest) };
}

/** A snapshot, then each request as it is opened or closed; a new snapshot when another node has changed the list. */
async function watchRequests(
  runtime: Runtime,
  query: RequestQuery,
  { signal, send }: Outlet,
  pause: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const tell = (task: Task) => {
    if (task.key.tenant !== query.tenant || (query.agent !== undefined && task.agent !== query.agent)) return;
    for (const record of task.requests) {
      // The events of one append have one time; what changed in this one bears it.
      const changedAtMs = record.decision?.atMs ?? record.openedAtMs;
      if (changedAtMs === task.updatedAtMs) send("request", projectRequest(task, record));
    }
  };
  // Listening begins first: what changes while the snapshot is read is told after it.
  const missed: Task[] = [];
  let listener = (task: Task): void => {
    missed.push(task);
  };
  const forget = runtime.onChange((task) => listener(task));
  signal.addEventListener("abort", forget, { once: true });
  try {
    let shown: string | undefined;
    while (!signal.aborted) {
      const page = await listRequests(runtime, query);
      const ids = page.requests.map(({ id }) => id).join(" ");
      if (ids !== shown) send("snapshot", page);
      shown = ids;
      listener = tell;
      missed.splice(0).forEach(tell);
      await pause(signal);
    }
  } finally {
    forget();
  }
}
