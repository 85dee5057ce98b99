/**
 * A request as a person sees it in a terminal: everything that would run, never cut, from the bytes that the digest
 * binds. What the agent says about it is marked as the agent's own words.
 */
import type { RequestView, TaskView, TimelineEntry } from "../client/client.ts";
import type { Json, JsonObject } from "../task/json.ts";
import { makeVisible } from "../tools/prompt.ts";
import { choicesOf, itemsOf } from "./fields.ts";
import type { Paint } from "./terminal.ts";
import {
  describeDuration,
  isQuestion,
  propertiesOf,
  sayDecision,
  timeOf,
  titleOf,
  visible,
  visibleOnce,
} from "./words.ts";
import { wrapLines } from "./wrap.ts";

const MARKS: Readonly<Record<RequestView["status"], string>> = {
  open: "◷",
  approved: "✓",
  denied: "✕",
  answered: "✓",
  expired: "⌛",
  canceled: "⊘",
  superseded: "↻",
};

/**
 * `columns`: how wide the terminal is that shows it, if one does. `instead`: the arguments that somebody wants to approve
 * in place of the agent's; nothing else is then said to run.
 */
export function renderRequest(
  request: RequestView,
  paint: Paint,
  nowMs: number,
  columns?: number,
  instead?: JsonObject,
): string {
  const { status, decision, effect, agentSays, prompt, args, plan, schema, url } = request;
  const isChanged = (instead ?? decision?.editedArgs) !== undefined;
  const blocks = [
    renderHead(request, paint, nowMs),
    ...(agentSays === null ? [] : [block("The agent says (its own words, checked by nobody):", quote(agentSays))]),
    isQuestion(request)
      ? block("The agent asks (its own words):", quote(prompt))
      : block("The question:", indent(visibleOnce(prompt).split("\n"))),
    ...(url === undefined ? [] : [block("Go to:", [`  ${makeVisible(url)}`])]),
    ...(args === null ? [] : [block(paint.bold(titleOfArgs(request, isChanged)), indent(renderValue(args)))]),
    ...(plan === null
      ? []
      : [block(paint.bold(isChanged ? PLAN_OF_AGENT : "What it comes to:"), indent(renderValue(plan)))]),
    ...(schema === null ? [] : [block("An answer has:", indent(renderFields(schema)))]),
    ...(decision?.editedArgs ? [block("Changed arguments:", indent(renderValue(decision.editedArgs)))] : []),
    ...(decision?.values ? [block("Answer:", indent(renderValue(decision.values)))] : []),
    ...(effect ? [block("What became of it:", indent(renderValue({ ...effect })))] : []),
    ...(status === "open" ? [whatIfNobody(request)] : []),
    ...(instead ? [renderInstead(request, instead, paint)] : []),
  ];
  return wrapLines(`${blocks.join("\n\n")}\n`, columns);
}

/** Each value of an answer; `--json` has the whole schema. */
function renderFields(schema: JsonObject): string[] {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(propertiesOf(schema)).map(([name, property]) => {
    const items = itemsOf(property);
    const choices = choicesOf(items ?? property);
    const type = typeof property.type === "string" ? makeVisible(property.type) : "JSON";
    const kind = choices ? `${items ? "any" : "one"} of ${makeVisible(JSON.stringify(choices))}` : type;
    return `${renderKey(name)}: ${kind}${required.includes(name) ? "" : " (may be left out)"}`;
  });
}

/** Nobody has worked out yet what changed arguments come to; what is known must not pass for that. */
const PLAN_OF_AGENT = "What the agent's own arguments would have come to, not the changed ones:";
const PLAN_COMES =
  "What it comes to is worked out and checked when it runs; a plan shown before is of the agent's own arguments.";

/** Changed arguments, as whoever approves them must see them. */
export function renderInstead({ plan }: RequestView, args: JsonObject, paint: Paint): string {
  const shown = block(paint.bold("Exactly this will run instead:"), indent(renderValue(args)));
  return plan === null ? shown : `${shown}\n\n${PLAN_COMES}`;
}

function titleOfArgs({ kind }: RequestView, isChanged: boolean): string {
  if (kind !== "approval") return "This was started and cut off:";
  return isChanged ? "The agent wanted this, and it will not run:" : "Exactly this will run:";
}

