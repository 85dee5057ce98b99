/** `/api/tasks` and `/api/agents`: start work, follow it, stop it. The rules stand in `task/`. */
import { type Context, Hono } from "hono";
import type { Agents } from "../runtime/agent.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { nameOf, type TaskKey } from "../task/event.ts";
import { replay } from "../task/log.ts";
import type { Task } from "../task/task.ts";
import { projectChange, projectTask } from "../task/task-view.ts";
import { EmptyBody, readBody, SubmitBody } from "./api-body.ts";
import { defined, readQuery, TasksQuery } from "./api-query.ts";
import { projectTaskPage, readTask } from "./api-reading.ts";
import { refused, tooManyStreams, unknown } from "./api-refusals.ts";
import type { ApiParts } from "./app.ts";
import { type AppEnv, requireScope } from "./auth.ts";
import { forwardedHeaders } from "./forwarded-headers.ts";
import type { Outlet } from "./streams.ts";

export function taskRoutes(parts: ApiParts): Hono<AppEnv> {
  const { runtime, clock, ids } = parts;
  return new Hono<AppEnv>()
    .get("/agents", requireScope("task:read"), async (c) => c.json({ agents: await projectAgents(runtime.agents) }))
    .get("/tasks", requireScope("task:read"), async (c) => {
      const read = readQuery(c, TasksQuery);
      if ("response" in read) return read.response;
      const { tenant } = c.var.caller.principal;
      return c.json(projectTaskPage(await runtime.store.listTasks({ tenant, ...defined(read.query) })));
    })
    .post("/tasks", requireScope("task:submit"), async (c) => {
      const read = await readBody(c, SubmitBody);
      if ("response" in read) return read.response;
      const { agent, message, contextId, messageId = ids.uuid(clock.nowMs()) } = read.body;
      const { principal } = c.var.caller;
      const order = { tenant: principal.tenant, agent, principal, ...defined({ contextId }) };
      const parts = [{ text: message }];
      const headers = forwardedHeaders(c);
      const result = await runtime.submit({ ...order, headers, message: { messageId, role: "user", parts } });
      if (!result.ok) return refused(c, result.refusal);
      return showTask(c, runtime, result.task.key, result.events.length > 0 ? 201 : 200);
    })
    .get("/tasks/:name", requireScope("task:read"), (c) => {
      const { key, verb } = readName(c);
      if (verb === undefined) return showTask(c, runtime, key);
      return verb === "watch" ? openWatch(c, parts, key) : unknown(c, "task");
    })
    .post("/tasks/:name", requireScope("task:submit"), async (c) => {
      const { key, verb } = readName(c);
      if (verb !== "cancel") return unknown(c, "task");
      const read = await readBody(c, EmptyBody);
      if ("response" in read) return read.response;
      const result = await runtime.cancel(key, c.var.caller.principal);
      return result.ok ? showTask(c, runtime, key) : refused(c, result.refusal);
    });
}

/** `<id>` or `<id>:<verb>`. */
function readName(c: Context<AppEnv>): { key: TaskKey; verb: string | undefined } {
  const [id = "", verb] = (c.req.param("name") ?? "").split(/:([^:]*)$/);
  return { key: { tenant: c.var.caller.principal.tenant, id }, verb };
}

async function showTask(c: Context, runtime: Runtime, key: TaskKey, status: 200 | 201 = 200): Promise<Response> {
  const read = await readTask(runtime, key);
  return read ? c.json(projectTask(read.task, read.events), status) : unknown(c, "task");
}

async function openWatch(c: Context<AppEnv>, parts: ApiParts, key: TaskKey): Promise<Response> {
  // Known before the stream begins, so that an unknown task is a plain 404.
  if (!(await readTask(parts.runtime, key))) return unknown(c, "task");
  return parts.streams.open(c.var.caller.principal, (outlet) => watchTask(parts, key, outlet)) ?? tooManyStreams(c);
}

/** The task as it is, then what is appended and the model's text as it comes, until the task is over. */
async function watchTask({ runtime, follower }: ApiParts, key: TaskKey, outlet: Outlet): Promise<void> {
  const { signal, send } = outlet;
  let task: Task | undefined;
  const forgetText = runtime.onText(({ key: other, turn, attempt, delta }) => {
    // The stream begins with the task; text from before that comes whole with its turn.
    if (task && nameOf(other) === nameOf(key)) send("text", { turn, attempt, delta });
  });
  try {
    for await (const events of follower.follow(key, 0, signal)) {
      const isFirst = task === undefined;
      task = replay(key, events, task);
      if (!task) return;
      if (isFirst) send("task", projectTask(task, events));
      else send("change", projectChange(task, events));
      if (task.end) return;
    }
  } finally {
    forgetText();
  }
}

export interface AgentView {
  readonly name: string;
  readonly description: string;
  readonly tools: readonly { readonly name: string; readonly gated: boolean; readonly risk: string }[];
}

function projectAgents(agents: Agents): Promise<AgentView[]> {
  return Promise.all(
    [...agents.values()].map(async ({ name, description, tools }) => ({
      name,
      description,
      tools: (await tools.list()).map(({ name, gated, risk }) => ({ name, gated, risk })),
    })),
  );
}
