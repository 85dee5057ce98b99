/**
 * A mapping of the file with the keys it may have. Unknown and doubled keys are reported when it is opened; each reader
 * returns undefined for a key that is absent or wrong, after reporting it, so that one load finds every mistake.
 */
import { isMap, isPair, isScalar, isSeq } from "yaml";
import type { Place } from "./config.ts";
import { eitherOf, nearest } from "./nearest.ts";
import {
  type Bounds,
  type Naming,
  readChoice,
  readFlag,
  readNumber,
  readTextValue,
  shown,
  writtenText,
  writtenWhole,
} from "./scalar.ts";
import { placeOf, type Report, type Span, type Value, valueAt } from "./source.ts";
import { hasVariable } from "./variables.ts";

export interface KeyRule {
  /** What a misspelling of this key would have caused. */
  readonly lost?: string;
  /** The kinds that have this key; absent: all. */
  readonly only?: readonly string[];
}

export interface Shape<K extends string> {
  readonly keys: Readonly<Record<K, KeyRule>>;
  /** What the mapping is, for people: `tool "rm"`. */
  readonly what: string;
  /** Its `type`, where keys depend on it; undefined: not known, every key is let through. */
  readonly kind?: string | undefined;
  /** Foreign spellings too far away to be found by distance. */
  readonly mistaken?: (key: string) => string | undefined;
}

export interface Entry {
  readonly key: string;
  readonly keySpan: Span;
  readonly value: Value;
}

export interface Item {
  readonly text: string;
  /** For people: as it stands in the file, so that no variable shows its value. */
  readonly written: string;
  readonly span: Span;
}

export class Section<K extends string> {
  readonly #entries: ReadonlyMap<string, Entry>;
  readonly #shape: Shape<K>;
  readonly #isMapping: boolean;
  /** Keys that stand here misspelled: they are reported once, not also as missing. */
  readonly #meant = new Set<string>();
  /** Where problems of the mapping as a whole are shown: its name. */
  readonly home: Span;
  readonly report: Report;

