/** Writes somebody's words as they come, with a bar beside every line: none of it can pass for ours. */
import { visible } from "./words.ts";
import { sizeOf, widthOf } from "./wrap.ts";

const BAR = "│ ";
/** Before what did not fit on the line above. */
const MARK = "┆ ";

export class QuoteWriter {
  readonly #write: (text: string) => void;
  readonly #width: number;
  /** Columns of the line that was begun; 0 between lines. */
  #used = 0;

  /** `columns`: how wide the terminal is, if one shows it. */
  constructor(write: (text: string) => void, columns: number | undefined) {
    this.#write = write;
    this.#width = widthOf(columns);
  }

  write(text: string): void {
    let out = "";
    for (const character of visible(text)) {
      if (this.#used === 0) out += this.#begin(BAR);
      if (character === "\n") {
        out += character;
        this.#used = 0;
        continue;
      }
      const size = sizeOf(character);
      if (this.#used + size > this.#width) out += `\n${this.#begin(MARK)}`;
      out += character;
      this.#used += size;
    }
    if (out !== "") this.#write(out);
  }

  /** Ends the line that was begun, before anybody else writes. */
  end(): void {
    if (this.#used > 0) this.#write("\n");
    this.#used = 0;
  }

  #begin(prefix: string): string {
    this.#used = prefix.length;
    return prefix;
  }
}
