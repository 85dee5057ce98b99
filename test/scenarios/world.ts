/** A whole Holdpoint in this process, from a configuration file in a folder of its own, with a model on loopback. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import type { Answer } from "../../src/runtime/answers.ts";
import { type Holdpoint, openHoldpoint } from "../../src/server/compose.ts";
import type { Principal } from "../../src/task/request.ts";
import { isOver, openRequests, type Task } from "../../src/task/task.ts";
import { type OpenAiScript, type OpenAiServer, startOpenAi } from "../openai/server.ts";

const TENANT = "default";
const ana: Principal = { name: "ana", issuer: "test", tenant: TENANT, via: "test" };

export interface World {
  readonly folder: string;
  readonly model: OpenAiServer;
  readonly warnings: readonly string[];
  /** Starts it, again after a stop. */
  start(): Promise<Holdpoint>;
}

/** `config` gets the model's url, and the folder. */
export async function openWorld(
  script: OpenAiScript,
  config: (host: string, folder: string) => string,
): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "holdpoint-world-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const model = await startOpenAi(script);
  onTestFinished(() => model.stop());
  mkdirSync(join(folder, "workspace"));
  const configFile = join(folder, "holdpoint.yaml");
  writeFileSync(configFile, config(model.url, folder));
  const warnings: string[] = [];
  return {
    folder,
    model,
    warnings,
    async start() {
      const holdpoint = await openHoldpoint({
        configFile,
        dataFolder: join(folder, "data"),
        env: { OPENAI_API_KEY: "not-a-key" },
        warn: (text) => warnings.push(text),
      });
      let stopped = false;
      const stop = async () => {
        if (stopped) return;
        stopped = true;
        await holdpoint.stop();
      };
      onTestFinished(stop);
      return { ...holdpoint, stop };
    },
  };
}

let messages = 0;

export async function say({ runtime }: Holdpoint, text: string, contextId?: string): Promise<string> {
  const message = { messageId: `m${++messages}`, role: "user" as const, parts: [{ text }] };
  const context = contextId === undefined ? {} : { contextId };
  const sent = await runtime.submit({ tenant: TENANT, agent: "assistant", principal: ana, message, ...context });
  if (!sent.ok) throw new Error(sent.refusal.code);
  return sent.task.key.id;
}

export function reaches({ runtime }: Holdpoint, id: string, condition: (task: Task) => boolean): Promise<Task> {
  return vi.waitFor(
    async () => {
      const { task } = await runtime.load({ tenant: TENANT, id });
      if (!task || !condition(task)) throw new Error(`not yet: ${JSON.stringify(task?.end ?? task?.requests)}`);
      return task;
    },
    { timeout: 20_000, interval: 10 },
  );
}

export const isPaused = (task: Task): boolean => openRequests(task).length > 0;
export { isOver };

/** Answers what is open, in order. */
export async function decide({ runtime }: Holdpoint, task: Task, ...answers: readonly Answer[]): Promise<void> {
  for (const [i, { id, digest }] of openRequests(task).entries()) {
    const answer = answers[i];
    if (!answer) continue;
    const result = await runtime.choose(TENANT, id, { digest, ...answer }, ana);
    if (!result.ok) throw new Error(JSON.stringify(result.refusal));
  }
}

export function cancel({ runtime }: Holdpoint, { key }: Task) {
  return runtime.cancel(key, ana);
}
