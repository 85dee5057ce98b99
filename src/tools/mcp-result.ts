/** What a server answered, or did not answer, as the outcome of a call: done, failed, or honestly unknown. */
import {
  type CallToolResult,
  type ContentBlock,
  isInputRequiredResult,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";
import { canonicalJson, findJsonProblem, isObject } from "../task/json.ts";
import type { Finished } from "./tool.ts";

const RESULT_BYTES_MAX = 1024 * 1024;
const ERROR_TEXT_MAX = 500;

/** Put as data into the error with which a lost answer is reported to the SDK; a server cannot send it. */
export const ANSWER_LOST = Object.freeze({ answer: "lost" });

/** Text for the model. Pictures, sounds and binary resources are named, not carried. */
export function finishedFrom(answer: CallToolResult): Finished {
  if (isInputRequiredResult(answer)) return failed(describeWish(answer));
  const texts = answer.content.map(describeBlock);
  if (texts.length === 0 && answer.structuredContent !== undefined) texts.push(structured(answer.structuredContent));
  return { outcome: answer.isError ? "failed" : "done", result: cut(texts.join("\n").toWellFormed()) };
}

/**
 * A call without a result. It failed when the server said so, or when it was certainly not sent; in every other case
 * it may have run.
 */
export function finishedWithout(error: unknown): Finished {
  if (error instanceof ProtocolError && error.data !== ANSWER_LOST) {
    return failed(`the server refused the call (${error.code}): ${textOf(error)}`);
  }
  if (error instanceof SdkHttpError && error.status >= 400 && error.status < 500) {
    return failed(`the server refused the call with HTTP ${error.status}: ${textOf(error)}`);
  }
  if (isNotSent(error)) return failed(`the call was not sent: ${textOf(error)}`);
  return { outcome: "unknown", why: `the call was sent and may have run; there is no answer: ${textOf(error)}` };
}

/** The text of an error without what a server may have put into it: long, with several lines, with control characters. */
export function textOf(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : { message: String(error), cause: undefined };
  const text = cause instanceof Error && cause.message ? `${message}: ${cause.message}` : message;
  return text
    .toWellFormed()
    .slice(0, ERROR_TEXT_MAX)
    .replace(/[\p{C}\s]+/gu, " ")
    .trim();
}

function failed(result: string): Finished {
  return { outcome: "failed", result };
}

/** Codes of a connection that never came about. */
const UNREACHED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/;

function isNotSent(error: unknown): boolean {
  if (error instanceof SdkError && error.code === SdkErrorCode.NotConnected) return true;
  if (!(error instanceof Error)) return false;
  // The SDK throws a plain error where it has no transport any more.
  if (error.message === "Not connected") return true;
  const { cause } = error;
  return isObject(cause) && typeof cause.code === "string" && UNREACHED.test(cause.code);
}

function describeBlock(block: ContentBlock): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return `[${block.type}, ${block.mimeType}, ${base64Bytes(block.data)} bytes, not shown]`;
    case "resource_link":
      return `[link to ${block.uri}: ${block.name}]`;
    case "resource": {
      const { resource } = block;
      const name = `resource ${resource.uri}, ${resource.mimeType ?? "type unknown"}`;
      if ("text" in resource) return `[${name}]\n${resource.text}`;
      return `[${name}, ${base64Bytes(resource.blob)} bytes, not shown]`;
    }
    default:
      return "[content of an unknown kind, not shown]";
  }
}

function base64Bytes(data: string): number {
  return Math.floor((data.length * 3) / 4);
}

function structured(content: unknown): string {
  const problem = findJsonProblem(content, RESULT_BYTES_MAX);
  return problem ? `[structured content, not shown: ${problem.text}]` : canonicalJson(content);
}

function cut(text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= RESULT_BYTES_MAX) return text;
  // A character that the cut divides is dropped.
  const head = Buffer.from(text)
    .subarray(0, RESULT_BYTES_MAX)
    .toString()
    .replace(/\uFFFD$/, "");
  return `${head}\n[cut: the first ${RESULT_BYTES_MAX} of ${bytes} bytes]`;
}

function describeWish(answer: unknown): string {
  const requests = isObject(answer) && isObject(answer.inputRequests) ? Object.values(answer.inputRequests) : [];
  const methods = requests.map((request) => (isObject(request) ? String(request.method).slice(0, 50) : "?"));
  return `the server asked for more input (${methods.slice(0, 5).join(", ") || "unspecified"}), which is declined`;
}
