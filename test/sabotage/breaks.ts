/**
 * Small deliberate breaks of the controls that the promise rests on. Each names the suites that must go red, every one
 * of them; a break that nobody notices is a hole in the tests.
 */

import { AGENT_BREAKS } from "./agent-breaks.ts";

export const SUITES = {
  task: ["src/task"],
  store: ["src/store"],
  runtime: ["src/runtime"],
  simulation: ["test/simulation", "-t", "of them hold every invariant"],
  schedules: ["test/simulation", "-t", "alone and in pairs"],
  kill: ["test/faults/kill.test.ts"],
  fsync: ["test/faults/fsync.test.ts"],
  "disk-full": ["test/faults/disk-full.test.ts"],
  "bad-world": ["test/faults/bad-world.test.ts"],
  postgres: ["test/postgres"],
  scenarios: ["test/scenarios"],
  models: ["src/models"],
  config: ["src/config"],
  api: ["test/api"],
  cli: ["src/cli"],
  tools: ["src/tools"],
  mcp: ["test/mcp/hostile.test.ts"],
  "safety-commands": ["test/safety/commands.test.ts"],
  "safety-paths": ["test/safety/paths.test.ts"],
  "safety-runs": ["test/safety/runs.test.ts"],
  "safety-words": ["test/safety/protected-words.test.ts"],
  "own-rules": ["test/safety/own-rules.test.ts"],
  "mcp-secrets": ["test/mcp/secrets.test.ts"],
  layers: ["test/layers"],
} as const satisfies Record<string, readonly string[]>;

export type SuiteName = keyof typeof SUITES;

