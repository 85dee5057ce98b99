/** `holdpoint inbox` and `holdpoint show`: what waits for a person, and all of it. */
import type { RequestView } from "../client/client.ts";
import { canonicalJson } from "../task/json.ts";
import { type ConnectFlags, connect } from "./connect.ts";
import { Ending, EXIT, type ExitCode } from "./exit.ts";
import { collect, shortTails, tryFindRequest, tryFindTaskId } from "./find.ts";
import { interrupt } from "./follow.ts";
import { renderRequest, renderTask } from "./render.ts";
import { type Terminal, toJsonLine } from "./terminal.ts";
import { columnsOf, cutTo, decideCommands, describeDuration, followUps, summary, table, timeOf } from "./words.ts";
import { widthOf } from "./wrap.ts";

const PAGE = 200;
/** Of a list that nobody's terminal shows. */
const COLUMNS = 80;
const COLUMNS_MIN = 60;
const AGENT_COLUMNS_MAX = 16;

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
          else if (event.type === "snapshot") terminal.out(list(event.requests, isWanted, terminal));
          else if (isWanted(event.request)) terminal.out(describeChange(event.request, connection.suffix, terminal));
        }
      })();
      await Promise.race([watching, interrupt()]).finally(() => stop.abort());
      return EXIT.done;
    }
    const requests = await collect(async (cursor) => {
      const { requests: items, nextCursor } = await client.listRequests({ limit: PAGE, ...filter, ...cursor });
      return { items, nextCursor };
    });
    terminal.out(flags.json ? toJsonLine({ requests: requests.filter(isWanted) }) : list(requests, isWanted, terminal));
    return EXIT.done;
  } finally {
    await connection.close();
  }
}

/** The end of an id stands for it: no other that is open ends so. What is cut here, `show` prints whole. */
export function list(
  requests: readonly RequestView[],
  isWanted: (request: RequestView) => boolean,
  { clock, output }: Pick<Terminal, "clock"> & { readonly output: { readonly columns?: number } },
): string {
  const nowMs = clock.nowMs();
  const tails = shortTails(requests.map(({ id }) => id));
  const rows = requests.flatMap((request, i) => {
    if (!isWanted(request)) return [];
    const agent = cutTo(request.path.map((name) => summary(name)).join("›"), AGENT_COLUMNS_MAX);
    const expires = request.expiresAt === null ? "-" : describeDuration(Date.parse(request.expiresAt) - nowMs);
    const age = describeDuration(nowMs - Date.parse(request.openedAt));
    return [{ before: [tails[i] ?? request.id, request.risk], what: whatOf(request), after: [agent, age, expires] }];
  });
  if (rows.length === 0) return "Nothing needs you.\n";
  const head = { before: ["ID", "RISK"], what: "WHAT", after: ["AGENT", "AGE", "EXPIRES"] };
  const all = [head, ...rows];
  // What remains of the line when everything else stands on it.
  const rest = table(all.map(({ before, after }) => [...before, "", ...after])).split("\n");
  const room = Math.max(COLUMNS_MIN, widthOf(output.columns || COLUMNS)) - Math.max(...rest.map(columnsOf));
  return table(all.map(({ before, what, after }) => [...before, cutTo(what, room), ...after]));
}

/** In a word: the call, or the question. */
export function whatOf({ kind, title, tool, args, prompt }: RequestView): string {
  if (kind === "approval") return summary(`${tool ?? title} ${args === null ? "" : canonicalJson(args)}`);
  if (kind === "in-doubt") return summary(`In doubt: did ${tool ?? title} run?`);
  return summary(`Question: ${prompt}`);
}

function describeChange(request: RequestView, suffix: string, { isInteractive }: Terminal): string {
  const what = whatOf(request);
  if (request.decision) return `${timeOf(request.decision.at)}  ${request.status}  ${request.id}  ${what}\n`;
  const commands = followUps(request, suffix, isInteractive).map((command) => `          ${command}\n`);
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
    const found = await tryFindTaskId(client, given);
    if (found === undefined) {
      throw new Ending(EXIT.notFound, `there is no request or task "${given}"; "inbox" lists what is open`);
    }
    const task = await client.getTask(found);
    out(flags.json ? toJsonLine(task) : renderTask(task, paint, output.columns));
    return EXIT.done;
  } finally {
    await connection.close();
  }
}
