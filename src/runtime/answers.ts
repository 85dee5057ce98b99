/** What a person sends, held against what was asked and what its tool would do now, before it counts. */
import type { Store } from "../store/store.ts";
import type { Choice, Command, Refusal } from "../task/command.ts";
import { callDigest } from "../task/digest.ts";
import { findJsonProblem, type JsonObject } from "../task/json.ts";
import type { Request, ToolFacts } from "../task/request.ts";
import type { RequestRecord, Task } from "../task/task.ts";
import type { Tool } from "../tools/tool.ts";
import { type Agents, findTool } from "./agent.ts";
import { draftApproval } from "./drafts.ts";
import { bringBack, putArgsAside } from "./long-arguments.ts";
import { findValueProblem } from "./values.ts";

/** What a person sends to a request, before the tool has said what edited arguments would do. */
export type Answer = Omit<Choice, "requestId" | "edited"> & { readonly editedArgs?: JsonObject };

interface AnswerParts {
  readonly store: Pick<Store, "readBlob" | "epoch">;
  readonly agents: Agents;
}

interface Invalid {
  readonly ok: false;
  readonly refusal: Refusal;
}

/**
 * Whoever says no says no to whatever it is; only an approval must fit what would run. Answers how the request is
 * replaced when it does not, or why it cannot be judged.
 */
export async function findChange(
  { store, agents }: AnswerParts,
  task: Task,
  record: RequestRecord,
  answer: Answer,
): Promise<Command | Invalid | undefined> {
  const { request } = record;
  if (request.kind !== "approval" || answer.choice !== "approve" || record.decision) return undefined;
  const tool = findTool(agents, task, request.tool);
  // A tool that is gone refuses its calls when the task goes on.
  if (!tool) return undefined;
  const facts = await prepare(tool, await bringBack(store, task.key, tool, request.args));
  if (typeof facts === "string") return invalid(request, "", facts);
  const scope = { key: task.key, epoch: store.epoch };
  if (callDigest(scope, request.id, request.tool, request.args, facts) === request.digest) return undefined;
  const draft = draftApproval(tool, request, facts);
  const replaces = { requestId: request.id, state: "open" } as const;
  return { type: "ask-again", callId: request.callId, draft, replaces };
}

export async function toChoice(
  parts: AnswerParts,
  task: Task,
  { request, decision }: RequestRecord,
  answer: Answer,
): Promise<Choice | Invalid> {
  // What is decided speaks for itself.
  const schema = request.kind === "input" && !decision ? request.schema : undefined;
  const unfit = schema && answer.values && findValueProblem(schema, answer.values);
  if (unfit) return invalid(request, unfit.pointer, unfit.text);
  const edited = await prepareEdit(parts, task, request, answer);
  if (edited && "refusal" in edited) return edited;
  const { editedArgs: _args, ...rest } = answer;
  return { requestId: request.id, ...rest, ...(edited ? { edited } : {}) };
}

async function prepareEdit(
  { agents }: AnswerParts,
  task: Task,
  request: Request,
  { editedArgs }: Answer,
): Promise<Choice["edited"] | Invalid> {
  if (editedArgs === undefined) return undefined;
  const tool = request.kind === "approval" ? findTool(agents, task, request.tool) : undefined;
  if (!tool) return invalid(request, "/editedArgs", "there is no tool whose arguments could be changed");
  const { args, blobs } = putArgsAside(tool, editedArgs);
  const problem = findJsonProblem(args);
  if (problem) return invalid(request, `/editedArgs${problem.pointer}`, problem.text);
  const facts = await prepare(tool, editedArgs);
  return typeof facts === "string" ? invalid(request, "/editedArgs", facts) : { args, facts, blobs };
}

function invalid({ id }: Request, pointer: string, detail: string): Invalid {
  return { ok: false, refusal: { code: "choice-invalid", requestId: id, pointer, detail } };
}

/** What the tool would do, or why it cannot say. */
async function prepare(tool: Tool, args: JsonObject): Promise<ToolFacts | string> {
  try {
    return await tool.prepare(args);
  } catch (error) {
    return `${tool.name} cannot say what it would do: ${error instanceof Error ? error.message : String(error)}`;
  }
}
