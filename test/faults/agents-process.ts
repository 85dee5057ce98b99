/**
 * A whole Holdpoint from a configuration file, with its real model client and real tools, in a process of its own that
 * kills itself at a given port call:
 *
 *   SEED_CONFIG=test/seeds/002-complete-example.yaml OPENAI_HOST=http://127.0.0.1:9/v1 node test/faults/agents-process.ts <folder> agents [17:before | tool.run:after]
 *
 * It plays the person too, until everything is over; started again it goes on where the last one was killed.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig } from "../../src/config/load.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import type { Agent } from "../../src/runtime/agent.ts";
import { startNode } from "../../src/runtime/node.ts";
import { openAgents } from "../../src/server/agents.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { wrapPort } from "../../src/testing/crash-points.ts";
import { toLedgerEntry } from "../../src/testing/ledger.ts";
import type { Tool, Work } from "../../src/tools/tool.ts";
import { answerTo, MESSAGE_IDS, writeConfig } from "./agents-story.ts";
import { type Evidence, openEvidence } from "./evidence.ts";
import { Executioner } from "./executioner.ts";
import { playPerson } from "./person.ts";

const LIFE_MAX_MS = 30_000;

async function main(folder: string, place: string | undefined): Promise<void> {
  const evidence = openEvidence(folder);
  const handler = new Executioner(place, evidence);
  const clock = wrapPort("clock", systemClock, handler);
  const ids = wrapPort("ids", systemIds, handler);
  const file = join(folder, "holdpoint.yaml");
  prepareFolder(folder, file);
  const loaded = loadConfig(file, { OPENAI_API_KEY: "not-a-key" }, join(folder, "data"));
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const open = () => SqliteStore.open({ path: join(folder, "test.db"), clock, ids });
  const store = wrapPort("store", handler.sync<Store>({ point: "store.open", args: [] }, open), handler);
  const opened = await openAgents(loaded.config, { store, clock, protectedPaths: [file], warn: console.error });
  const agents = new Map([...opened.agents].map(([name, agent]) => [name, watched(agent, handler, evidence)]));
  const waker = { heartbeatMs: 50, pollMs: 20, onFailure: (_: unknown, error: unknown) => fail(error) };
  const node = startNode({ store, clock, ids, agents, waker });
  await playPerson(node, { messageIds: MESSAGE_IDS }, evidence, answerTo);
  await node.stop();
  await opened.close();
  await store.close();
  process.stdout.write(`${JSON.stringify({ trace: handler.trace })}\n`);
}

function prepareFolder(folder: string, file: string): void {
  mkdirSync(join(folder, "workspace"), { recursive: true });
  if (existsSync(file)) return;
  for (const name of ["notes.txt", "edited"]) writeFileSync(join(folder, "workspace", name), `${name}\n`);
  writeFileSync(file, writeConfig(process.env.SEED_CONFIG ?? "", process.env.OPENAI_HOST ?? ""));
}

/** Every run is an entry in the ledger before the tool acts; every call of agent and tool is a place to die at. */
function watched(agent: Agent, handler: Executioner, { ledger }: Evidence): Agent {
  const watch = (tool: Tool): Tool => {
    const run = (work: Work) => {
      ledger.write(toLedgerEntry(tool.name, { ...work, args: logged(tool, work) }));
      return tool.run(work);
    };
    return wrapPort("tool", { ...tool, run }, handler);
  };
  const { tools } = agent;
  const get = (name: string) => {
    const tool = tools.get(name);
    return tool && watch(tool);
  };
  return wrapPort("agent", { ...agent, tools: { get, list: () => tools.list() } }, handler);
}

/** A long argument as the log has it. */
function logged({ longArgument: name }: Tool, { args, facts }: Work): Work["args"] {
  const after = facts.plan.after as { sha256: string; bytes: number } | undefined;
  if (name === undefined || !after || after.bytes < 16 * 1024) return args;
  return { ...args, [name]: { blob: after.sha256, bytes: after.bytes } };
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}

const [folder, , place] = process.argv.slice(2);
if (!folder) fail("usage: agents-process.ts <folder> agents [17:before]");
else {
  setTimeout(() => fail(`not over after ${LIFE_MAX_MS} ms`), LIFE_MAX_MS).unref();
  main(folder, place).catch(fail);
}
