/** Requests of every kind, and tasks that have asked them, as a log tells it. */
import type { TaskEvent } from "../../src/task/event.ts";
import type { JsonObject } from "../../src/task/json.ts";
import type {
  ApprovalRequest,
  AuthRequest,
  Decision,
  InDoubtRequest,
  InputRequest,
  Principal,
  Request,
  RequestId,
} from "../../src/task/request.ts";
import { evolve, type Task } from "../../src/task/task.ts";

const key = { tenant: "default", id: "T" };
export const ana: Principal = { name: "ana", issuer: "tokens", tenant: "default", via: "a2a" };
export const ben: Principal = { ...ana, name: "ben" };
export const idOf = (n: number): RequestId => `input-T-${n}`;
export const digest = `sha256:${"0123456789abcdef".repeat(4)}` as const;

const base = { digest, prompt: "Run ls -l?", risk: "high", expiresAtMs: null, onTimeout: "fail" } as const;
const facts = {
  identity: "builtin:command",
  schemaHash: "s",
  policyVersion: "p",
  plan: { argv: ["ls", "-l"], executable: "/bin/ls" },
};
const call = { tool: "execute_command", title: "execute_command", args: { command: "ls -l" }, facts };

export const approval = (n = 1, extra: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
  ...base,
  ...call,
  kind: "approval",
  id: idOf(n),
  callId: `call-1-${n}`,
  editable: true,
  ...extra,
});
export const inDoubt = (n = 1): InDoubtRequest => ({
  ...base,
  ...call,
  kind: "in-doubt",
  id: idOf(n),
  callId: `call-1-${n}`,
  effectId: `call-1-${n}-1`,
});
export const auth = (n = 1): AuthRequest => ({
  ...base,
  kind: "auth",
  id: idOf(n),
  title: "Sign in",
  url: "https://login.example",
});
export const input = (n: number, properties: JsonObject, required = Object.keys(properties)): InputRequest => ({
  ...base,
  kind: "input",
  id: idOf(n),
  title: "A question",
  prompt: "Which?",
  schema: { type: "object", additionalProperties: false, required, properties },
});

/** As `ask_user` asks (src/tools/ask-user.ts). */
export const text = (n = 1) => input(n, { answer: { type: "string", title: "Why?" } });
export const select = (n = 1, choices = ["pg", "sqlite"]) =>
  input(n, { answer: { type: "string", enum: choices, title: "Which database?" } });
export const multiselect = (n = 1) =>
  input(n, {
    answer: { type: "array", title: "Which?", items: { type: "string", enum: ["a", "b"] }, uniqueItems: true },
  });
export const several = (n = 1) =>
  input(n, {
    answer1: { type: "string", title: "Why?" },
    answer2: { type: "string", enum: ["x", "y"], title: "Which?" },
  });

type Closing = Partial<Decision>;

/** A task that has asked these, in this order; what is paired with a decision is closed. */
export function taskWith(...asked: readonly (Request | readonly [Request, Closing])[]): Task {
  const submitted: TaskEvent = {
    ...envelope(1),
    type: "task-submitted",
    agent: "assistant",
    contextId: "C",
    tenant: "default",
    principal: ana,
    message: { messageId: "m1", role: "user", parts: [{ text: "List the files" }] },
  };
  let task = evolve(undefined, submitted, key);
  const add = (event: TaskEvent) => {
    task = evolve(task, event, key);
  };
  for (const one of asked) {
    const request = "kind" in one ? one : one[0];
    add({ ...envelope(task.version + 1), type: "request-opened", request });
  }
  for (const one of asked) {
    if ("kind" in one) continue;
    const [{ id: requestId }, closing] = one;
    const decision = { requestId, outcome: "approved", principal: ana, digest, ...closing } as const;
    add({ ...envelope(task.version + 1), type: "request-decided", ...decision });
  }
  return task;
}

function envelope(seq: number) {
  return { seq, at: seq * 1_000, v: 1, path: ["assistant"] } as const;
}
