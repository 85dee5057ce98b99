/** `holdpoint approve | deny | answer | cancel`: one decision about one request, bound to what it shows. */
import { type Client, ClientError, type DecisionOrder, type DecisionView, type RequestView } from "../client/client.ts";
import { readText } from "../ports/files.ts";
import { isObject, type JsonObject, parseJson } from "../task/json.ts";
import { makeVisible } from "../tools/prompt.ts";
import { askAnswer, askApproval, editArgs, showInstead } from "./ask.ts";
import { type ConnectFlags, type Connection, connect } from "./connect.ts";
import { Ending, EXIT, type ExitCode } from "./exit.ts";
import { parseSets } from "./fields.ts";
import { findRequest, findTaskId } from "./find.ts";
import { endOf, followTask, interrupt, toOrder } from "./follow.ts";
import { renderRequest } from "./render.ts";
import { tellEnd } from "./run.ts";
import type { Terminal } from "./terminal.ts";
import { COMMAND, followUps, propertiesOf, sayDecision, timeOf, titleOf } from "./words.ts";

const STDIN = 0;

export interface ApproveFlags extends ConnectFlags {
  readonly edit?: boolean;
  readonly args?: string;
  readonly hash?: string;
  readonly note?: string;
}

export async function approveCommand(id: string, flags: ApproveFlags, terminal: Terminal): Promise<ExitCode> {
  if (flags.edit && flags.args !== undefined) throw new Ending(EXIT.usage, "use --edit or --args, not both");
  if (flags.edit && !terminal.isInteractive)
    throw new Ending(EXIT.usage, "--edit needs a terminal; --args takes a file");
  const given = flags.args === undefined ? undefined : readObject(flags.args);
  return decideRequest(id, flags, terminal, async (request, suffix) => {
    if (request.kind !== "approval") {
      throw new Ending(
        EXIT.usage,
        `that is a question; answer it:\n  ${followUps(request, suffix, terminal.isInteractive).join("\n  ")}`,
      );
    }
    checkHash(request, flags.hash);
    const reason = flags.note === undefined ? {} : { reason: flags.note };
    const edited = flags.edit ? editArgs(terminal, request) : given;
    if (flags.edit && !edited) throw new Ending(EXIT.failed, "nothing was changed, nothing was decided");
    const mustSee = isOpen(request) && request.risk === "high" && flags.hash === undefined;
    if (mustSee && !terminal.isInteractive) {
      const message = `this is high risk: look at it with "${COMMAND} show ${request.id}${suffix}" and approve with --hash <digest>`;
      throw new Ending(EXIT.usage, message);
    }
    if (!mustSee) {
      if (given) showInstead(terminal, request, given);
      return { decision: "approve", digest: request.digest, ...reason, ...(edited ? { editedArgs: edited } : {}) };
    }
    showAll(request, terminal, edited);
    const said = await askApproval(terminal, request, new AbortController().signal, edited);
    if (said.type === "leave" || said.type === "stopped") throw new Ending(EXIT.waiting, "left open");
    return { ...reason, ...toOrder(said, request.digest) };
  });
}

export interface DenyFlags extends ConnectFlags {
  readonly reason: string;
}

export async function denyCommand(id: string, flags: DenyFlags, terminal: Terminal): Promise<ExitCode> {
  if (flags.reason.trim() === "") throw new Ending(EXIT.usage, "--reason is empty; say why, the agent is told");
  return decideRequest(id, flags, terminal, async ({ kind, digest }) => ({
    // A question cannot be denied; saying no to it closes it unanswered.
    decision: kind === "approval" ? "deny" : "cancel",
    digest,
    reason: flags.reason,
  }));
}

export interface AnswerFlags extends ConnectFlags {
  readonly set?: readonly string[];
  readonly json?: string;
}

export function answerCommand(id: string, flags: AnswerFlags, terminal: Terminal): Promise<ExitCode> {
  return decideRequest(id, flags, terminal, async (request, suffix, client) => {
    if (request.kind === "approval") {
      throw new Ending(
        EXIT.usage,
        `that is no question; decide it:\n  ${followUps(request, suffix, terminal.isInteractive).join("\n  ")}`,
      );
    }
    const { digest } = request;
    if (flags.json !== undefined || flags.set !== undefined) {
      const values = { ...(flags.json === undefined ? {} : readObject(flags.json)), ...readSets(request, flags.set) };
      return { decision: "answer", digest, values };
    }
    if (request.decision) throw await lost(client, request, request.decision);
    if (!terminal.isInteractive) throw new Ending(EXIT.usage, "say the answer with --set name=value or --json <file>");
    showAll(request, terminal);
    const said = await askAnswer(terminal, request, new AbortController().signal);
    if (said.type === "leave" || said.type === "stopped") throw new Ending(EXIT.waiting, "left open");
    return toOrder(said, digest);
  });
}

