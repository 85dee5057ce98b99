/**
 * A whole Holdpoint in a process of its own, on SQLite, that kills itself at a given port call:
 *
 *   node test/faults/worker-process.ts <folder> <story> [17:before | store.append:after]
 *
 * that is, before its 17th port call, or after its first `store.append` has taken effect and before anybody knows.
 * It sends the story's tasks, works on them, and plays the person, until everything is over; then it seals, says which
 * port calls it made, and exits with 0. Started again on the same folder it goes on where the last one was killed.
 */
import { join } from "node:path";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { startNode } from "../../src/runtime/node.ts";
import { SqliteStore } from "../../src/store/sqlite.ts";
import type { Store } from "../../src/store/store.ts";
import { wrapPort } from "../../src/testing/crash-points.ts";
import { openEvidence } from "./evidence.ts";
import { Executioner } from "./executioner.ts";
import { playPerson } from "./person.ts";
import { answerTo, createAgent, STORIES, type Story, type StoryName } from "./story.ts";

/** A story that hangs has failed; and nothing outlives a test that has ended before it. */
const LIFE_MAX_MS = 20_000;

async function main(folder: string, story: Story, place: string | undefined): Promise<void> {
  const evidence = openEvidence(folder);
  const handler = new Executioner(place, evidence);
  const clock = wrapPort("clock", systemClock, handler);
  const ids = wrapPort("ids", systemIds, handler);
  const open = () => SqliteStore.open({ path: join(folder, "test.db"), clock, ids });
  const store = wrapPort("store", handler.sync<Store>({ point: "store.open", args: [] }, open), handler);
  const agent = wrapPort(
    "agent",
    createAgent(
      story,
      (entry) => evidence.ledger.write(entry),
      (tool) => wrapPort("tool", tool, handler),
    ),
    handler,
  );
  // So short that a tool outlives a heartbeat, and that nobody waits long for a deadline.
  const waker = { heartbeatMs: 5, pollMs: 20, onFailure: (_: unknown, error: unknown) => fail(error) };
  const node = startNode({ store, clock, ids, agents: new Map([[agent.name, agent]]), waker });
  await playPerson(node, story, evidence, answerTo);
  await node.stop();
  await store.close();
  process.stdout.write(`${JSON.stringify({ trace: handler.trace })}\n`);
}

function fail(error: unknown): void {
  console.error(error);
  process.exit(1);
}

const [folder, name, place] = process.argv.slice(2);
const story: Story | undefined = STORIES[name as StoryName];
if (!folder || !story) fail(`usage: worker-process.ts <folder> <${Object.keys(STORIES).join(" | ")}> [17:before]`);
else {
  setTimeout(() => fail(`not over after ${LIFE_MAX_MS} ms`), LIFE_MAX_MS).unref();
  main(folder, story, place).catch(fail);
}
