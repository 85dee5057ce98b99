/**
 * One of several working nodes on a PostgreSQL. It can be made to hold on in the middle of a model call or a tool,
 * until it is told to go on: there it can be frozen, killed or overtaken.
 */
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import type { Agent } from "../../src/runtime/agent.ts";
import type { Answer } from "../../src/runtime/answers.ts";
import { type HoldpointNode, startNode } from "../../src/runtime/node.ts";
import { PostgresStore } from "../../src/store/postgres.ts";
import type { Outcome } from "../../src/task/request.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { openEvidence } from "./evidence.ts";
import { serve, tell } from "./line-protocol.ts";
import { AGENT, createAgent, createPrincipal, OUTCOME_OF, type Story, TENANT } from "./story.ts";

export interface NodeOptions {
  readonly name: string;
  readonly url: string;
  /** Where the evidence is kept. */
  readonly folder: string;
  readonly story: Story;
  readonly leaseMs?: number;
  /** Where it holds on: "think", or the names of tools, which have then acted already. */
  readonly holds?: readonly string[];
}

/** What one decider was told: that he has decided, or who did. */
export type Told =
  | { readonly decider: string; readonly won: Outcome }
  | { readonly decider: string; readonly refused: string; readonly winner?: string; readonly outcome?: Outcome };

let store: PostgresStore;
let node: HoldpointNode;
let goOn = () => {};

const operations = {
  async start(options: NodeOptions): Promise<void> {
    const { name, url, folder, story, leaseMs = 1000, holds = [] } = options;
    const { ledger } = openEvidence(folder);
    store = await PostgresStore.open({ url, ids: systemIds });
    const holdTool = (tool: Tool): Tool => (holds.includes(tool.name) ? holdAfterActing(tool) : tool);
    const agent = createAgent(story, (entry) => ledger.write(entry), holdTool);
    const said: Agent = {
      ...agent,
      async think(task, signal) {
        if (holds.includes("think")) await hold("think");
        const reply = await agent.think(task, signal);
        return { ...reply, text: `${name}: ${reply.text}` };
      },
    };
    const waker = { leaseMs, heartbeatMs: leaseMs / 4, pollMs: 50 };
    node = startNode({ store, clock: systemClock, ids: systemIds, agents: new Map([[AGENT, said]]), waker });
  },

  goOn(): void {
    goOn();
  },

  /** Several people decide the same request at the same moment. */
  decide({ requestId, deciders }: { requestId: string; deciders: Record<string, Answer> }): Promise<Told[]> {
    return Promise.all(Object.entries(deciders).map(([decider, answer]) => decide(requestId, decider, answer)));
  },

  async stop(): Promise<void> {
    await node.stop();
    await store.close();
  },
};

export type NodeOperations = typeof operations;

async function decide(requestId: string, decider: string, answer: Answer): Promise<Told> {
  const result = await node.runtime.choose(TENANT, requestId, answer, createPrincipal(decider));
  if (result.ok) return { decider, won: OUTCOME_OF[answer.choice] };
  const { refusal } = result;
  if (refusal.code !== "already-decided") return { decider, refused: refusal.code };
  const { principal, outcome } = refusal.decision;
  return { decider, refused: refusal.code, winner: principal.name, outcome };
}

function holdAfterActing(tool: Tool): Tool {
  return {
    ...tool,
    async run(work) {
      const finished = await tool.run(work);
      await hold(tool.name);
      return finished;
    },
  };
}

async function hold(where: string): Promise<void> {
  const told = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  tell("holds", where);
  await told;
}

await serve(operations);
