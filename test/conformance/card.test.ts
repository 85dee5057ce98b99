/** Agent cards: discovery, structure, protocols, caching, and the extended one. */
import { afterAll, beforeAll, describe, expect } from "vitest";
import { type SystemUnderTest, startSystemUnderTest } from "../tck/system-under-test.ts";
import { CLIENTS, createRestClient, createRpcClient, type Received, tckMessage } from "./client.ts";
import { expectShape, requirement } from "./requirement.ts";
import { AgentCard } from "./shapes.ts";

let system: SystemUnderTest;
let card: Received;
const CARD = "/.well-known/agent-card.json";

beforeAll(async () => {
  system = await startSystemUnderTest({ port: 0 });
  card = await (await fetch(`${system.url}${CARD}`)).json();
});
afterAll(() => system.close());

requirement("CARD-DISC-001", "the card is there for everybody, at the root and at the agent", async () => {
  for (const url of [`${system.url}${CARD}`, `${system.agentUrl}${CARD}`]) {
    const response = await fetch(url);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
    expect(await response.json()).toEqual(card);
  }
});

requirement("CARD-STRUCT-001", "it has every required field and none that A2A does not know", async () => {
  expectShape(AgentCard, card);
  const references = card.securityRequirements.flatMap(({ schemes }: Received) => Object.keys(schemes));
  expect(Object.keys(card.securitySchemes)).toEqual(expect.arrayContaining(references));
});

requirement("CARD-PROTO-001", "it declares JSON-RPC and HTTP+JSON of 1.0", async () => {
  expect(
    card.supportedInterfaces.map(({ protocolBinding, protocolVersion }: Received) => [
      protocolBinding,
      protocolVersion,
    ]),
  ).toEqual([
    ["JSONRPC", "1.0"],
    ["HTTP+JSON", "1.0"],
  ]);
});

requirement("CARD-PROTO-002", "each interface answers at the address that it declares", async () => {
  for (const { url, protocolBinding } of card.supportedInterfaces) {
    const client = protocolBinding === "JSONRPC" ? createRpcClient(url) : createRestClient(url);
    const { result } = await client.send(tckMessage("complete-task"));
    expect(result.task.status.state).toBe("TASK_STATE_COMPLETED");
  }
});

requirement("CARD-CACHE-001", "it may be cached, and costs nothing while it has not changed", async () => {
  const { headers } = await fetch(`${system.url}${CARD}`);
  expect(headers.get("cache-control")).toMatch(/max-age=\d+/);
  expect(headers.get("last-modified")).toMatch(/GMT$/);
  const etag = headers.get("etag") ?? "";
  const again = await fetch(`${system.url}${CARD}`, { headers: { "if-none-match": etag } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

describe.each(CLIENTS)("the extended card over %s", (_name, create) => {
  requirement("CARD-EXT-001", "it is there for whoever has a token", async () => {
    expect(card.capabilities.extendedAgentCard).toBe(true);
    const { result } = await create(system.agentUrl).extendedCard();
    expectShape(AgentCard, result);
    expect(result.name).toBe(card.name);
  });
});

requirement("AUTH-SERVER", "a wrong token is refused before anything else", async () => {
  const headers = { authorization: "Bearer wrong", "a2a-version": "1.0" };
  const { status, headers: answered } = await fetch(`${system.agentUrl}/extendedAgentCard`, { headers });
  expect([status, answered.get("www-authenticate")]).toEqual([401, expect.stringContaining("Bearer")]);
});
