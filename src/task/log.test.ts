import { describe, expect, test } from "vitest";
import { isFault } from "../errors.ts";
import type { Command } from "./command.ts";
import { decodeEvent, encodeEvent, type TaskEvent } from "./event.ts";
import { advanceLog, replay } from "./log.ts";
import { parseRequestId, requestId } from "./request.ts";

const key = { tenant: "default", id: "T" };
const ana = { name: "ana", issuer: "tokens", tenant: "default", via: "api" };
const submit: Command = {
  type: "submit",
  agent: "assistant",
  contextId: "context-1",
  principal: ana,
  message: { messageId: "m1", role: "user", parts: [{ text: "hello" }] },
};
const reply: Command = { type: "reply", turn: 1, text: "Done.", calls: [] };
const complete: Command = { type: "complete", message: "Done." };
const at = (nowMs: number) => ({ key, nowMs, epoch: "e" });

describe("a log grows", () => {
  test("by all events of all commands, or by none", () => {
    const both = advanceLog(undefined, [submit, reply], at(5));
    expect(both.ok && both.events.map(({ seq, at, v, path }) => [seq, at, v, path])).toEqual([
      [1, 5, 1, ["assistant"]],
      [2, 5, 1, ["assistant"]],
    ]);
    expect(advanceLog(undefined, [submit, reply, complete, complete], at(5))).toMatchObject({
      ok: false,
      refusal: { code: "task-over" },
    });
  });

  test("by nothing when nothing is asked of it", () => {
    expect(advanceLog(undefined, [], at(5))).toEqual({ ok: true, task: undefined, events: [], blobs: [], lost: [] });
  });

  test("with time that never goes back, whatever a clock does", () => {
    const first = advanceLog(undefined, [submit], at(5_000));
    if (!first.ok) throw new Error();
    const second = advanceLog(first.task, [reply], at(1_000));
    expect(second.ok && second.events[0]?.at).toBe(5_000);
    expect(second.ok && second.task).toMatchObject({ createdAtMs: 5_000, updatedAtMs: 5_000 });
  });
});

describe("a log is read", () => {
  const result = advanceLog(undefined, [submit, reply, complete], at(5));
  const events: readonly TaskEvent[] = result.ok ? result.events : [];

  test("from its stored text, in which seq and time are columns of their own", () => {
    for (const event of events) {
      const body = encodeEvent(event);
      expect(Object.keys(JSON.parse(body))).not.toContain("seq");
      expect(Object.keys(JSON.parse(body))).not.toContain("at");
      expect(decodeEvent(key, event.seq, event.at, body)).toEqual(event);
    }
  });

  test("in one go or in parts, with the same task at the end", () => {
    expect(replay(key, events.slice(1), replay(key, events.slice(0, 1)))).toEqual(replay(key, events));
    expect(replay(key, [])).toBeUndefined();
  });

  test.each([
    ["a type of the future", { type: "task-teleported", v: 1 }],
    ["a version of the future", { type: "task-completed", v: 2, message: "" }],
    ["no version", { type: "task-completed", message: "" }],
  ])("not at all when it holds %s: newer nodes go on with it", (_what, body) => {
    let fault: unknown;
    try {
      decodeEvent(key, 7, 1, JSON.stringify(body));
    } catch (error) {
      fault = error;
    }
    expect(isFault(fault, "log-unreadable") && fault.message).toMatch(/task T, event 7.*newer Holdpoint; upgrade/);
  });

  test("not at all when its text is damaged, and the fault says where", () => {
    let fault: unknown;
    try {
      decodeEvent(key, 7, 1, '{"type":"task-comp');
    } catch (error) {
      fault = error;
    }
    expect(isFault(fault, "log-unreadable") && fault.message).toMatch(/task T, event 7: its text is damaged/);
  });

  test("only from its beginning", () => {
    expect(() => replay(key, events.slice(1))).toThrow(/before task-submitted/);
  });
});

describe("a request id", () => {
  test.each([
    ["input-T-1", "T", 1],
    ["input-0198c0de-0000-7000-8000-000000000001-20", "0198c0de-0000-7000-8000-000000000001", 20],
    ["input-input-1-2", "input-1", 2],
    ["input-a--3", "a-", 3],
  ])("%s names its task and its counter", (id, taskId, n) => {
    expect(parseRequestId(id)).toEqual({ taskId, n });
    expect(requestId(taskId, n)).toBe(id);
  });

  test.each([
    "",
    "input-",
    "input-T",
    "input-T-",
    "input-T-0",
    "input-T-01",
    "input-T--",
    "input--1",
    "T-1",
    "input-T-1 ",
    "input-T-1.5",
    "input-T-1e3",
    "input-T-9999999999",
    "xinput-T-1",
  ])("%j is none", (id) => {
    expect(parseRequestId(id)).toBeUndefined();
  });
});
