import { expect, test } from "vitest";
import { HoldpointError, isFault, unreachable } from "./errors.ts";

test("a fault names its code, its text and its cause, and says whether a retry can help", () => {
  const cause = new Error("SQLITE_BUSY");
  const fault = new HoldpointError("store-unavailable", "append to T at version 3: database is locked", { cause });
  expect(fault).toMatchObject({ name: "HoldpointError", code: "store-unavailable", retry: true, cause });
  expect(fault.message).toBe("append to T at version 3: database is locked");
  expect(new HoldpointError("store-corrupt", "").retry).toBe(false);
});

test("faults are told apart by code, and from every other error", () => {
  const fault = new HoldpointError("log-purged", "");
  expect([isFault(fault), isFault(fault, "log-purged"), isFault(fault, "log-unreadable")]).toEqual([true, true, false]);
  for (const other of [new Error("log-purged"), { code: "log-purged" }, "log-purged", null, undefined]) {
    expect(isFault(other)).toBe(false);
  }
});

test("what must not happen is a bug and says what came", () => {
  expect(() => unreachable("surprise" as never)).toThrow('unreachable: "surprise"');
});
