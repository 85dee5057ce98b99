/** One requirement of the TCK, by its name there, and how its errors must look under profile 1.0.0. */
import { expect, test } from "vitest";
import type { z } from "zod";
import type { Answer, Client, Received } from "./client.ts";
import { SERVER_GAPS } from "./server-gaps.ts";

export function requirement(id: string, title: string, check: () => Promise<void>): void {
  const gap = SERVER_GAPS[id];
  if (gap === undefined) test(`${id}: ${title}`, check);
  else test.fails(`${id}: ${title}. Known gap, remove it from server-gaps.ts when this fails: ${gap}`, check);
}

/** JSON-RPC code, HTTP status. */
const ERRORS = {
  TASK_NOT_FOUND: [-32001, 404],
  TASK_NOT_CANCELABLE: [-32002, 409],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32003, 400],
  UNSUPPORTED_OPERATION: [-32004, 400],
  CONTENT_TYPE_NOT_SUPPORTED: [-32005, 415],
  VERSION_NOT_SUPPORTED: [-32009, 400],
} as const satisfies Record<string, readonly [number, number]>;

type Reason = keyof typeof ERRORS;

export function expectError({ transport }: Pick<Client, "transport">, answer: Answer, reason: Reason): void {
  const [code, httpStatus] = ERRORS[reason];
  if (transport === "JSONRPC") expectRpcError(answer.body, code, reason);
  else expectRestError(answer, httpStatus, reason);
}

export function expectRpcError(body: Received, code: number, reason?: string): void {
  expect(body).toEqual({ jsonrpc: "2.0", id: body.id, error: body.error });
  const { message, data, ...rest } = body.error;
  expect(rest).toEqual({ code });
  expect(message).toMatch(/\S/);
  if (reason !== undefined) expectErrorInfo(data, reason);
}

export function expectRestError({ httpStatus, headers, body }: Answer, wanted: number, reason?: string): void {
  expect([httpStatus, headers.get("content-type")]).toEqual([wanted, expect.stringContaining("application/json")]);
  const { status, message, details, ...rest } = body.error;
  expect(rest).toEqual({ code: wanted });
  expect([status, message]).toEqual([expect.stringMatching(/^[A-Z_]+$/), expect.stringMatching(/\S/)]);
  if (reason !== undefined) expectErrorInfo(details, reason);
}

function expectErrorInfo(details: Received, reason: string): void {
  expect(details).toContainEqual(
    expect.objectContaining({
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason,
      domain: "a2a-protocol.org",
    }),
  );
}

export function expectShape(shape: z.ZodType, value: unknown): void {
  expect(shape.safeParse(value).error?.issues ?? []).toEqual([]);
}
