/**
 * An agent that is a function: it asks, builds, and deploys when somebody has approved. Run it again and again:
 *
 *   npx node examples/code-agent.ts                  it asks where to, and the program ends
 *   npx node examples/code-agent.ts answer staging   it builds, asks whether to deploy, and the program ends
 *   npx node examples/code-agent.ts approve          it deploys
 *
 * Each time the function is run again from the log: what has been done answers at once and is not done again.
 * In a program of your own the import is `from "holdpoint"`.
 */
import { z } from "zod";
import {
  type Answer,
  CallDenied,
  createCodeAgent,
  defineAgent,
  defineTool,
  isOver,
  openRequests,
  type Principal,
  requestId,
  SqliteStore,
  startNode,
  systemClock,
  systemIds,
  type Task,
} from "../src/index.ts";

const deploy = defineTool({
  name: "deploy",
  description: "Puts an image into an environment.",
  parameters: z.object({ image: z.string(), environment: z.enum(["staging", "production"]) }),
  requiresApproval: true, // this line is the gate
  risk: "high",
  prompt: ({ image, environment }) => `Deploy ${image} to ${environment}?`,
  run: ({ image, environment }) => `${image} runs in ${environment}`,
});

// In a module of its own this is the default export, and holdpoint.yaml names it: { type: code, module: ./deployer.js }.
const deployer = defineAgent(
  async ({ ask, step, tool }) => {
    const { values } = await ask("where", { question: "Which environment?", choices: ["staging", "production"] });
    const image = await step("build", async () => {
      console.log("… building");
      return "shop:1.4.2";
    });
    try {
      return `${await tool("deploy", deploy, { image, environment: values.answer })}.`;
    } catch (error) {
      if (error instanceof CallDenied) return `${image} was built, and not deployed: ${error.reason}.`;
      throw error;
    }
  },
  { description: "Builds the shop and deploys it.", tools: [deploy] },
);

const tenant = "default";
const ana: Principal = { name: "ana", issuer: "example", tenant, via: "example" };
const [command = "ask", value = "", path = "code-agent.db"] = process.argv.slice(2);

const store = SqliteStore.open({ path, clock: systemClock, ids: systemIds });
const agent = createCodeAgent("deployer", deployer, { store, clock: systemClock });
const agents = new Map([[agent.name, agent]]);
const { runtime, stop } = startNode({ store, clock: systemClock, ids: systemIds, agents });

const [waiting] = (await store.listOpenRequests({ tenant })).items;
const task = await (waiting
  ? decide(requestId(waiting.taskId, waiting.n), toAnswer(command, value, waiting.digest))
  : submit("Deploy the shop."));
console.log(task.end ? `the agent says: ${task.end.message}` : `◷ ${openRequests(task)[0]?.prompt}`);
await stop();
await store.close();

function toAnswer(choice: string, text: string, digest: Answer["digest"]): Answer {
  if (choice === "answer") return { choice, values: { answer: text } };
  if (choice === "approve" || choice === "deny") return { choice, ...(digest ? { digest } : {}), reason: text };
  throw new Error("somebody is asked: answer <environment>, approve, or deny <reason>");
}

async function submit(text: string): Promise<Task> {
  const rests = next();
  const message = { messageId: systemIds.token(), role: "user", parts: [{ text }] } as const;
  const sent = await runtime.submit({ tenant, agent: "deployer", principal: ana, message });
  if (!sent.ok) throw new Error(JSON.stringify(sent.refusal));
  return rests;
}

async function decide(id: string, answer: Answer): Promise<Task> {
  const rests = next();
  const decided = await runtime.choose(tenant, id, answer, ana);
  if (!decided.ok) throw new Error(JSON.stringify(decided.refusal));
  return rests;
}

/** The task as it is when it next waits or is over. */
function next(): Promise<Task> {
  return new Promise((resolve) =>
    runtime.onChange((task) => (isOver(task) || openRequests(task).length > 0) && resolve(task)),
  );
}
