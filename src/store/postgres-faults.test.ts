import pg from "pg";
import { describe, expect, test } from "vitest";
import { HoldpointError } from "../errors.ts";
import { endsSession, toFault } from "./postgres-faults.ts";

const place = "PostgreSQL db.example.com:5432/holdpoint";

function answer(state: string): pg.DatabaseError {
  const error = new pg.DatabaseError(`the server says ${state}`, 0, "error");
  error.code = state;
  return error;
}

describe("a failure of PostgreSQL becomes a fault", () => {
  test.each([
    ["53100", "store-full"],
    ["25006", "store-read-only"],
    ["42501", "store-read-only"],
    ["57P01", "store-unavailable"],
    ["57P02", "store-unavailable"],
    ["57P03", "store-unavailable"],
    ["57014", "store-unavailable"],
    ["53300", "store-unavailable"],
    ["08006", "store-unavailable"],
    ["28P01", "store-unavailable"],
    ["3D000", "store-unavailable"],
    ["40001", "store-contended"],
    ["40P01", "store-contended"],
    ["55P03", "store-contended"],
    ["42P01", "store-corrupt"],
    ["XX001", "store-corrupt"],
    ["22021", "usage-invalid"],
    ["54000", "usage-invalid"],
  ])("%s is %s", (state, code) => {
    const cause = answer(state);
    expect(toFault(place, cause)).toMatchObject({
      code,
      cause,
      message: expect.stringMatching(/^PostgreSQL db\.example\.com:5432\/holdpoint: .*the server says/),
    });
  });

  test("a connection that gives no answer is unavailable, and all its addresses are named", () => {
    expect(toFault(place, new Error("Connection terminated unexpectedly"))).toMatchObject({
      code: "store-unavailable",
    });
    const both = new AggregateError([new Error("refused ::1"), new Error("refused 127.0.0.1")]);
    expect(toFault(place, both)).toMatchObject({
      code: "store-unavailable",
      message: expect.stringContaining("refused ::1, Error: refused 127.0.0.1"),
    });
  });

  test("faults, bugs, and what the store judges itself stay as they are", () => {
    const others = [new HoldpointError("store-newer", "x"), new TypeError("x"), answer("23505"), answer("42601")];
    for (const error of others) expect(toFault(place, error)).toBe(error);
  });
});

test("a session goes on after an ordinary answer, and is given up after a lost or dying one", () => {
  for (const state of ["HP001", "23505", "40001", "55P03", "57014"]) expect(endsSession(answer(state))).toBe(false);
  for (const state of ["57P01", "08006", "53100", "58030", "XX000"]) expect(endsSession(answer(state))).toBe(true);
  expect(endsSession(new Error("Connection terminated"))).toBe(true);
});
