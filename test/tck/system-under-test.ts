/**
 * A whole server for the TCK, in memory, on a loopback port. The TCK has no token, so the listener adds the owner's to
 * whatever comes without one: nothing of this is a mode of the product.
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import type { ServerConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/ports/clock.ts";
import { systemIds } from "../../src/ports/ids.ts";
import { startNode } from "../../src/runtime/node.ts";
import { createApp } from "../../src/server/app.ts";
import { MemoryStore } from "../../src/testing/index.ts";
import { createTckAgent, TCK_AGENT } from "./agent.ts";

export interface SystemOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** 0.3 is spoken too, and every message that names no part of the TCK pauses. */
  readonly legacy?: boolean;
  readonly profile?: ServerConfig["a2a"]["profile"];
  readonly inputModes?: readonly string[];
  /** Where the TCK listens for push notifications, besides loopback. */
  readonly webhookHost?: string;
  readonly workMs?: number;
}

export interface SystemUnderTest {
  /** Where the card is. */
  readonly url: string;
  /** Where the agent is. */
  readonly agentUrl: string;
  close(): Promise<void>;
}

/** The TCK waits twice two seconds for a task that works. */
const WORK_MS = 4_500;
const HOST = "127.0.0.1";

export async function startSystemUnderTest(options: SystemOptions): Promise<SystemUnderTest> {
  const { port, legacy = false, inputModes = ["*/*"], workMs = WORK_MS } = options;
  const store = new MemoryStore(systemClock);
  const agent = createTckAgent({ store, clock: systemClock, workMs, pausesUnknown: legacy });
  const agents = new Map([[agent.name, agent]]);
  const node = startNode({ store, clock: systemClock, ids: systemIds, agents });
  const draining = new AbortController();
  const token = `${systemIds.token()}${systemIds.token()}`;
  const app = createApp({
    runtime: node.runtime,
    server: configOf(options),
    clock: systemClock,
    ids: systemIds,
    ownerToken: token,
    host: HOST,
    draining: draining.signal,
    inputModes,
    onError: (error) => console.error(error),
  });
  const answer = async (request: Request) => {
    const response = await app.fetch(request);
    return legacy && request.url.endsWith("/.well-known/agent-card.json") ? withoutCredentials(response) : response;
  };
  const listener = getRequestListener(answer);
  const server = createServer((request, response) => {
    addToken(request, token);
    void listener(request, response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, HOST, resolve);
  });
  const url = `http://${HOST}:${(server.address() as AddressInfo).port}`;
  return {
    url,
    agentUrl: `${url}/a2a/${TCK_AGENT}`,
    async close() {
      draining.abort();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await node.stop();
      await store.close();
    },
  };
}

/** A wrong token stays wrong. */
function addToken(request: IncomingMessage, token: string): void {
  if (request.headers.authorization !== undefined) return;
  request.rawHeaders.push("authorization", `Bearer ${token}`);
}

/**
 * Here no credential is needed, and the 0.3 TCK holds a card to its word: a scheme, or an extended card, that is declared
 * must be refused without one.
 */
async function withoutCredentials(response: Response): Promise<Response> {
  if (response.status !== 200) return response;
  const card = (await response.json()) as Record<string, unknown>;
  for (const name of ["security", "securitySchemes", "securityRequirements", "supportsAuthenticatedExtendedCard"]) {
    delete card[name];
  }
  const capabilities = { ...(card.capabilities as object), extendedAgentCard: undefined };
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  return new Response(JSON.stringify({ ...card, capabilities }), { headers });
}

/** The TCK uses message ids again and asks quickly; its webhook is on this machine. */
function configOf({ legacy = false, profile = "1.0.0", webhookHost }: SystemOptions): ServerConfig {
  return {
    host: HOST,
    port: undefined,
    grpcPort: undefined,
    allowedHosts: [],
    allowedOrigins: [],
    auth: { tokens: [], jwt: undefined, selfApproval: "allow" },
    answersWithoutId: "allow",
    a2a: { profile, legacy, messageIds: "ignored" },
    push: { allow: ["localhost", "127.0.0.1", ...(webhookHost === undefined ? [] : [webhookHost])] },
    limits: { rate: 10_000, burst: 10_000 },
    agUi: { tanstack: false },
    trustedProxy: false,
  };
}
