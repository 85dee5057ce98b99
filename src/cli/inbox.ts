/** `holdpoint inbox` and `holdpoint show`: what waits for a person, and all of it. */
import type { RequestView } from "../client/client.ts";
import { canonicalJson } from "../task/json.ts";
import { type ConnectFlags, connect } from "./connect.ts";
import { EXIT, type ExitCode } from "./exit.ts";
import { collect, findTaskId, tryFindRequest } from "./find.ts";
import { interrupt } from "./follow.ts";
import { renderRequest, renderTask } from "./render.ts";
import { type Terminal, toJsonLine } from "./terminal.ts";
import { decideCommands, describeDuration, followUps, summary, table, timeOf } from "./words.ts";

const PAGE = 200;

export interface InboxFlags extends ConnectFlags {
  readonly agent?: string;
  readonly risk?: string;
  readonly json?: boolean;
  readonly watch?: boolean;
}

export async function inboxCommand(flags: InboxFlags, terminal: Terminal): Promise<ExitCode> {
  const connection = await connect(flags, terminal);
  const { client } = connection;
  const filter = flags.agent === undefined ? {} : { agent: flags.agent };
  const isWanted = ({ risk }: RequestView) => flags.risk === undefined || risk === flags.risk;
  try {
    if (flags.watch) {
      const stop = new AbortController();
      const watching = (async () => {
        for await (const event of client.watchRequests(filter, stop.signal)) {
          if (flags.json) terminal.out(toJsonLine(event));
          else if (event.type === "snapshot") terminal.out(list(event.requests.filter(isWanted), terminal));
          else if (isWanted(event.request)) terminal.out(describeChange(event.request, connection.suffix));
        }
      })();
      await Promise.race([watching, interrupt()]).finally(() => stop.abort());
      return EXIT.done;
    }
    const requests = await collect(async (cursor) => {
      const { requests: items, nextCursor } = await client.listRequests({ limit: PAGE, ...filter, ...cursor });
      return { items, nextCursor };
    });
    const wanted = requests.filter(isWanted);
    terminal.out(flags.json ? toJsonLine({ requests: wanted }) : list(wanted, terminal));
    return EXIT.done;
  } finally {
    await connection.close();
  }
}

function list(requests: readonly RequestView[], { clock }: Terminal): string {
  if (requests.length === 0) return "Nothing needs you.\n";
  const rows = requests.map((request) => [
    request.id,
    request.risk,
    whatOf(request),
    request.path.map((name) => summary(name)).join("›"),
    request.expiresAt === null ? "-" : describeDuration(Date.parse(request.expiresAt) - clock.nowMs()),
  ]);
  return table([["ID", "RISK", "WHAT", "AGENT", "EXPIRES"], ...rows]);
}

/** In a word: the call, or the question. */
export function whatOf({ kind, title, tool, args, prompt }: RequestView): string {
  if (kind === "approval") return summary(`${tool ?? title} ${args === null ? "" : canonicalJson(args)}`);
  if (kind === "in-doubt") return summary(`In doubt: did ${tool ?? title} run?`);
  return summary(`Question: ${prompt}`);
}

function describeChange(request: RequestView, suffix: string): string {
  const what = whatOf(request);
  if (request.decision) return `${timeOf(request.decision.at)}  ${request.status}  ${request.id}  ${what}\n`;
  const commands = followUps(request, suffix).map((command) => `          ${command}\n`);
  return `${timeOf(request.openedAt)}  ◷ ${request.id}  ${what}  ${request.risk}\n${commands.join("")}`;
}

export interface ShowFlags extends ConnectFlags {
  readonly json?: boolean;
}

/** A request, or the story of a task. */
export async function showCommand(given: string, flags: ShowFlags, terminal: Terminal): Promise<ExitCode> {
  const connection = await connect(flags, terminal);
  const { client, suffix } = connection;
  const { paint, clock, out, note, output } = terminal;
  try {
    // The beginning of a task's id begins its requests' ids too: a whole task id means the task.
    const taskId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(given) ? given : undefined;
    const request = taskId === undefined ? await tryFindRequest(client, given) : undefined;
    if (request) {
      out(flags.json ? toJsonLine(request) : renderRequest(request, paint, clock.nowMs(), output.columns));
      if (!flags.json && request.status === "open")
        note(`\n${decideCommands(request, suffix, request.digest).join("\n")}\n`);
      return EXIT.done;
    }
    const task = await client.getTask(await findTaskId(client, given));
    out(flags.json ? toJsonLine(task) : renderTask(task, paint, output.columns));
    return EXIT.done;
  } finally {
    await connection.close();
  }
}