export interface Break {
  readonly name: string;
  readonly file: string;
  /** Must stand in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  readonly caughtBy: readonly SuiteName[];
}

const GATE_BREAKS: readonly Break[] = [
  // The log's gate and the row's gate, each alone.
  {
    name: "SQLite: drop the compare of the log's version",
    file: "src/store/sqlite.ts",
    find: `if (Number(found?.version ?? 0) !== expected) return "conflict";`,
    replace: "",
    caughtBy: ["store"],
  },
  {
    name: "memory: drop the compare of the log's version",
    file: "src/store/memory.ts",
    find: `if ((task?.events.length ?? 0) !== expected) return "conflict";`,
    replace: "",
    caughtBy: ["store", "simulation"],
  },
  {
    name: "SQLite: write a seq that is taken",
    file: "src/store/sqlite-statements.ts",
    find: "insertEvent: `insert into events (task, seq, at, body, hash, message_hash) values (?, ?, ?, ?, ?, ?)\n    on conflict do nothing`",
    replace:
      "insertEvent: `insert or replace into events (task, seq, at, body, hash, message_hash) values (?, ?, ?, ?, ?, ?)`",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: close a request that is not open",
    file: "src/store/sqlite-statements.ts",
    find: "n = ?3 and status = 'open' and digest = ?4",
    replace: "n = ?3 and digest = ?4",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: close a request with another digest",
    file: "src/store/sqlite-statements.ts",
    find: "status = 'open' and digest = ?4 and case",
    replace: "status = 'open' and ?4 is not null and case",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: ignore the deadline in the row",
    file: "src/store/sqlite-statements.ts",
    find: "when 'ahead' then expires_at is null or expires_at > ?6",
    replace: "when 'ahead' then ?6 > 0",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: claim an effect twice",
    file: "src/store/sqlite-statements.ts",
    find: "insertEffect: `insert into effects (task, effect_id, status, token, digest) values (?, ?, 'claimed', ?, ?)\n    on conflict do nothing`",
    replace:
      "insertEffect: `insert or replace into effects (task, effect_id, status, token, digest) values (?, ?, 'claimed', ?, ?)`",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: end an effect under another token",
    file: "src/store/sqlite-statements.ts",
    find: "effect_id = ? and token = ? and status = 'claimed'",
    replace: "effect_id = ? and ? is not null and status = 'claimed'",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: forget that a message was there before",
    file: "src/store/sqlite-schema.ts",
    find: "create unique index events_message",
    replace: "create index events_message",
    caughtBy: ["store", "kill"],
  },
  {
    name: "SQLite: show another tenant's log",
    file: "src/store/sqlite-statements.ts",
    find: "where tenant = ? and id = ? and seq > ?",
    replace: "where ? is not null and id = ? and seq > ?",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: drop the fencing",
    file: "src/store/sqlite.ts",
    find: `if (fence !== undefined && !this.#leases.isHeld({ key, fence })) return "fenced";`,
    replace: "",
    caughtBy: ["store"],
  },
  {
    name: "memory: drop the fencing",
    file: "src/store/memory.ts",
    find: `if (fence !== undefined && !this.#leases.isHeld({ key, fence })) return "fenced";`,
    replace: "",
    caughtBy: ["store"],
  },
  {
    name: "leases: everybody may work on everything",
    file: "src/store/lease-table.ts",
    find: "return held === undefined || held.untilMs <= nowMs;",
    replace: "return held === undefined || held.untilMs <= nowMs || true;",
    caughtBy: ["store"],
  },
  {
    name: "PostgreSQL: drop the compare of the log's version",
    file: "src/store/postgres-append.ts",
    find: "if p_expected <> coalesce(v_version, 0) then return 'conflict'; end if;",
    replace: "",
    caughtBy: ["postgres"],
  },
  {
    name: "PostgreSQL: close a request that is not open",
    file: "src/store/postgres-append.ts",
    find: "and request.n = closed.n and status = 'open'",
    replace: "and request.n = closed.n",
    caughtBy: ["postgres"],
  },
  {
    name: "PostgreSQL: drop the fencing",
    file: "src/store/postgres-append.ts",
    find: "if p_fence is not null and p_fence is distinct from v_fence then return 'fenced'; end if;",
    replace: "",
    caughtBy: ["postgres"],
  },
  {
    name: "PostgreSQL: work on one that does not commit durably",
    file: "src/store/postgres-connection.ts",
    find: 'if (session[setting] !== "off") continue;',
    replace: 'if (session[setting] !== "") continue;',
    caughtBy: ["postgres"],
  },
  {
    name: "PostgreSQL: work on a replica",
    file: "src/store/postgres-connection.ts",
    find: "if (session.is_replica) {",
    replace: "if (session.is_replica && !session.is_replica) {",
    caughtBy: ["postgres"],
  },
  // Durability.
  {
    name: "SQLite: FULL to OFF, with the read-back in place",
    file: "src/store/sqlite-connection.ts",
    find: "pragma synchronous = ${synchronous};",
    replace: "pragma synchronous = off;",
    caughtBy: ["store"],
  },
  {
    name: "SQLite: FULL to OFF, and nobody reads it back",
    file: "src/store/sqlite-connection.ts",
    find: "requireDurable(opened, path, synchronous);",
    replace: 'opened.exec("pragma synchronous = off");',
    caughtBy: ["fsync"],
  },
  {
    name: "SQLite: acknowledge although the commit failed",
    file: "src/store/sqlite-connection.ts",
    find: "for (const { reject } of batch) reject(fault);\n        return;",
    replace: "void fault;",
    caughtBy: ["disk-full"],
  },
  {
    name: "SQLite: no lock for the writer",
    file: "src/store/sqlite-lock.ts",
    find: 'db.exec("commit; begin immediate");',
    replace: 'db.exec("commit");',
    caughtBy: ["scenarios", "bad-world"],
  },
  {
    name: "SQLite: read a newer schema",
    file: "src/store/sqlite-connection.ts",
    find: "if (needed > SCHEMA_VERSION) {",
    replace: "if (needed < 0) {",
    caughtBy: ["bad-world"],
  },
  {
    name: "files: readable by others",
    file: "src/ports/files.ts",
    find: "const PRIVATE_FILE = 0o600;",
    replace: "const PRIVATE_FILE = 0o644;",
    caughtBy: ["bad-world", "scenarios"],
  },
  {
    name: "the clock goes back with the wall",
    file: "src/store/store-clock.ts",
    find: "this.#shownMs = Math.max(wallMs, this.#shownMs + passedMs);",
    replace: "this.#shownMs = wallMs + 0 * passedMs;",
    caughtBy: ["store"],
  },
  // The rules.
  {
    name: "decide: a request takes a second decision",
    file: "src/task/choose.ts",
    find: "if (record.decision) return judgeLate(task, record, decision);",
    replace: "",
    caughtBy: ["task", "runtime"],
  },
  {
    name: "decide: ignore the deadline",
    file: "src/task/choose.ts",
    find: "request.expiresAtMs !== null && request.expiresAtMs <= now.nowMs",
    replace: "request.expiresAtMs !== null && request.expiresAtMs < 0",
    caughtBy: ["task"],
  },
  {
    name: "decide: ignore the digest that was sent",
    file: "src/task/choose.ts",
    find: "if (isForeign || (choice.digest !== undefined && choice.digest !== request.digest)) {",
    replace: "if (isForeign) {",
    caughtBy: ["task"],
  },
  {
    name: "decide: a timeout approves",
    file: "src/task/ask.ts",
    find: `closedBy(id, digest, "expired", "deadline", task.principal)`,
    replace: `closedBy(id, digest, "approved", "deadline", task.principal)`,
    caughtBy: ["task", "simulation"],
  },
  {
    name: "decide: a task that is over goes on",
    file: "src/task/decide.ts",
    find: 'if (task.end) return refuse({ code: "task-over", state: stateOf(task), message: task.end.message });\n\n  switch',
    replace: "switch",
    caughtBy: ["task", "simulation"],
  },
  {
    name: "decide: the end leaves requests open",
    file: "src/task/ask.ts",
    find: '...openRequests(task).map(({ id, digest }) => closedBy(id, digest, "canceled", "task", principal)),',
    replace: "",
    caughtBy: ["task", "simulation"],
  },
  {
    name: "claim: skip the digest check",
    file: "src/task/claim.ts",
    find: `if (digest !== status.digest) return no("what would run is not what was approved");`,
    replace: "",
    caughtBy: ["task"],
  },
  {
    name: "claim: a gated call needs nobody",
    file: "src/task/claim.ts",
    find: `if (call.requestIds.length > 0 || command.gated) return no("nobody has approved it");`,
    replace: "",
    caughtBy: ["task"],
  },
  {
    name: "claim: run at a pause",
    file: "src/task/claim.ts",
    find: "if (open) return no(`at a pause nothing runs, and request ${open.id} is open`);",
    replace: "",
    caughtBy: ["task"],
  },
  {
    name: "claim: report under another's token",
    file: "src/task/claim.ts",
    find: `if (effect.token !== command.token) return lost("claimed under another token");`,
    replace: "",
    caughtBy: ["task"],
  },
  {
    name: "claim: run again without being asked",
    file: "src/task/claim.ts",
    find: `if (!command.mayRetry) return no("its outcome is unknown and nobody has said what to do");`,
    replace: "",
    caughtBy: ["task"],
  },
  {
    name: "next: run the gated call first",
    file: "src/task/next.ts",
    find: "else if (gated || call.requestIds.length > 0) ask.push(call);",
    replace: "else if (gated && call.requestIds.length > 0) ask.push(call);",
    caughtBy: ["task", "simulation"],
  },
  {
    name: "digest: leave out the arguments",
    file: "src/task/digest.ts",
    find: "    plan: facts.plan,\n    args,",
    replace: "    plan: facts.plan,",
    caughtBy: ["task"],
  },
  {
    name: "digest: leave out the policy",
    file: "src/task/digest.ts",
    find: "    policy: facts.policyVersion,\n",
    replace: "",
    caughtBy: ["task"],
  },
  {
    name: "chain: events do not follow each other",
    file: "src/task/digest.ts",
    find: "return sha256(`${previous}\\n${JSON.stringify",
    replace: "return sha256(`\\n${JSON.stringify",
    caughtBy: ["task"],
  },
  {
    name: "seal: does not cover the events",
    file: "src/store/seal.ts",
    find: "return sha256([JSON.stringify([n, atMs, previous]), ...lines].join",
    replace: "return sha256([JSON.stringify([n, atMs, previous]), ...lines.slice(99999)].join",
    caughtBy: ["store"],
  },
  {
    name: "json: take duplicate keys",
    file: "src/task/json.ts",
    find: "if (top.keys.has(name)) return place(top, name);",
    replace: "",
    caughtBy: ["task"],
  },
  {
    name: "json: take lone surrogates",
    file: "src/task/json.ts",
    find: `return value.isWellFormed() ? undefined : { pointer, text: "a lone surrogate is not valid text" };`,
    replace: "return undefined;",
    caughtBy: ["task"],
  },
  {
    name: "choose: agree to a request from before a restore",
    file: "src/task/choose.ts",
    find: "const isForeign = agrees && requestDigest(now, request.id, request) !== request.digest;",
    replace: "const isForeign = agrees && request.id.length === 0;",
    caughtBy: ["task"],
  },
  {
    name: "ask: ask about what was denied meanwhile",
    file: "src/task/ask.ts",
    find: 'if (!isAsked && status.type !== "allowed") {',
    replace: 'if (!isAsked && status.type === "new") {',
    caughtBy: ["task"],
  },
  // The worker.
  {
    name: "worker: claim after the effect",
    file: "src/runtime/runner.ts",
    find: "const claimed = await this.#insist(task.key, claim, fence);",
    replace:
      'await runTool(tool, { args, facts, idempotencyKey: status.type === "allowed" ? status.requestId : `${task.key.id}-${call.callId}`, signal });\n    const claimed = await this.#insist(task.key, claim, fence);',
    caughtBy: ["simulation", "kill"],
  },
  {
    name: "worker: what was cut off is simply run again",
    file: "src/runtime/runner.ts",
    find: "const mayRetry = await this.#mayRetry(round, tool, effect, args, facts);",
    replace: "const mayRetry = true;",
    caughtBy: ["runtime"],
  },
  {
    name: "worker: not ask again when the plan has changed",
    file: "src/runtime/runner.ts",
    find: "if (callDigest(scope, status.requestId, call.tool, args, facts) !== status.digest) {",
    replace: "if (scope.epoch === undefined) {",
    caughtBy: ["runtime"],
  },
  {
    name: "worker: run the bytes of the look instead of those of the claim",
    file: "src/runtime/runner.ts",
    find: "const args = call ? argsOf(task, call) : {};",
    replace: "const args = call ? call.args : {};",
    caughtBy: ["runtime"],
  },
  {
    name: "ask again: replace what is no longer asked",
    file: "src/task/ask.ts",
    find: "if (command.replaces && !isStill(last, command.replaces, now.nowMs)) return accept();",
    replace: "",
    caughtBy: ["runtime"],
  },
  {
    name: "decide: act in another tenant",
    file: "src/task/decide.ts",
    find: "return tenant === key.tenant ? undefined :",
    replace: "return tenant.length > 0 && key.tenant.length > 0 ? undefined :",
    caughtBy: ["runtime"],
  },
  {
    name: "runtime: trust the cache",
    file: "src/runtime/runtime.ts",
    find: "const cached = this.#cache.get(nameOf(key));",
    replace:
      "const cached = this.#cache.get(nameOf(key));\n    if (cached) return { folded: cached, nowMs: (await this.store.read(key, 1e9)).nowMs };",
    caughtBy: ["simulation"],
  },
  {
    name: "runtime: a changed plan is not asked about again",
    file: "src/runtime/answers.ts",
    find: "if (callDigest(scope, request.id, request.tool, request.args, facts) === request.digest) return undefined;",
    replace: "if (scope.epoch !== undefined) return undefined;",
    caughtBy: ["runtime"],
  },
  {
    name: "waker: no heartbeat",
    file: "src/runtime/waker.ts",
    find: "if (this.#active.size > 0) await leases.renew",
    replace: "if (this.#active.size > 99) await leases.renew",
    caughtBy: ["runtime"],
  },
];

export const BREAKS: readonly Break[] = [...GATE_BREAKS, ...AGENT_BREAKS];