export async function cancelCommand(given: string, flags: ConnectFlags, terminal: Terminal): Promise<ExitCode> {
  const connection = await connect(flags, terminal);
  try {
    const { client } = connection;
    const { id, state } = await client.cancel(await findTaskId(client, given));
    const what = state === "canceled" ? "is canceled. Work already done stays." : "is being canceled.";
    terminal.note(`${terminal.paint.green("✓")} task ${id} ${what}\n`);
    return EXIT.done;
  } finally {
    await connection.close();
  }
}

/** Finds the request, sends what `choose` makes of it, and says what came of it. */
async function decideRequest(
  given: string,
  flags: ConnectFlags,
  terminal: Terminal,
  choose: (request: RequestView, suffix: string, client: Client) => Promise<DecisionOrder>,
): Promise<ExitCode> {
  const connection = await connect(flags, terminal);
  try {
    const { client, suffix } = connection;
    const request = await findRequest(client, given);
    const { version } = await client.getTask(request.taskId);
    const decided = await send(client, request, await choose(request, suffix, client), suffix, terminal);
    await tellDecided(client, terminal, decided);
    if (!connection.isLocal) return EXIT.done;
    // Its own event was just told.
    return await goOn(connection, terminal, decided, version + 1);
  } finally {
    await connection.close();
  }
}

async function send(
  client: Client,
  request: RequestView,
  order: DecisionOrder,
  suffix: string,
  { isInteractive }: Terminal,
): Promise<RequestView> {
  try {
    return await client.decide(request.id, order);
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    const { decision, request: now } = error.body;
    if (decision) throw await lost(client, request, decision);
    if (error.status !== 412 || !now) throw error;
    const next = followUps(now, suffix, isInteractive).join("\n  ");
    throw new Ending(EXIT.conflict, `${error.message}\n  ${next}`);
  }
}

async function lost(client: Client, { id, taskId }: RequestView, decision: DecisionView): Promise<Ending> {
  const { result } = decision.cause === "task" ? await client.getTask(taskId) : {};
  // How else a task ended is told in the agent's words, which have no place here.
  const how = result?.code === "lost" ? `: ${makeVisible(result.message)}` : "";
  const what = `${sayDecision(decision)}${how} (${timeOf(decision.at)})`;
  return new Ending(EXIT.conflict, `${id} was ${what}. Nothing changed.`);
}

function showAll(request: RequestView, { note, paint, clock, errors }: Terminal, instead?: JsonObject): void {
  note(`${renderRequest(request, paint, clock.nowMs(), errors.columns, instead)}\n`);
}

function isOpen({ status }: RequestView): boolean {
  return status === "open";
}

async function tellDecided(client: Client, { note, paint }: Terminal, request: RequestView): Promise<void> {
  const mark = request.status === "denied" || request.status === "canceled" ? paint.red("✕") : paint.green("✓");
  const said = request.decision ? sayDecision(request.decision) : request.status;
  note(`${mark} ${titleOf(request)} ${said}\n`);
  const open = (await client.getTask(request.taskId)).requests.filter(({ status }) => status === "open");
  if (open.length === 0) return;
  note(`  Saved. Waiting for ${open.length} more ${open.length === 1 ? "decision" : "decisions"} in this task.\n`);
}

/** Nobody else does the work: it is done here, until the task waits again or ends. */
async function goOn(
  connection: Connection,
  terminal: Terminal,
  { taskId, agent }: RequestView,
  afterSeq: number,
): Promise<ExitCode> {
  const task = { id: taskId, agent };
  const options = { task, afterSeq, atPause: "return", waitMs: undefined, isQuiet: false } as const;
  const followed = await Promise.race([followTask(connection, terminal, options), interrupt()]);
  tellEnd(terminal, connection, taskId, followed);
  // The decision is made either way; what the task makes of it is its own matter.
  return followed.type === "waiting" ? EXIT.done : endOf(followed);
}

function checkHash({ digest, id }: RequestView, hash: string | undefined): void {
  if (hash === undefined || digest === hash || digest === `sha256:${hash}`) return;
  throw new Ending(EXIT.conflict, `${id} is not what that digest was shown for; look at it again. Nothing changed.`);
}

function readSets(request: RequestView, sets: readonly string[] | undefined): JsonObject {
  const parsed = parseSets(propertiesOf(request.schema), sets ?? []);
  if ("problem" in parsed) throw new Ending(EXIT.usage, parsed.problem);
  // parseSets makes an object.
  return parsed.value as JsonObject;
}

function readObject(file: string): JsonObject {
  const parsed = parseJson(readInput(file));
  // parseJson took it, and it is an object.
  if (parsed.ok && isObject(parsed.value)) return parsed.value as JsonObject;
  const why = parsed.ok ? "one JSON object is needed" : `${parsed.problem.pointer} ${parsed.problem.text}`.trim();
  throw new Ending(EXIT.usage, `${file}: ${why}`);
}

function readInput(file: string): string {
  try {
    return readText(file === "-" ? STDIN : file);
  } catch (error) {
    throw new Ending(EXIT.usage, `${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
