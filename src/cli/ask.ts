/** Asks a person at a terminal about one request. What was shown whole before is decided here, key by key. */
import { isCancel, text } from "@clack/prompts";
import type { RequestView } from "../client/client.ts";
import { editText } from "../ports/editor.ts";
import { canonicalJson, isObject, type Json, type JsonObject, parseJson } from "../task/json.ts";
import { makeVisible } from "../tools/prompt.ts";
import { type Button, isTooQuick, type Menu, pressKey, SETTLE_MS, settled, showMenu } from "./arming.ts";
import { choicesOf, itemsOf, parseField } from "./fields.ts";
import { listenToKeys, waitForQuiet } from "./keys.ts";
import { renderInstead } from "./render.ts";
import type { Paint, Terminal } from "./terminal.ts";
import { propertiesOf } from "./words.ts";
import { widthOf, wrapLines } from "./wrap.ts";

export type Said =
  | { readonly type: "approve"; readonly editedArgs?: JsonObject }
  | { readonly type: "deny"; readonly reason: string }
  | { readonly type: "answer"; readonly values: JsonObject }
  /** The person goes away; the request stays open. */
  | { readonly type: "leave" }
  /** `signal` aborted: somebody else was quicker, or time is up. */
  | { readonly type: "stopped" };

const TOO_QUICK_HIGH = "That was too quick to count: press a, look, then Enter.";
const TOO_QUICK = "That was too quick to count: press a alone, and wait.";

/** What the prompt puts before each line. */
const PROMPT_COLUMNS = 3;

const LABELS: Readonly<Record<Button, string>> = {
  approve: "[a] Approve",
  edit: "[e] Edit and approve",
  deny: "[d] Deny…",
};

/** When the arguments were changed already. */
const EDITED_LABELS = { approve: "[a] Approve with changes", edit: "[e] Edit again" } as const;

export async function askApproval(
  terminal: Terminal,
  request: RequestView,
  signal: AbortSignal,
  given?: JsonObject,
): Promise<Said> {
  const buttons: Button[] = request.editable ? ["approve", "edit", "deny"] : ["approve", "deny"];
  let edited = given;
  for (;;) {
    const button = await askButton(terminal, buttons, request.risk === "high", edited !== undefined, signal);
    if (button === undefined) return { type: "stopped" };
    if (button === "leave") return { type: "leave" };
    if (button === "approve") return { type: "approve", ...(edited ? { editedArgs: edited } : {}) };
    if (button === "deny") {
      const reason = await askLine(terminal, "Tell the agent why (it can try another way)", signal);
      if (signal.aborted) return { type: "stopped" };
      if (reason === "") terminal.note("  (no reason given)\n");
      if (reason !== undefined) return { type: "deny", reason };
      continue;
    }
    edited = editArgs(terminal, request, edited) ?? edited;
  }
}

/** Other arguments from the person's editor, shown whole; undefined when nothing was changed. */
export function editArgs(terminal: Terminal, request: RequestView, earlier?: JsonObject): JsonObject | undefined {
  const { env, note } = terminal;
  const editor = env.VISUAL || env.EDITOR || "vi";
  const before = `${JSON.stringify(earlier ?? request.args, null, 2)}\n`;
  const after = editText(editor, `${request.tool ?? "arguments"}.json`.replaceAll(/[^\w.-]/g, "_"), before);
  if (after === undefined) {
    note(`${makeVisible(editor)} could not edit it; set EDITOR to one that can. Nothing was changed.\n`);
    return undefined;
  }
  const parsed = parseJson(after);
  if (!parsed.ok || !isObject(parsed.value)) {
    const why = parsed.ok ? "arguments are one JSON object" : `${parsed.problem.pointer} ${parsed.problem.text}`.trim();
    note(`That cannot be used: ${makeVisible(why)}. Nothing was changed.\n`);
    return undefined;
  }
  // parseJson took it, and it is an object.
  const args = parsed.value as JsonObject;
  if (canonicalJson(args) === canonicalJson(request.args)) {
    note("Nothing was changed.\n");
    return undefined;
  }
  showInstead(terminal, request, args);
  return args;
}

export function showInstead({ note, paint, errors }: Terminal, request: RequestView, args: JsonObject): void {
  note(wrapLines(`\n${renderInstead(request, args, paint)}\n\n`, errors.columns));
}

