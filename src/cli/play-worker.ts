/** The first worker of the play, in a process of its own: it works until its task waits for a person, and is killed. */
import { systemClock } from "../ports/clock.ts";
import { systemIds } from "../ports/ids.ts";
import { startNode } from "../runtime/node.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { openRequests } from "../task/task.ts";
import { createPlayAgent, PLAY_AGENT } from "./play-agent.ts";

const [path = "", workspace = ""] = process.argv.slice(2);
const store = SqliteStore.open({ path, clock: systemClock, ids: systemIds });
const agent = createPlayAgent(workspace);
const { runtime } = startNode({ store, clock: systemClock, ids: systemIds, agents: new Map([[agent.name, agent]]) });
runtime.onChange((task) => {
  const [request] = openRequests(task);
  if (request) process.stdout.write(`${JSON.stringify({ taskId: task.key.id, requestId: request.id })}\n`);
});
await runtime.submit({
  tenant: "default",
  agent: PLAY_AGENT,
  principal: { name: "you", issuer: "play", tenant: "default", via: "dev" },
  message: { messageId: systemIds.uuid(systemClock.nowMs()), role: "user", parts: [{ text: "Tidy up the reports." }] },
});
