/** Push notifications: their configurations, and what arrives at a webhook on this machine. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { type SystemUnderTest, startSystemUnderTest } from "../tck/system-under-test.ts";
import { CLIENTS, type Client, describeItem, type Received, startPaused, tckMessage } from "./client.ts";
import { expectShape, requirement } from "./requirement.ts";
import { StreamResponse } from "./shapes.ts";

let system: SystemUnderTest;
let webhook: Server;
let webhookUrl: string;
const arrived: { authorization: string | undefined; type: string | undefined; body: Received }[] = [];

beforeAll(async () => {
  system = await startSystemUnderTest({ port: 0 });
  webhook = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { authorization, "content-type": type } = request.headers;
    arrived.push({ authorization, type, body: JSON.parse(Buffer.concat(chunks).toString()) });
    response.end();
  });
  await new Promise<void>((resolve) => webhook.listen(0, "127.0.0.1", resolve));
  webhookUrl = `http://localhost:${(webhook.address() as AddressInfo).port}/hook`;
});
afterAll(async () => {
  webhook.close();
  await system.close();
});

describe.each(CLIENTS)("over %s", (_name, create) => {
  let client: Client;
  beforeAll(() => {
    client = create(system.agentUrl);
  });
  const config = { id: "tck-push", url: "https://example.com/tck-push-webhook" };

  requirement("PUSH-CREATE-001", "a configuration is kept, and told again", async () => {
    const { id } = await startPaused(client);
    expect((await client.createPush(id, config)).result).toMatchObject(config);
    expect((await client.getPush(id, config.id)).result).toMatchObject(config);
  });

  requirement("PUSH-GET-002", "one that does not exist is not found, on a server that has others", async () => {
    const { id } = await startPaused(client);
    expect((await client.createPush(id, config)).result).toBeDefined();
    const answer = await client.getPush(id, "nonexistent");
    expect([answer.result, answer.body.error.message]).toEqual([undefined, expect.any(String)]);
  });

  requirement("PUSH-LIST-001", "those of a task are listed", async () => {
    const { id } = await startPaused(client);
    await client.createPush(id, config);
    expect((await client.listPush(id)).result.configs).toMatchObject([config]);
  });

  requirement("PUSH-DEL-001", "one that is deleted is gone, and may be deleted again", async () => {
    const { id } = await startPaused(client);
    await client.createPush(id, config);
    for (const _ of [1, 2]) {
      const { body, httpStatus } = await client.deletePush(id, config.id);
      expect([body?.error, httpStatus < 300]).toEqual([undefined, true]);
    }
    expect((await client.getPush(id, config.id)).result).toBeUndefined();
  });

  requirement(
    "PUSH-DELIVER-001",
    "what happens is told to the webhook, in order and with its credentials",
    async () => {
      const authentication = { scheme: "Bearer", credentials: `secret ${client.transport}` };
      const sent = await client.send(tckMessage("input-required"), {
        taskPushNotificationConfig: { id: "hook", url: webhookUrl, authentication },
      });
      const { id } = sent.result.task;
      await client.send(tckMessage("complete-task", { taskId: id }));
      const mine = () => arrived.filter(({ body }) => [body.task?.id, body.statusUpdate?.taskId].includes(id));
      await expect
        .poll(
          () =>
            mine()
              .map(({ body }) => describeItem(body))
              .at(-1),
          { timeout: 5_000 },
        )
        .toMatch(/TASK_STATE_COMPLETED$/);
      for (const { authorization, type, body } of mine()) {
        expect(authorization).toBe(`Bearer ${authentication.credentials}`);
        expect(type).toMatch(/json/);
        expectShape(StreamResponse, body);
      }
    },
  );
});
