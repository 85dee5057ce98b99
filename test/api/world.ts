/** A whole app in memory: scripted agents, a fake clock only where a test wants one, tokens of several kinds. */
import type { ServerConfig } from "../../src/config/config.ts";
import { type Clock, systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import type { Agent } from "../../src/runtime/agent.ts";
import { startNode } from "../../src/runtime/node.ts";
import { type AppParts, createApp } from "../../src/server/app.ts";
import { createScriptedAgent, createScriptedTool, MemoryStore } from "../../src/testing/index.ts";
import type { Tool } from "../../src/tools/tool.ts";

export const OWNER_TOKEN = "owner-token-for-tests";
export const TOKENS = {
  submitter: { scopes: ["task:submit"], tenant: "default" },
  reader: { scopes: ["task:read"], tenant: "default" },
  decider: { scopes: ["decide"], tenant: "default" },
  admin: { scopes: ["admin"], tenant: "default" },
  ana: { scopes: ["task:read", "decide"], tenant: "default" },
  stranger: { scopes: ["task:submit", "task:read", "decide", "admin"], tenant: "elsewhere" },
} as const;
export type TokenName = keyof typeof TOKENS;
export const tokenOf = (name: TokenName) => `token-of-${name}`;

export const SERVER_CONFIG: ServerConfig = {
  host: undefined,
  port: undefined,
  grpcPort: undefined,
  allowedHosts: ["holdpoint.example.com"],
  allowedOrigins: ["http://localhost:3000"],
  auth: {
    tokens: Object.entries(TOKENS).map(([name, rest]) => ({ name, token: tokenOf(name as TokenName), ...rest })),
    jwt: undefined,
    selfApproval: "allow",
  },
  answersWithoutId: "allow",
  a2a: { profile: "1.0.1", legacy: true, messageIds: "unique" },
  push: { allow: [] },
  limits: { rate: 1000, burst: 2000 },
  agUi: { tanstack: false },
  trustedProxy: false,
};

const QUESTION = {
  title: "Question",
  prompt: "Which database?",
  schema: {
    type: "object",
    properties: { answer: { type: "string", enum: ["pg", "sqlite"] } },
    required: ["answer"],
    additionalProperties: false,
  },
} as const;

/** What ran, in order; and what the tool would do, which a test may change in mid-pause. */
export interface Stage {
  readonly ran: unknown[];
  plan: string;
}

export function createAgents(stage: Stage): readonly Agent[] {
  const remove: Tool = createScriptedTool({
    name: "delete_file",
    gated: true,
    plan: () => ({ deletes: stage.plan }),
    run: async ({ args }) => {
      stage.ran.push(args);
      return { outcome: "done", result: "deleted" };
    },
  });
  const look = createScriptedTool({
    name: "look",
    gated: false,
    run: async () => ({ outcome: "done", result: ["a"] }),
  });
  const ask: Tool = { ...look, name: "ask_user", gated: true, question: () => QUESTION };
  const wants = (name: string, tool: string) =>
    createScriptedAgent(
      name,
      [
        { text: `I want ${tool}.`, calls: [{ tool, args: tool === "delete_file" ? { path: "old.csv" } : {} }] },
        { text: "All done.", calls: [] },
      ],
      [remove, look, ask],
    );
  const hasty = wants("hasty", "delete_file");
  return [
    wants("janitor", "delete_file"),
    wants("asker", "ask_user"),
    wants("looker", "look"),
    { ...hasty, inputTimeoutMs: 1, onTimeout: "deny" },
    {
      ...wants("talker", "look"),
      think: async (task, { onText }) => {
        if (task.turns.length > 0) return { text: "All done.", calls: [] };
        for (const delta of ["I ", "am ", "talking."]) {
          await systemClock.sleep(20);
          onText(delta);
        }
        return { text: "I am talking.", calls: [{ tool: "delete_file", args: { path: "x" } }] };
      },
    },
  ];
}

export interface WorldOptions {
  readonly clock?: Clock;
  readonly parts?: Partial<AppParts>;
  readonly server?: Partial<ServerConfig>;
  /** Instead of those above. */
  readonly agents?: readonly Agent[];
}

export function startWorld(options: WorldOptions = {}) {
  const clock = options.clock ?? systemClock;
  const stage: Stage = { ran: [], plan: "old.csv" };
  const agents = new Map((options.agents ?? createAgents(stage)).map((agent) => [agent.name, agent]));
  const node = startNode({ store: new MemoryStore(systemClock), clock: systemClock, ids: systemIds, agents });
  const draining = new AbortController();
  const errors: unknown[] = [];
  const app = createApp({
    runtime: node.runtime,
    server: { ...SERVER_CONFIG, ...options.server },
    clock,
    ids: systemIds,
    ownerToken: OWNER_TOKEN,
    host: "127.0.0.1",
    draining: draining.signal,
    onError: (error) => errors.push(error),
    ...options.parts,
  });

  const call = async (
    method: string,
    path: string,
    init: { token?: string | null; body?: unknown; headers?: object } = {},
  ) => {
    const token = init.token === undefined ? OWNER_TOKEN : init.token;
    return app.request(`http://127.0.0.1:4141${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(method === "POST" ? { "content-type": "application/json" } : {}),
        ...init.headers,
      },
      ...(init.body === undefined
        ? {}
        : { body: typeof init.body === "string" ? init.body : JSON.stringify(init.body) }),
    });
  };
  return { app, node, runtime: node.runtime, stage, call, draining, errors, stop: () => node.stop() };
}

export type World = ReturnType<typeof startWorld>;

/** Starts a task and waits until it rests. */
export async function startTask(
  { call, runtime }: World,
  agent: string,
): Promise<{ taskId: string; requestId: string }> {
  const response = await call("POST", "/api/tasks", { body: { agent, message: "go" } });
  if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`);
  const { id } = (await response.json()) as { id: string };
  for (;;) {
    const { task } = await runtime.load({ tenant: "default", id });
    if (task && (task.end || task.requests.some(({ decision }) => !decision))) break;
    await systemClock.sleep(2);
  }
  return { taskId: id, requestId: `input-${id}-1` };
}
