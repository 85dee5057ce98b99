import { describe, expect, expectTypeOf, test, vi } from "vitest";
import { z } from "zod";
import type { JsonObject } from "../task/json.ts";
import { defineTool, OutcomeUnknown, type StandardSchema } from "./define-tool.ts";
import type { Tool } from "./tool.ts";

async function call(tool: Tool, args: JsonObject) {
  const facts = await tool.prepare(args);
  return tool.run({ args, facts, idempotencyKey: "key-1", signal: new AbortController().signal });
}

const money = {
  name: "send_money",
  description: "Sends money.",
  parameters: z.object({
    to: z.string(),
    amount: z.number().positive(),
    currency: z.enum(["EUR", "USD"]).default("EUR"),
  }),
  requiresApproval: true,
  risk: "high",
} as const;

test("arguments are typed from the schema to the end", async () => {
  const run = vi.fn(() => "sent");
  const tool = defineTool({
    ...money,
    prompt: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ to: string; amount: number; currency?: "EUR" | "USD" | undefined }>();
      return `Send ${args.amount} to ${args.to}?`;
    },
    plan: (args) => {
      expectTypeOf(args).toEqualTypeOf<{ to: string; amount: number; currency: "EUR" | "USD" }>();
      return { transfer: [args.to, args.amount, args.currency] };
    },
    run: (args, { signal, idempotencyKey, plan }) => {
      expectTypeOf(args.currency).toEqualTypeOf<"EUR" | "USD">();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expect([args, idempotencyKey, plan]).toEqual([
        { to: "Ana", amount: 5, currency: "EUR" },
        "key-1",
        { transfer: ["Ana", 5, "EUR"] },
      ]);
      return run();
    },
  });
  expect(await call(tool, { to: "Ana", amount: 5 })).toEqual({ outcome: "done", result: "sent" });
  expect(run).toHaveBeenCalledTimes(1);
  expect(tool.promptFor({ to: "Ana", amount: 5 })).toBe("Send 5 to Ana?");
  expect(tool).toMatchObject({ gated: true, risk: "high", editable: true, idempotent: false, onAmbiguous: "ask" });
});

test("what the digest binds: the code's name, the schema, the rule and the plan", async () => {
  const facts = (changes: object = {}) =>
    defineTool({ ...money, run: () => null, ...changes }).prepare({ to: "A", amount: 1 });
  const before = await facts();
  expect(before.identity).toBe("code:send_money");
  // A default that nobody sent is shown as well.
  expect(before.plan).toEqual({ arguments: { to: "A", amount: 1, currency: "EUR" } });
  expect(await facts()).toEqual(before);
  expect((await facts({ requiresApproval: false })).policyVersion).not.toBe(before.policyVersion);
  expect((await facts({ risk: "low" })).policyVersion).not.toBe(before.policyVersion);
  const wider = money.parameters.extend({ note: z.string().optional() });
  expect((await facts({ parameters: wider })).schemaHash).not.toBe(before.schemaHash);
  expect((await facts({ plan: () => ({ other: 1 }) })).plan).toEqual({ other: 1 });
});

test("without its own prompt it asks with the usual text", () => {
  const tool = defineTool({ ...money, run: () => null });
  expect(tool.promptFor({ to: "Ana", amount: 1 })).toContain('Tool: send_money\nInput: {"amount":1,"to":"Ana"}');
});

describe("arguments that do not fit are refused, with pointers, and nothing runs", () => {
  const run = vi.fn(() => null);
  const parameters = money.parameters.refine(({ to }) => to !== "me", { path: ["to"], message: "not to yourself" });
  const tool = defineTool({ ...money, parameters, run });

  test.each([
    ["a wrong type", { to: 1, amount: 1 }, "/to: must be string"],
    ["nothing", {}, "/to: is missing"],
    ["what only code can check", { to: "me", amount: 1 }, "/to: not to yourself"],
    ["a number beyond reading", { to: "A", amount: 2 ** 60 }, "is beyond 2^53"],
    ["more than 64 KiB", { to: "x".repeat(70_000), amount: 1 }, "bytes"],
  ])("%s", async (_what, args, text) => {
    await expect(tool.prepare(args)).rejects.toMatchObject({ code: "arguments-invalid" });
    await expect(tool.prepare(args)).rejects.toThrow(text);
    expect(run).not.toHaveBeenCalled();
  });
});

test("what it throws is a failure with its message", async () => {
  const tool = defineTool({
    ...money,
    run: () => {
      throw new Error("no funds");
    },
  });
  expect(await call(tool, { to: "A", amount: 1 })).toEqual({ outcome: "failed", result: "no funds" });
});

test.each([
  ["says so", new OutcomeUnknown("the bank did not answer"), new AbortController().signal],
  ["was canceled under way", new Error("aborted"), AbortSignal.abort()],
])("when it %s, its outcome is unknown", async (_what, error, signal) => {
  const tool = defineTool({ ...money, run: () => Promise.reject(error) });
  const args = { to: "A", amount: 1 };
  const finished = await tool.run({ args, facts: await tool.prepare(args), idempotencyKey: "key-1", signal });
  expect(finished).toEqual({ outcome: "unknown", why: expect.stringContaining(error.message) });
});

test("what JSON cannot say is no result, and no plan", async () => {
  const odd = defineTool({ ...money, run: () => ({ at: new Date(0) }) as never });
  expect(await call(odd, { to: "A", amount: 1 })).toEqual({
    outcome: "done",
    result: "[the result cannot be kept: /at: not a plain object]",
  });
  expect(await call(defineTool({ ...money, run: () => undefined as never }), { to: "A", amount: 1 })).toEqual({
    outcome: "done",
    result: null,
  });
  const unplanned = defineTool({ ...money, plan: () => ({ at: Number.NaN }), run: () => null });
  await expect(unplanned.prepare({ to: "A", amount: 1 })).rejects.toMatchObject({ code: "tool-unavailable" });
});

test("any Standard Schema will do, with its JSON Schema beside it", async () => {
  const parameters: StandardSchema<{ n: string }, { n: number }> = {
    "~standard": {
      version: 1,
      vendor: "ours",
      validate: async (value) => ({ value: { n: Number((value as { n: string }).n) } }),
    },
  };
  const common = { name: "double", description: "", parameters, requiresApproval: false };
  expect(() => defineTool({ ...common, run: () => null })).toThrow("a schema of ours needs jsonSchema");
  const jsonSchema = { type: "object", properties: { n: { type: "string" } }, required: ["n"] };
  const tool = defineTool({ ...common, jsonSchema, run: ({ n }) => n * 2 });
  expect(await call(tool, { n: "21" })).toEqual({ outcome: "done", result: 42 });
});

test.each([
  ["a name that is none", { name: "send money" }, "is no name for a tool"],
  ["retry without idempotence", { onAmbiguous: "retry" }, "needs idempotent: true"],
] as const)("a definition that cannot work throws at once: %s", (_what, changes, text) => {
  expect(() => defineTool({ ...money, run: () => null, ...changes })).toThrow(text);
});