async function askButton(
  terminal: Terminal,
  buttons: readonly Button[],
  isHigh: boolean,
  isEdited: boolean,
  signal: AbortSignal,
): Promise<Button | "leave" | undefined> {
  const { clock, note, paint, errors } = terminal;
  let menu = showMenu(buttons, isHigh, clock.nowMs());
  let isOver = false;
  const draw = () => {
    if (!isOver) note(`\r\u001b[2K${drawMenu(menu, isEdited, clock.nowMs(), paint, widthOf(errors.columns))}`);
  };
  // Drawn now, and again when it is armed.
  const drawTwice = () => {
    draw();
    void clock.sleep(Math.max(0, menu.armedAtMs - clock.nowMs()), signal).then(draw);
  };
  try {
    return await listenToKeys<Button | "leave">(
      terminal,
      signal,
      (key, done) => {
        if (key.name === "escape") return done("leave");
        if (isTooQuick(menu, key, clock.nowMs())) note(`\r\u001b[2K${isHigh ? TOO_QUICK_HIGH : TOO_QUICK}\n`);
        menu = pressKey(menu, key, clock.nowMs());
        drawTwice();
        if (!menu.pressed) return;
        void clock.sleep(SETTLE_MS, signal).then(() => {
          const button = isOver ? undefined : settled(menu, clock.nowMs());
          if (button) done(button);
        });
      },
      drawTwice,
    );
  } finally {
    isOver = true;
    note("\r\u001b[2K");
  }
}

/** On one line: what a terminal wraps could not be drawn over. */
export function drawMenu(menu: Menu, isEdited: boolean, nowMs: number, paint: Paint, width: number): string {
  const isArmed = nowMs >= menu.armedAtMs;
  const names = isEdited ? { ...LABELS, ...EDITED_LABELS } : LABELS;
  const current = menu.pressed?.button ?? menu.focused;
  const hint = menu.focused && !menu.pressed ? "Enter decides" : "Esc leaves it open";
  const hasRoom = menu.buttons.map((button) => `  ${names[button]} `).join("").length + 2 + hint.length <= width;
  const labels = menu.buttons.map((button) =>
    button === current ? paint.bold(`▸ ${names[button]}`) : `  ${names[button]}`,
  );
  const line = `${labels.join(" ")}${hasRoom ? `   ${paint.dim(hint)}` : ""}`;
  return isArmed ? line : paint.dim(line);
}

/** A line of text, or undefined when the person thought better of it. */
async function askLine(
  { input, errors }: Terminal,
  message: string,
  signal: AbortSignal,
  validate?: (line: string | undefined) => string | undefined,
): Promise<string | undefined> {
  // A signal of its own: the prompt goes on listening to the one that it gets when it is over.
  const stop = new AbortController();
  const pass = () => stop.abort();
  signal.addEventListener("abort", pass, { once: true });
  if (signal.aborted) pass();
  try {
    const options = { message, input, output: errors, signal: stop.signal, ...(validate ? { validate } : {}) };
    const line = await text(options);
    return isCancel(line) ? undefined : (line ?? "").trim();
  } finally {
    signal.removeEventListener("abort", pass);
  }
}

/** Every field of the question, one after the other. */
export async function askAnswer(terminal: Terminal, request: RequestView, signal: AbortSignal): Promise<Said> {
  const values: Record<string, Json> = {};
  const required = Array.isArray(request.schema?.required) ? request.schema.required : [];
  await waitForQuiet(terminal, signal);
  for (const [name, schema] of Object.entries(propertiesOf(request.schema))) {
    const isNeeded = required.includes(name);
    const choices = choicesOf(itemsOf(schema) ?? schema);
    const list = choices?.map((choice, i) => `\n  ${i + 1} ${makeVisible(choice)}`).join("") ?? "";
    const how = itemsOf(schema) && choices ? " (several, with commas between them)" : "";
    const title = `The agent asks: ${makeVisible(typeof schema.title === "string" ? schema.title : name)}`;
    const validate = (line = "") => {
      if (line.trim() === "") return isNeeded ? "An answer is needed; Esc leaves it open" : undefined;
      const parsed = parseField(schema, line.trim());
      return "problem" in parsed ? makeVisible(parsed.problem) : undefined;
    };
    const question = wrapLines(`${title}${how}${list}`, (terminal.errors.columns || Number.MAX_VALUE) - PROMPT_COLUMNS);
    const line = await askLine(terminal, question, signal, validate);
    if (signal.aborted) return { type: "stopped" };
    if (line === undefined) return { type: "leave" };
    const parsed = line === "" ? undefined : parseField(schema, line);
    if (parsed && "value" in parsed) values[name] = parsed.value;
  }
  return { type: "answer", values };
}
