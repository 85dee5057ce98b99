import fc from "fast-check";
import { expect, test } from "vitest";
import { createToolNames } from "./tool-names.ts";

const LEGAL_EVERYWHERE = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

test("every set of names goes to legal names and back, none twice", () => {
  const name = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom("a", "/", "_", ".", "\ud800"), maxLength: 4 }),
    fc.string({ minLength: 60, maxLength: 200 }),
    fc.constantFrom("__proto__", "constructor", "k8s/get_pod", "k8s.get_pod", "k8s_get_pod", "", "9lives", "-v"),
  );
  fc.assert(
    fc.property(fc.array(name), (names) => {
      const table = createToolNames(names);
      const wires = names.map((name) => table.toWire(name));
      for (const wire of wires) expect(wire).toMatch(LEGAL_EVERYWHERE);
      expect(wires.map((wire) => table.toOurs(wire))).toEqual(names);
      expect(new Set(wires).size).toBe(new Set(names).size);
      expect(createToolNames(names.toReversed()).toWire(names[0] ?? "")).toBe(table.toWire(names[0] ?? ""));
    }),
    { numRuns: 1000 },
  );
});

test("a legal name stays as it is, and a disguise gives way to it", () => {
  const disguise = createToolNames(["k8s/get_pod"]).toWire("k8s/get_pod");
  expect(disguise).toMatch(/^k8s_get_pod_[0-9a-f]{8}$/);
  const table = createToolNames(["k8s/get_pod", disguise, "read_file"]);
  expect(table.toWire("read_file")).toBe("read_file");
  expect(table.toWire(disguise)).toBe(disguise);
  expect(table.toWire("k8s/get_pod")).not.toBe(disguise);
  expect(table.toOurs(table.toWire("k8s/get_pod"))).toBe("k8s/get_pod");
});

test("what looks like a property of every object is an ordinary name", () => {
  const table = createToolNames(["__proto__", "constructor"]);
  expect(table.toWire("__proto__")).toMatch(/^__proto___[0-9a-f]{8}$/);
  expect(table.toWire("constructor")).toBe("constructor");
  expect(createToolNames([]).toOurs("toString")).toBe("toString");
});

test("a tool that the model made up keeps the name it gave", () => {
  expect(createToolNames(["ls"]).toOurs("rm -rf /")).toBe("rm -rf /");
});
