/** What a failed call of a provider means: ask later, mend something, or try again; in words, and without the key. */
import { isObject } from "../task/json.ts";
import { ModelBusy, ModelFailed } from "./model.ts";
import { hostOf, type ProviderConfig } from "./provider-package.ts";

/** A provider that asks for more is asked earlier all the same. */
const RETRY_AFTER_MAX_MS = 60 * 60 * 1000;
const WORDS_MAX = 300;

export interface Failure {
  readonly error: Error;
  /** Trying the same at once may help. */
  readonly transient: boolean;
}

export function judgeFailure(name: string, config: ProviderConfig, error: unknown, nowMs: number): Failure {
  if (error instanceof ModelFailed) return { error, transient: false };
  const { status, words, kind, retryAfterMs, retryable } = read(error, nowMs);
  const host = hostOf(config);
  const said = clean(words, config.apiKey);
  const answered = `llm "${name}": ${host} answered ${status ?? "in its stream"}${said && `: ${said}`}`;
  const mend = (what: string): Failure => ({ error: new ModelFailed(`${answered}. ${what}`), transient: false });
  const wait = (): Failure => ({ error: new ModelBusy(answered, retryAfterMs), transient: false });
  const again = (what: string): Failure => ({ error: new Error(what), transient: true });
  const mayBeBusy = status === undefined || status >= 500;

  // OpenAI says 429 for it too, but waiting does not help.
  if (/insufficient_quota|billing_error/.test(kind)) return mend("See the account's billing at the provider.");
  if (status === 429 || status === 529) return wait();
  if (mayBeBusy && /overloaded|rate_limit/i.test(`${words} ${kind}`)) return wait();
  if (retryable && retryAfterMs !== undefined) return wait();
  if (retryable && status === undefined) return again(`llm "${name}": ${host} cannot be reached: ${said}`);
  if (retryable) return again(answered);
  if (status === undefined) {
    return again(
      `llm "${name}": no whole answer from ${host}: ${said}. If this stays, check llms.${name}.host and type.`,
    );
  }
  if (status < 400) return mend(`The key is not sent after a redirect: put the address into llms.${name}.host.`);
  if (status === 401) return mend(`Check llms.${name}.api_key.`);
  if (status === 403) return mend(`The key in llms.${name}.api_key may not use "${config.model}".`);
  if (status === 404) return mend(`Check llms.${name}.model ("${config.model}") and host.`);
  return mend(`Check llms.${name}, the tools' schemas and the length of the conversation.`);
}

interface Reading {
  readonly status: number | undefined;
  readonly words: string;
  /** The provider's own name for it, where it has one. */
  readonly kind: string;
  readonly retryAfterMs: number | undefined;
  readonly retryable: boolean;
}

/** The library throws errors, and passes on objects and texts that came in a stream. */
function read(error: unknown, nowMs: number): Reading {
  if (!isObject(error))
    return { status: undefined, words: String(error), kind: "", retryAfterMs: undefined, retryable: false };
  // In a stream some hosts give the status as the code.
  const status = [error.statusCode, error.code].filter((value) => typeof value === "number").find(isFailing);
  const headers = isObject(error.responseHeaders) ? error.responseHeaders : {};
  const isServerFault = status !== undefined && (status >= 500 || [408, 409, 425, 429].includes(status));
  return {
    status,
    words: wordsOf(error),
    kind: [error.code, error.type, error.responseBody].filter((value) => typeof value === "string").join(" "),
    retryAfterMs: parseRetryAfter(headers, nowMs),
    retryable: isServerFault || (status === undefined && error.isRetryable === true),
  };
}

/** A 200 whose body cannot be read is none, nor is a code that only looks like one. */
function isFailing(status: number): boolean {
  return status >= 300 && status < 600;
}

function wordsOf(error: Record<string, unknown>): string {
  const message = typeof error.message === "string" ? error.message : "";
  const cause = isObject(error.cause) && typeof error.cause.message === "string" ? error.cause.message : "";
  const code = isObject(error.cause) && typeof error.cause.code === "string" ? error.cause.code : "";
  return [message, ...[cause, code].filter((more) => more && !message.includes(more))].join(": ");
}

/** `retry-after-ms`, or RFC 9110 §10.2.3: seconds or a date. */
function parseRetryAfter(headers: Record<string, unknown>, nowMs: number): number | undefined {
  const exact = Number(headers["retry-after-ms"] ?? Number.NaN);
  if (exact >= 0) return Math.min(exact, RETRY_AFTER_MAX_MS);
  const value = headers["retry-after"];
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const afterMs = Number.isNaN(Number(value)) ? Date.parse(value) - nowMs : Number(value) * 1000;
  return Number.isNaN(afterMs) ? undefined : Math.min(Math.max(afterMs, 0), RETRY_AFTER_MAX_MS);
}

/** On one line, of bounded length, and without the key, which some hosts repeat when they refuse it. */
function clean(words: string, key: string | undefined): string {
  const kept = key ? words.replaceAll(key, "***") : words;
  const line = kept.replace(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
  return (line.length > WORDS_MAX ? `${line.slice(0, WORDS_MAX)}…` : line).replace(/\.$/, "").toWellFormed();
}
