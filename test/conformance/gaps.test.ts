import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SERVER_GAPS } from "./server-gaps.ts";

test("every known gap is a requirement that some suite here checks", () => {
  const folder = import.meta.dirname;
  const suites = readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => readFileSync(join(folder, name), "utf8"));
  const checked = suites.flatMap((text) => [...text.matchAll(/requirement\(\s*"([^"]+)"/g)].map(([, id]) => id));
  expect(checked).toEqual(expect.arrayContaining(Object.keys(SERVER_GAPS)));
});
