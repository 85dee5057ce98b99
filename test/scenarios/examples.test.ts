import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "./holdpoint-process.ts";

const run = promisify(execFile);

test("gate-a-tool pauses in one process and finishes in another", async () => {
  const folder = temporaryFolder();
  const example = fileURLToPath(new URL("../../examples/gate-a-tool.ts", import.meta.url));
  const database = join(folder.path, "example.db");
  const first = await run(process.execPath, [example, "ask", database]);
  expect(first.stdout).toMatch(/^◷ Refund 125 for ORD-7\? {3}\(input-\S+-1\)\n$/);
  const second = await run(process.execPath, [example, "approve", database]);
  expect(second.stdout).toBe("ana approved\nthe agent says: Refunded.\n");
  folder.remove();
});

test("code-agent asks, builds once and deploys, each in a process of its own", async () => {
  const folder = temporaryFolder();
  const example = fileURLToPath(new URL("../../examples/code-agent.ts", import.meta.url));
  const say = async (...words: [command: string, value: string]) =>
    (await run(process.execPath, [example, ...words, join(folder.path, "example.db")])).stdout;
  expect(await say("ask", "")).toBe("◷ Which environment?\n");
  expect(await say("answer", "staging")).toBe("… building\n◷ Deploy shop:1.4.2 to staging?\n");
  expect(await say("approve", "")).toBe("the agent says: shop:1.4.2 runs in staging.\n");
  await say("ask", "");
  await say("answer", "production");
  expect(await say("deny", "not on Fridays")).toBe(
    "the agent says: shop:1.4.2 was built, and not deployed: not on Fridays.\n",
  );
  folder.remove();
});
