/** The text of a reply as it grows: well-formed in every piece, and no longer than a log takes. */

export const TEXT_CHARACTERS_MAX = 1024 * 1024;

export class LiveText {
  isShown = false;
  #text = "";
  /** Half of a character, whose other half comes with the next piece. */
  #held = "";
  readonly #onText: ((delta: string) => void) | undefined;

  constructor(onText: ((delta: string) => void) | undefined) {
    this.#onText = onText;
  }

  /** False when there is no room left. */
  add(delta: string): boolean {
    const grown = (this.#held + delta).slice(0, TEXT_CHARACTERS_MAX - this.#text.length);
    const isHalf = /[\uD800-\uDBFF]$/.test(grown);
    this.#held = isHalf ? grown.slice(-1) : "";
    this.#show(isHalf ? grown.slice(0, -1) : grown);
    return this.#text.length + this.#held.length < TEXT_CHARACTERS_MAX;
  }

  end(): string {
    const isCut = this.#text.length + this.#held.length >= TEXT_CHARACTERS_MAX;
    if (!isCut) this.#show(this.#held);
    return this.#text;
  }

  #show(piece: string): void {
    const text = piece.toWellFormed();
    if (text === "") return;
    this.#text += text;
    if (!this.#onText) return;
    this.isShown = true;
    this.#onText(text);
  }
}