  constructor(value: Value, home: Span, shape: Shape<K>, report: Report) {
    this.#shape = shape;
    this.home = home;
    this.#isMapping = isMap(value.node);
    this.report = report;
    this.#entries = new Map(entriesOf(value, shape.what, report).map((entry) => [entry.key, entry]));
    for (const entry of this.#entries.values()) this.#checkKey(entry);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** Whether somebody wrote something about this key, even if misspelled. */
  says(key: K): boolean {
    return this.has(key) || this.#meant.has(key);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Of the key, or of the whole where it is absent. */
  spanOf(key: K): Span {
    return this.#entries.get(key)?.keySpan ?? this.home;
  }

  valueSpanOf(key: K): Span {
    return this.#entries.get(key)?.value.span ?? this.home;
  }

  placeOf(key: K): Place {
    return placeOf(this.spanOf(key));
  }

  text(key: K): string | undefined {
    return this.#read(key, (value, naming) => readTextValue(value, naming, this.report));
  }

  /** A text, and how messages may show it. */
  item(key: K): Item | undefined {
    const value = this.#entries.get(key)?.value;
    const text = this.text(key);
    return text === undefined || !value ? undefined : { text, written: writtenText(value), span: value.span };
  }

  /** A text that no message may quote. */
  secret(key: K): string | undefined {
    return this.#read(key, (value, naming) => readTextValue(value, { ...naming, secret: true }, this.report));
  }

  number(key: K, bounds: Bounds): number | undefined {
    return this.#read(key, (value, naming) => readNumber(value, naming, bounds, this.report));
  }

  flag(key: K): boolean | undefined {
    return this.#read(key, (value, naming) => readFlag(value, naming, this.report));
  }

  choice<C extends string>(key: K, choices: readonly C[]): C | undefined {
    return this.#read(key, (value, naming) => readChoice(value, naming, choices, this.report));
  }

  /** Reports a key that must be there and is not. */
  require(key: K, why = ""): void {
    if (this.#isMapping && !this.says(key))
      this.report.error(this.home, `"${key}" is missing in ${this.#shape.what}${why}`);
  }

  items(key: K): readonly Value[] | undefined {
    return this.#read(key, (value, naming) => itemsOf(value, naming, this.report));
  }

  /** A list of texts. */
  texts(key: K): readonly Item[] | undefined {
    return this.#read(key, (value, naming) => textsOf(value, naming, this.report));
  }

  /** The entries of a list, or the one value, as they are written; and what their variables hold. */
  written(key: K): { readonly texts: readonly string[]; readonly variables: Readonly<Record<string, string>> } {
    const value = this.#entries.get(key)?.value;
    if (!value) return { texts: [], variables: {} };
    const values = isSeq(value.node) ? value.node.items.map((item) => valueAt(item, value, value.span)) : [value];
    const written = values.map(writtenWhole);
    return {
      texts: written.map(({ text }) => text),
      variables: Object.assign({}, ...written.map(({ variables }) => variables)),
    };
  }

  /** A list of texts, each once. */
  names(key: K): readonly Item[] | undefined {
    const seen = new Set<string>();
    return this.texts(key)?.filter(({ text, span }) => {
      if (seen.has(text)) this.report.error(span, `an entry of "${key}" stands twice`);
      return !seen.has(text) && seen.add(text);
    });
  }

  /** Whether a switch stands where something else is wanted. */
  isFlag(key: K): boolean {
    const node = this.#entries.get(key)?.value.node;
    return isScalar(node) && typeof node.value === "boolean";
  }

  /** A mapping whose keys are free. */
  entries(key: K): readonly Entry[] | undefined {
    return this.#read(key, (value) => entriesOf(value, `"${key}"`, this.report));
  }

  /** A mapping of free names to texts that no message may quote. */
  secrets(key: K): Readonly<Record<string, string>> | undefined {
    const pairs = this.entries(key)?.flatMap((entry) => {
      const naming = { name: `"${entry.key}"`, secret: true };
      const text = readTextValue(entry.value, naming, this.report);
      return text === undefined ? [] : [[entry.key, text] as const];
    });
    return pairs && Object.fromEntries(pairs);
  }

  section<I extends string>(key: K, keys: Shape<I>["keys"]): Section<I> | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    const shape = { keys, what: `"${key}"` };
    return new Section(entry.value, entry.keySpan, shape, this.report);
  }

  #read<T>(key: K, read: (value: Value, naming: Naming) => T): T | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    return read(entry.value, { name: `"${key}"`, consequence: this.#shape.keys[key].lost });
  }

  #checkKey({ key, keySpan }: Entry): void {
    const { keys, what, kind, mistaken } = this.#shape;
    const rules = new Map<string, KeyRule>(Object.entries(keys));
    const rule = rules.get(key);
    if (rule && belongs(rule, kind)) return;
    const known = [...rules].filter(([, other]) => belongs(other, kind)).map(([name]) => name);
    const slip = rule ? undefined : nearest(key, known, SLIP_EDITS);
    const meant = slip ?? mistaken?.(key) ?? (rule ? undefined : nearest(key, known));
    if (rule?.only && meant === undefined) {
      this.report.error(keySpan, `"${key}" does not belong to type ${kind}, only to ${rule.only.join(", ")}`);
      return;
    }
    const hint = meant === undefined ? ` in ${what}. Known keys: ${known.join(", ")}` : `. Did you mean "${meant}"?`;
    if (meant !== undefined) this.#meant.add(meant);
    this.report.error(keySpan, `unknown key "${key}"${hint}`, {
      consequence: (meant === undefined ? undefined : rules.get(meant)?.lost) ?? "It would have no effect.",
      nearest: meant,
    });
  }
}

/** So few edits are a slip of the finger; with more, another tool's spelling is the likelier reason. */
const SLIP_EDITS = 2;

function belongs({ only }: KeyRule, kind: string | undefined): boolean {
  return kind === undefined || !only || only.includes(kind);
}

/** The `type` of an entry, read first because its other keys depend on it; undefined after reporting why. */
export function readType<T extends string>(
  { value, keySpan }: Entry,
  types: readonly T[],
  what: string,
  report: Report,
  absent?: T,
): T | undefined {
  // What is no mapping at all is reported when it is opened.
  if (!isMap(value.node)) return undefined;
  const node = value.node.get("type", true);
  if (node !== undefined) return readChoice(valueAt(node, value, keySpan), { name: '"type"' }, types, report);
  if (absent === undefined) report.error(keySpan, `"type" is missing in ${what}: ${eitherOf(types)}`);
  return absent;
}

/** The entries of a mapping, each key once and a text. */
export function entriesOf(value: Value, what: string, report: Report): readonly Entry[] {
  const { node, span } = value;
  if (node === null || (isScalar(node) && node.value === null)) {
    report.error(span, `${what} has no value; write one or remove the line`);
    return [];
  }
  if (!isMap(node)) {
    report.error(span, `${what} must be a mapping (key: value), not ${shown(value, { name: what })}`);
    return [];
  }
  const entries = new Map<string, Entry>();
  for (const pair of node.items) {
    if (!isPair(pair)) continue;
    const keyValue = valueAt(pair.key, value, span);
    if (!isScalar(keyValue.node)) {
      report.error(keyValue.span, "a key must be a single word");
      continue;
    }
    const key = typeof keyValue.node.value === "string" ? keyValue.node.value : (keyValue.node.source ?? "");
    if (hasVariable(key)) {
      report.error(keyValue.span, "a variable can fill in a value, not a key");
      continue;
    }
    const first = entries.get(key);
    if (first) {
      report.error(keyValue.span, `the key "${key}" stands twice; first on line ${placeOf(first.keySpan).line}`, {
        consequence: "Only one of the two would count.",
      });
      continue;
    }
    const { span: keySpan } = keyValue;
    entries.set(key, { key, keySpan, value: valueAt(pair.value, value, keySpan) });
  }
  return [...entries.values()];
}

function itemsOf(value: Value, { name }: Naming, report: Report): readonly Value[] | undefined {
  if (isSeq(value.node)) return value.node.items.map((item) => valueAt(item, value, value.span));
  report.error(value.span, `${name} must be a list, not ${shown(value, { name })}`);
  return undefined;
}

function textsOf(value: Value, naming: Naming, report: Report): readonly Item[] | undefined {
  return itemsOf(value, naming, report)?.flatMap((item) => {
    const text = readTextValue(item, { name: `an entry of ${naming.name}` }, report);
    return text === undefined ? [] : [{ text, written: writtenText(item), span: item.span }];
  });
}
