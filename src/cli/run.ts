/** `holdpoint run`: sends a message, follows the work, and asks the person at the terminal, if there is one. */
import type { RequestView } from "../client/client.ts";
import { type ConnectFlags, type Connection, connect } from "./connect.ts";
import { Ending, EXIT, type ExitCode } from "./exit.ts";
import { endOf, type Followed, followTask, interrupt } from "./follow.ts";
import { type Terminal, toJsonLine } from "./terminal.ts";
import { COMMAND, followUps, isQuestion, summary, titleOf } from "./words.ts";

export interface RunFlags extends ConnectFlags {
  /** Milliseconds, or false for `--no-wait`; absent: ask here, or come back at a pause. */
  readonly wait?: number | false;
  readonly json?: boolean;
}

export async function runCommand(
  agent: string,
  message: string,
  flags: RunFlags,
  terminal: Terminal,
): Promise<ExitCode> {
  const connection = await connect(flags, terminal, true);
  const interrupted = interrupt();
  try {
    const atPause = flags.wait === false ? "return" : terminal.isInteractive ? "ask" : flags.wait ? "wait" : "return";
    const waitsHere = await connection.mayWaitHere(agent);
    if (waitsHere && atPause !== "ask") throw nobodyCouldDecide(agent);
    const task = await connection.client.submit({ agent, message });
    const waitMs = flags.wait === false ? undefined : flags.wait;
    const options = { task, afterSeq: 0, atPause, waitMs, isQuiet: flags.json === true } as const;
    const followed = await Promise.race([followTask(connection, terminal, options), interrupted]).catch(
      async (error) => {
        if (error instanceof Ending && error.exitCode === EXIT.interrupted)
          await tellOfInterrupt(terminal, connection, task.id, waitsHere);
        throw error;
      },
    );
    if (waitsHere && followed.type !== "ended") terminal.note(`${LOST_WITH_IT}\n`);
    else tellEnd(terminal, connection, task.id, followed);
    if (flags.json) terminal.out(toJsonLine(await connection.client.getTask(task.id)));
    return waitsHere && followed.type === "waiting" ? EXIT.failed : endOf(followed);
  } finally {
    await connection.close();
  }
}

const LOST_WITH_IT = "The task waited in this command and is lost with it (hitl.mode blocking).";

function nobodyCouldDecide(agent: string): Ending {
  const why = `"${agent}" waits for people in the process that runs it (hitl.mode blocking), and nobody could decide here`;
  const instead = `start "${COMMAND} serve" first, run it at a terminal, or give the agent a session_store`;
  return new Ending(EXIT.usage, `${why}: ${instead}. Nothing was started.`);
}

/** What a person needs to know when the command is over and the work is not. */
export function tellEnd(terminal: Terminal, { suffix }: Connection, taskId: string, followed: Followed): void {
  if (followed.type === "ended") return;
  if (followed.type === "timed-out") {
    const isWaiting = followed.open.length > 0;
    const next = isWaiting ? "waits for a person." : `goes on.   ${COMMAND} show ${taskId}${suffix}`;
    terminal.note(`The time is up; the task ${next}\n`);
  }
  tellOpen(terminal, followed.open, suffix);
}

function tellOpen({ note, paint, isInteractive }: Terminal, open: readonly RequestView[], suffix: string): void {
  for (const request of open) {
    note(`${paint.yellow("◷")} ${titleOf(request)} waits for a person (${request.risk} risk)\n`);
    if (isQuestion(request)) note(`    │ ${summary(request.prompt)}\n`);
    for (const command of followUps(request, suffix, isInteractive)) note(`    ${command}\n`);
  }
}

async function tellOfInterrupt(
  terminal: Terminal,
  { client, isLocal, suffix }: Connection,
  taskId: string,
  waitsHere: boolean,
): Promise<void> {
  if (waitsHere) {
    terminal.note(`\n${LOST_WITH_IT}\n`);
    return;
  }
  // A server that is gone as well cannot say; the task is kept all the same.
  const requests = await client.getTask(taskId).then(
    (task) => task.requests,
    () => [],
  );
  const open = requests.filter(({ status }) => status === "open");
  const place = isLocal ? "it goes on when a server or a command opens this folder" : "it goes on at the server";
  const what = open.length > 0 ? "it waits for a person" : place;
  terminal.note(`\nThe task is not canceled; ${what}.   ${COMMAND} cancel ${taskId}${suffix}\n`);
  tellOpen(terminal, open, suffix);
}