function renderHead(request: RequestView, paint: Paint, nowMs: number): string {
  const { id, status, risk, agent, path, taskId, openedAt, expiresAt, rule, digest, decision } = request;
  const loud = risk === "high" ? paint.red : risk === "medium" ? paint.yellow : paint.dim;
  const said = decision ? `${sayDecision(decision)} · ${timeOf(decision.at)}` : "open";
  const age = describeDuration(nowMs - Date.parse(openedAt));
  const rows = [
    ["id", id],
    ["status", said],
    ["agent", `${makeVisible(path.join(" › ") || agent)} · task ${taskId}`],
    ["asked", `${timeOf(openedAt)} (${age} ago)`],
    [
      "expires",
      expiresAt === null ? "never" : `${timeOf(expiresAt)} (${describeDuration(Date.parse(expiresAt) - nowMs)})`,
    ],
    ...(rule ? [["rule", `${makeVisible(rule.file)}:${rule.line}`]] : []),
  ].map(([name = "", value = ""]) => `  ${paint.dim(name.padEnd(8))} ${value}`);
  const head = `${MARKS[status]} ${paint.bold(titleOf(request))}   ${loud(`${risk.toUpperCase()} RISK`)}`;
  // On a line of its own a digest is whole, and can be copied, at 80 columns.
  return [head, ...rows, `  ${paint.dim("digest")}`, `    ${digest}`].join("\n");
}

function whatIfNobody({ expiresAt, onTimeout, kind }: RequestView): string {
  if (expiresAt === null) return "It waits until somebody decides.";
  const then = onTimeout === "fail" || kind === "in-doubt" ? "the task fails" : "the call is denied";
  return `If nobody decides by ${timeOf(expiresAt)}, ${then}.`;
}

/** A task: where it stands, and its log in words. */
export function renderTask(task: TaskView, paint: Paint, columns?: number): string {
  const { id, agent, contextId, state, by, timeline, result } = task;
  const text = [
    `${paint.bold(state)}   task ${id}`,
    `  ${paint.dim("agent")}    ${makeVisible(agent)}`,
    `  ${paint.dim("context")}  ${makeVisible(contextId)}`,
    `  ${paint.dim("by")}       ${makeVisible(by)}`,
    ...(result ? [`  ${paint.dim("result")}`, ...quote(result.message)] : []),
    "",
    ...timeline.flatMap((entry) => renderEntry(entry, paint)),
    "",
  ].join("\n");
  return wrapLines(text, columns);
}

/** One event: a line of ours, whatever stands in it, and the words of others below it. */
export function renderEntry({ at, text, says = "" }: TimelineEntry, paint: Paint, mark = ""): string[] {
  const words = says === "" ? [] : quote(says).map((line) => `        ${line}`);
  return [`${paint.dim(timeOf(at))}  ${mark}${makeVisible(text)}`, ...words];
}

function block(title: string, lines: readonly string[]): string {
  return [title, ...lines].join("\n");
}

/** Somebody's words, with a bar beside every line: none of it can pass for ours. */
export function quote(text: string): string[] {
  return visible(text)
    .split("\n")
    .map((line) => `  │ ${line}`);
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

/** A value in lines, whole. Two different values never look the same. */
export function renderValue(value: Json): string[] {
  if (typeof value === "string") return renderText(value);
  if (typeof value !== "object" || value === null) return [JSON.stringify(value)];
  const isList = Array.isArray(value);
  const entries = Object.entries(value).map(([key, inner]) => [isList ? "-" : `${renderKey(key)}:`, inner] as const);
  if (entries.length === 0) return [isList ? "[]" : "{}"];
  return entries.flatMap(([label, inner]) => {
    const lines = renderValue(inner);
    const [only] = lines;
    const isBlock = lines.length > 1 || (typeof inner === "object" && inner !== null && Object.keys(inner).length > 0);
    return isBlock ? [label, ...indent(lines)] : [`${label} ${only ?? ""}`];
  });
}

function renderKey(key: string): string {
  return /^[\w.-]+$/.test(key) ? key : makeVisible(JSON.stringify(key));
}

function renderText(text: string): string[] {
  if (!text.includes("\n")) return [makeVisible(JSON.stringify(text))];
  return visible(text)
    .split("\n")
    .map((line) => `│ ${line}`);
}
