/**
 * When a key decides. Pure: the time comes in as data.
 *
 * K1  Nothing decides for 400 ms after a request is shown or changes, nor until 1 s after the last character that was
 *     typed for something else.
 * K2  A key that is followed by another at typing speed was the beginning of a word, not a decision.
 * K3  Enter and Space act only on a button that has the focus; nothing has it at first.
 * K4  For high risk a letter only moves the focus; Enter then decides.
 */

export const SHOWN_MS = 400;
export const QUIET_MS = 1000;
export const SETTLE_MS = 300;

export type Button = "approve" | "edit" | "deny";

export interface Menu {
  readonly buttons: readonly Button[];
  readonly isHigh: boolean;
  /** Before this nothing decides. */
  readonly armedAtMs: number;
  readonly focused?: Button;
  /** Pressed, and done unless another key follows at once. */
  readonly pressed?: { readonly button: Button; readonly atMs: number };
}

/** What the keyboard sends: a character, or the name of a key. */
export interface Key {
  readonly text: string;
  readonly name?: string | undefined;
}

const LETTERS: Readonly<Record<string, Button>> = { a: "approve", e: "edit", d: "deny" };
const MOVES: Readonly<Record<string, 1 | -1>> = { right: 1, down: 1, tab: 1, left: -1, up: -1 };

export function showMenu(buttons: readonly Button[], isHigh: boolean, nowMs: number): Menu {
  return { buttons, isHigh, armedAtMs: nowMs + SHOWN_MS };
}

export function pressKey(menu: Menu, { text, name = "" }: Key, nowMs: number): Menu {
  const { buttons, isHigh, armedAtMs, focused, pressed } = menu;
  const move = MOVES[name];
  if (move !== undefined && !pressed) return focus(menu, nextButton(buttons, focused, move), nowMs);
  const isAction = name === "return" || name === "enter" || name === "space";
  const named = LETTERS[text.toLowerCase()];
  const button = isAction ? focused : named !== undefined && buttons.includes(named) ? named : undefined;
  if (button === undefined || pressed || nowMs < armedAtMs) return typed(menu, nowMs);
  if (!isAction && isHigh && button === "approve") return focus(menu, button, nowMs);
  return { ...menu, pressed: { button, atMs: nowMs } };
}

/** Whether this key was meant to approve, and came before it could count: a person must not wonder why nothing happens. */
export function isTooQuick(menu: Menu, { name }: Key, nowMs: number): boolean {
  if (name !== "return" && name !== "enter") return false;
  return menu.pressed?.button === "approve" || (menu.focused === "approve" && nowMs < menu.armedAtMs);
}

/** The button that was pressed and not taken back by more typing. */
export function settled({ pressed }: Menu, nowMs: number): Button | undefined {
  return pressed && nowMs - pressed.atMs >= SETTLE_MS ? pressed.button : undefined;
}

/** What was meant for something else: start waiting anew. */
function typed({ buttons, isHigh, armedAtMs }: Menu, nowMs: number): Menu {
  return { buttons, isHigh, armedAtMs: Math.max(armedAtMs, nowMs + QUIET_MS) };
}

function focus({ buttons, isHigh, armedAtMs }: Menu, focused: Button, nowMs: number): Menu {
  return { buttons, isHigh, focused, armedAtMs: Math.max(armedAtMs, nowMs + SHOWN_MS) };
}

function nextButton(buttons: readonly Button[], focused: Button | undefined, move: 1 | -1): Button {
  const at = focused === undefined ? (move === 1 ? -1 : 0) : buttons.indexOf(focused);
  // There is always at least one button.
  return buttons[(at + move + buttons.length) % buttons.length] ?? "deny";
}
