/** The `llms` section. */
import { join, resolve } from "node:path";
import type { LlmConfig } from "./config.ts";
import { parseScript } from "./script.ts";
import { type Entry, readType, Section } from "./section.ts";
import type { ReadText, Report } from "./source.ts";
import { readUrl } from "./url.ts";

/** Where paths of a configuration begin: as it is, and as a person sees it. */
export interface Folder {
  readonly path: string;
  readonly shown: string;
  readonly read: (path: string) => ReadText;
}

const LLM_TYPES = ["scripted", "openai", "anthropic", "google", "openai-compatible"] as const;
const REMOTE = ["openai", "anthropic", "google", "openai-compatible"] as const;

const LLM_KEYS = {
  type: {},
  script: { only: ["scripted"] },
  model: { only: REMOTE },
  api_key: { only: REMOTE, lost: "Every call of this model would be refused by the provider." },
  host: { only: REMOTE, lost: "The provider's own address would be used." },
  temperature: { only: REMOTE, lost: "The provider's own temperature would be used." },
  max_tokens: { only: REMOTE, lost: "The provider's own limit would be used." },
  api: { only: ["openai"], lost: "Chat Completions would be used." },
} as const;

export function readLlm(entry: Entry, folder: Folder, report: Report): LlmConfig | undefined {
  const what = `llm "${entry.key}"`;
  const type = readType(entry, LLM_TYPES, what, report);
  const section = new Section(entry.value, entry.keySpan, { keys: LLM_KEYS, what, kind: type }, report);
  if (type === undefined) return undefined;
  if (type === "scripted") {
    section.require("script", ": the file with its lines");
    const item = section.item("script");
    if (!item) return undefined;
    const file = join(folder.shown, item.written);
    const path = resolve(folder.path, item.text);
    const read = folder.read(path);
    if ("why" in read) {
      // A script that is not there is a mistake of the line that names it.
      report.error(item.span, `the script ${file}: ${read.why}`);
      return undefined;
    }
    const script = parseScript(file, read.text, report);
    return script && { type, script, file: path };
  }
  section.require("model");
  if (type === "openai-compatible")
    section.require("host", ": the address of its API, such as http://localhost:11434/v1");
  return {
    type,
    model: section.text("model") ?? "",
    apiKey: section.secret("api_key"),
    host: readUrl(section, "host"),
    temperature: section.number("temperature", { min: 0, max: 2 }),
    maxTokens: section.number("max_tokens", { min: 1, max: 10_000_000, whole: true }),
    api: section.choice("api", ["chat", "responses"]) ?? "chat",
  };
}
