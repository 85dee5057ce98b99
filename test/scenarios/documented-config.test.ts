/** The configuration that the documentation prints, word for word, but for the model's host. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { OpenAiReply } from "../openai/server.ts";
import { cancel, decide, isOver, isPaused, openWorld, reaches, say } from "./world.ts";

const SEED = readFileSync(new URL("../seeds/002-complete-example.yaml", import.meta.url), "utf8");
const onLoopback = (host: string) => SEED.replace("    model: gpt-4o\n", `    model: gpt-4o\n    host: ${host}\n`);
const stored = (host: string) =>
  `${onLoopback(host).replace('    llm: "gpt-4o"\n', '    llm: "gpt-4o"\n    session_store: sqlite\n')}
session_stores:
  sqlite: { type: sqlite, database: ./sessions.db }
`;

const WRITE: OpenAiReply = {
  text: "I write it down.",
  calls: [{ name: "write_file", args: { path: "plan.txt", content: "buy milk\n" } }],
};
const script: readonly OpenAiReply[] = [WRITE, { text: "Written." }];

describe("the documented configuration", () => {
  test("asks with the documented words before it writes, and writes exactly that after the approval", async () => {
    const world = await openWorld(script, onLoopback);
    const holdpoint = await world.start();
    const id = await say(holdpoint, "Write my plan down");
    const task = await reaches(holdpoint, id, isPaused);
    const file = join(world.folder, "workspace", "plan.txt");
    expect(task.requests[0]?.request.prompt).toBe("Write file with input: plan.txt?");
    expect(existsSync(file)).toBe(false);
    await decide(holdpoint, task, { choice: "approve" });
    const { end } = await reaches(holdpoint, id, isOver);
    expect(end).toEqual({ state: "completed", message: "Written." });
    expect(readFileSync(file, "utf8")).toBe("buy milk\n");
    expect(world.model.requests).toHaveLength(2);
  });

  test("a denial goes to the model with its reason, and nothing is written", async () => {
    const world = await openWorld([WRITE, { text: "Then I only tell you." }], onLoopback);
    const holdpoint = await world.start();
    const id = await say(holdpoint, "Write my plan down");
    await decide(holdpoint, await reaches(holdpoint, id, isPaused), { choice: "deny", reason: "not in this folder" });
    expect((await reaches(holdpoint, id, isOver)).end?.message).toBe("Then I only tell you.");
    expect(existsSync(join(world.folder, "workspace", "plan.txt"))).toBe(false);
    const told = JSON.stringify(world.model.requests[1]?.body.messages.at(-1));
    expect(told).toContain("Denied by ana: not in this folder. Do not try this call again");
  });

  test("a file that changed while the request was open is asked about again, and never overwritten unseen", async () => {
    const world = await openWorld(script, onLoopback);
    const holdpoint = await world.start();
    const id = await say(holdpoint, "Write my plan down");
    const task = await reaches(holdpoint, id, isPaused);
    const file = join(world.folder, "workspace", "plan.txt");
    writeFileSync(file, "somebody else was here\n");
    await expect(decide(holdpoint, task, { choice: "approve" })).rejects.toThrow("digest-differs");
    const again = await reaches(holdpoint, id, ({ requests }) => requests.length === 2);
    expect(again.requests[1]?.request).toMatchObject({ supersedes: task.requests[0]?.request.id });
    expect(JSON.stringify(again.requests[1]?.request)).toContain("-somebody else was here");
    await decide(holdpoint, again, { choice: "approve" });
    await reaches(holdpoint, id, isOver);
    expect(readFileSync(file, "utf8")).toBe("buy milk\n");
  });

  test("nobody answers: the task fails, in the documented words", async () => {
    const soon = (host: string) => onLoopback(host).replace("input_timeout: 600", "input_timeout: 1");
    const holdpoint = await (await openWorld(script, soon)).start();
    const id = await say(holdpoint, "Write my plan down");
    const { end } = await reaches(holdpoint, id, isOver);
    expect(end).toEqual({ state: "failed", code: "input-timeout", message: "timeout waiting for user input" });
  });

  test("a cancel of a paused task closes its request; one of a running task stops the model", async () => {
    const world = await openWorld([WRITE, { hang: true }], onLoopback);
    const holdpoint = await world.start();
    const paused = await reaches(holdpoint, await say(holdpoint, "Write my plan down"), isPaused);
    await cancel(holdpoint, paused);
    const closed = await reaches(holdpoint, paused.key.id, isOver);
    expect([closed.end?.state, closed.requests[0]?.decision?.outcome]).toEqual(["canceled", "canceled"]);

    const id = await say(holdpoint, "And now?");
    await expect.poll(() => world.model.requests.length).toBe(2);
    const { task } = await holdpoint.runtime.load({ tenant: "default", id });
    if (task) await cancel(holdpoint, task);
    expect((await reaches(holdpoint, id, isOver)).end?.message).toBe("Canceled by ana.");
    await expect.poll(() => world.model.requests[1]?.aborted).toBe(true);
  });

  test("without a store a restart in mid-pause loses the task, and says so", async () => {
    const world = await openWorld(script, onLoopback);
    const first = await world.start();
    const id = await say(first, "Write my plan down");
    await reaches(first, id, isPaused);
    await first.stop();
    const second = await world.start();
    const task = await reaches(second, id, isOver);
    expect(task.end?.message).toBe("lost: the server stopped while this task was waiting (hitl.mode blocking)");
    expect(task.requests[0]?.decision?.outcome).toBe("canceled");
  });

  test("with a store a restart in mid-pause changes nothing: the stored call runs, the model is not asked for it", async () => {
    const world = await openWorld(script, stored);
    const first = await world.start();
    const id = await say(first, "Write my plan down");
    await reaches(first, id, isPaused);
    await first.stop();
    const second = await world.start();
    await decide(second, await reaches(second, id, isPaused), { choice: "approve" });
    expect((await reaches(second, id, isOver)).end).toEqual({ state: "completed", message: "Written." });
    expect(world.model.requests).toHaveLength(2);
    expect(existsSync(join(world.folder, "sessions.db"))).toBe(true);
  });

  test("a rule that changed in mid-pause asks again, and a tool that is gone is refused; nothing runs", async () => {
    let config = stored;
    const world = await openWorld(script, (host) => config(host));
    const first = await world.start();
    const id = await say(first, "Write my plan down");
    const before = await reaches(first, id, isPaused);
    await first.stop();
    config = (host) =>
      stored(host).replace(
        '    requires_approval: true\n    approval_prompt: "Write',
        '    requires_approval: true\n    risk: high\n    approval_prompt: "Write',
      );
    writeFileSync(join(world.folder, "holdpoint.yaml"), config(world.model.url));
    const second = await world.start();
    await expect(decide(second, before, { choice: "approve" })).rejects.toThrow("digest-differs");
    const again = await reaches(second, id, ({ requests }) => requests.length === 2);
    expect(again.requests[1]?.request.risk).toBe("high");
    await second.stop();
    writeFileSync(join(world.folder, "holdpoint.yaml"), config(world.model.url).replace('      - "write_file"\n', ""));
    const third = await world.start();
    await decide(third, again, { choice: "approve" });
    const ended = await reaches(third, id, isOver);
    expect(Object.values(ended.calls)[0]?.refused?.code).toBe("tool-unknown");
    expect(existsSync(join(world.folder, "workspace", "plan.txt"))).toBe(false);
  });
});
