/** The story of the documented configuration: what its model wants, from the conversation alone, and what a person says. */
import { readFileSync } from "node:fs";
import type { Answer } from "../../src/runtime/answers.ts";
import { IN_DOUBT_ANSWERS, parseRequestId, type Request } from "../../src/task/request.ts";
import type { History } from "../../src/testing/checker.ts";
import type { OpenAiReply, RecordedRequest } from "../openai/server.ts";

export const MESSAGE_IDS = ["tidy up", "and again"] as const;

/** The seed's file as it is printed, with a host on loopback, and a store so that its tasks are resumed. */
export function writeConfig(seed: string, host: string): string {
  const stored = readFileSync(seed, "utf8")
    .replace("    model: gpt-4o\n", `    model: gpt-4o\n    host: ${host}\n`)
    .replace('    llm: "gpt-4o"\n', '    llm: "gpt-4o"\n    session_store: sqlite\n');
  return `${stored}\nsession_stores:\n  sqlite: { type: sqlite, database: ./test.db }\n`;
}

/** Each task has files of its own. */
function turnsOf(task: string): readonly OpenAiReply[] {
  const own = task.replaceAll(" ", "-");
  return [
    {
      text: "I look first.",
      calls: [
        { name: "read_file", args: { path: "notes.txt" } },
        { name: "execute_command", args: { command: "ls -l notes.txt" } },
        { name: "write_file", args: { path: `${own}-a.txt`, content: "a\n" } },
        { name: "write_file", args: { path: "denied.txt", content: "no\n" } },
      ],
    },
    {
      text: "And then.",
      calls: [
        { name: "execute_command", args: { command: "ls edited" } },
        { name: "write_file", args: { path: `${own}-b.txt`, content: "x\n".repeat(20_000) } },
        { name: "read_file", args: { path: `${own}-a.txt` } },
        { name: "delete_everything", args: {} },
      ],
    },
  ];
}

/** Which turn it is stands in the conversation, so a model that is asked again says the same. */
export function modelReply({ body }: RecordedRequest): OpenAiReply {
  const messages: readonly { readonly role: string; readonly content: unknown }[] = body.messages;
  const since = messages.findLastIndex(({ role }) => role === "user");
  const turns = messages.slice(since).filter(({ role }) => role === "assistant").length;
  return turnsOf(String(messages[since]?.content))[turns] ?? { text: "All done." };
}

export function answerTo(request: Request): Answer | undefined {
  if (request.kind === "in-doubt") {
    const n = parseRequestId(request.id)?.n ?? 0;
    return { choice: "answer", values: { outcome: IN_DOUBT_ANSWERS[n % IN_DOUBT_ANSWERS.length] ?? "failed" } };
  }
  if (request.kind !== "approval") return { choice: "cancel" };
  const { args, digest } = request;
  if (args.path === "denied.txt") return { choice: "deny", reason: "not this one" };
  if (args.command === "ls edited") return { choice: "approve", digest, editedArgs: { command: "ls -a" } };
  return { choice: "approve", digest };
}

export const TOOL_RULES: History["toolRules"] = new Map([
  ["execute_command", { gated: true, mayRetry: false }],
  ["write_file", { gated: true, mayRetry: true, settles: true }],
  ["read_file", { gated: false, mayRetry: true }],
]);
