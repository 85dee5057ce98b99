/** What an embedding program uses. */
export { HoldpointError, isFault } from "./errors.ts";
export { type Clock, systemClock } from "./ports/clock.ts";
export { type Ids, systemIds } from "./ports/ids.ts";
export { type Agent, type Agents, DURABLE, type Reply } from "./runtime/agent.ts";
export type { Answer } from "./runtime/answers.ts";
export { type CodeAgentParts, createCodeAgent } from "./runtime/code-agent.ts";
export {
  type AgentContext,
  type AgentDefinition,
  type AgentFunction,
  AnswerInvalid,
  CallDenied,
  CallError,
  CallUnknown,
  defineAgent,
  ToolFailed,
} from "./runtime/define-agent.ts";
export { type HoldpointNode, startNode } from "./runtime/node.ts";
export type { Outcome, Runtime } from "./runtime/runtime.ts";
export type { Waker } from "./runtime/waker.ts";
export { PostgresStore } from "./store/postgres.ts";
export { PostgresHints } from "./store/postgres-hints.ts";
export { verifyAudit } from "./store/seal.ts";
export { SqliteStore } from "./store/sqlite.ts";
export type { OpenRequestRow, Store } from "./store/store.ts";
export type { Refusal } from "./task/command.ts";
export type { Message, TaskEvent, TaskKey } from "./task/event.ts";
export type { Json, JsonObject } from "./task/json.ts";
export { type Decision, type Principal, type Request, requestId, type ToolFacts } from "./task/request.ts";
export { findRequest, isOver, openRequests, stateOf, type Task } from "./task/task.ts";
export { defineTool } from "./tools/define-tool.ts";
export type { Finished, Tool, Work } from "./tools/tool.ts";
export { createToolbox, type Toolbox } from "./tools/toolbox.ts";
