import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SERVER_CONFIG, startTask, startWorld, TOKENS, type TokenName, tokenOf, type World } from "./world.ts";

/** A2A's routes, also with the tenant before the path. */
const A2A_ROUTES = (["/a2a/:agent", "/a2a/:agent/:tenant"] as const).flatMap(
  (prefix) =>
    [
      ["POST", `${prefix}/message:send`, ["task:submit", "decide"]],
      ["POST", `${prefix}/message:stream`, ["task:submit", "decide"]],
      ["GET", `${prefix}/tasks`, ["task:read"]],
      ["GET", `${prefix}/tasks/:name`, ["task:read"]],
      ["POST", `${prefix}/tasks/:name`, ["task:submit"]],
      ["GET", `${prefix}/tasks/:name/pushNotificationConfigs`, ["task:submit"]],
      ["POST", `${prefix}/tasks/:name/pushNotificationConfigs`, ["task:submit"]],
      ["GET", `${prefix}/tasks/:name/pushNotificationConfigs/:config`, ["task:submit"]],
      ["DELETE", `${prefix}/tasks/:name/pushNotificationConfigs/:config`, ["task:submit"]],
      ["GET", `${prefix}/extendedAgentCard`, ["task:read"]],
      ["GET", `${prefix}/card`, ["task:read"]],
    ] as const,
);

/** Every route, and the scopes of which one opens it. A route that is not here fails the test below. */
const ROUTES = [
  ["GET", "/api/requests", ["task:read"]],
  ["GET", "/api/requests:watch", ["task:read"]],
  ["GET", "/api/requests/:id", ["task:read"]],
  ["POST", "/api/requests/:id/decision", ["decide"]],
  ["GET", "/api/agents", ["task:read"]],
  ["GET", "/api/tasks", ["task:read"]],
  ["POST", "/api/tasks", ["task:submit"]],
  ["GET", "/api/tasks/:name", ["task:read"]],
  ["POST", "/api/tasks/:name", ["task:submit"]],
  ...A2A_ROUTES,
  ["GET", "/v1/agents", ["task:read"]],
  ["POST", "/v1/agents/:agent/message:send", ["task:submit", "decide"]],
  ["POST", "/v1/agents/:agent/message:stream", ["task:submit", "decide"]],
  ["GET", "/v1/agents/:agent/tasks", ["task:read"]],
  ["GET", "/v1/agents/:agent/tasks/:name", ["task:read"]],
  ["POST", "/v1/agents/:agent/tasks/:name", ["task:submit"]],
] as const;
/** Its methods ask for scopes one by one: `test/a2a`. */
const RPC = "POST /a2a/:agent";
const CARDS = ["GET /.well-known/agent-card.json", "GET /a2a/:agent/.well-known/agent-card.json"];
const OPEN = ["GET /healthz", "GET /readyz", ...CARDS];

let world: World;
beforeEach(() => {
  world = startWorld();
});
afterEach(() => world.stop());

const VALUES = { id: "input-x-1", name: "x:cancel", agent: "janitor", tenant: "default", config: "c" };
const fill = (path: string) =>
  Object.entries(VALUES).reduce((filled, [name, value]) => filled.replace(`:${name}`, value), path);

test("every route is in the table", () => {
  const found = new Set(world.app.routes.filter(({ method }) => method !== "ALL").map((r) => `${r.method} ${r.path}`));
  expect([...found].sort()).toEqual([...ROUTES.map(([method, path]) => `${method} ${path}`), RPC, ...OPEN].sort());
});

describe.each(ROUTES)("%s %s", (method, path, opening) => {
  const body = method === "POST" ? { body: {} } : {};

  test.each([
    ["no token", null],
    ["a wrong token", "wrong"],
    ["a token with more at its end", `${tokenOf("ana")}x`],
    ["an empty token", ""],
  ])("with %s is 401", async (_what, token) => {
    const response = await world.call(method, fill(path), { token, ...body });
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toContain("Bearer");
    expect(await response.json()).toMatchObject({ error: { code: "token-required" } });
  });

  test.each(Object.entries(TOKENS))("with the token of %s asks for exactly its scope", async (name, { scopes }) => {
    const response = await world.call(method, fill(path), { token: tokenOf(name as TokenName), ...body });
    await response.body?.cancel();
    const may = opening.some((scope) => (scopes as readonly string[]).includes(scope));
    expect(response.status === 403).toBe(!may);
    expect(response.status).not.toBe(401);
  });

  test("with the owner's token is answered", async () => {
    const response = await world.call(method, fill(path), body);
    await response.body?.cancel();
    expect([401, 403, 500]).not.toContain(response.status);
  });
});

test.each([
  "/",
  "/nothing",
  "/api",
  "/api/",
  "/api/nothing",
  "/healthz/",
  "/healthzz",
  "/metrics",
  "//healthz",
  "/%00",
])("without a token nobody learns what is at %s", async (path) => {
  for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]) {
    expect([method, (await world.call(method, path, { token: null })).status]).toEqual([method, 401]);
  }
});

test("health checks need no token", async () => {
  expect((await world.call("GET", "/healthz", { token: null })).status).toBe(200);
  expect((await world.call("GET", "/readyz", { token: null })).status).toBe(200);
  world.draining.abort();
  expect((await world.call("GET", "/readyz", { token: null })).status).toBe(503);
});

test.each([
  ["token=owner-token-for-tests in the address", "/api/agents?token=owner-token-for-tests", {}],
  ["another scheme", "/api/agents", { authorization: "Basic owner-token-for-tests" }],
  ["the token alone", "/api/agents", { authorization: "owner-token-for-tests" }],
  ["a cookie", "/api/agents", { cookie: "token=owner-token-for-tests" }],
])("%s is no credential", async (_what, path, headers) => {
  expect((await world.call("GET", path, { token: null, headers })).status).toBe(401);
});

describe("another tenant", () => {
  test("gets the same answer for what is not there and for what is not its own", async () => {
    const { taskId, requestId } = await startTask(world, "janitor");
    const question = (await startTask(world, "asker")).requestId;
    const token = tokenOf("stranger");
    const ask = async (method: string, path: string, body?: unknown) => {
      const response = await world.call(method, path, { token, body });
      return [response.status, await response.text()];
    };
    const decision = { decision: "deny" };
    const misfit = { decision: "answer", values: {} };
    const missing = "01990000-0000-7000-8000-000000000000";
    for (const [method, mine, none, body] of [
      ["GET", `/api/tasks/${taskId}`, `/api/tasks/${missing}`, undefined],
      ["GET", `/api/tasks/${taskId}:watch`, `/api/tasks/${missing}:watch`, undefined],
      ["POST", `/api/tasks/${taskId}:cancel`, `/api/tasks/${missing}:cancel`, {}],
      ["GET", `/api/requests/${requestId}`, `/api/requests/input-${missing}-1`, undefined],
      ["POST", `/api/requests/${requestId}/decision`, `/api/requests/input-${missing}-1/decision`, decision],
      // An answer that does not fit must not tell that there is a question.
      ["POST", `/api/requests/${question}/decision`, `/api/requests/input-${missing}-1/decision`, misfit],
    ] as const) {
      const answer = await ask(method, mine, body);
      expect(answer).toEqual(await ask(method, none, body));
      expect(answer[0]).toBe(404);
    }
    expect(await ask("GET", "/api/requests")).toEqual([200, '{"requests":[]}']);
    expect(await ask("GET", "/api/tasks")).toEqual([200, '{"tasks":[]}']);
    expect((await world.runtime.load({ tenant: "default", id: taskId })).task?.requests[0]?.decision).toBeUndefined();
  });
});

describe("the name in the address", () => {
  test.each([
    ["127.0.0.1:4141", 200],
    ["localhost:9", 200],
    ["LOCALHOST", 200],
    ["[::1]:4141", 200],
    ["holdpoint.example.com", 200],
    ["holdpoint.example.com:443", 200],
    ["evil.example.com", 421],
    ["127.0.0.1.evil.example.com", 421],
    ["localhost.evil.example.com:4141", 421],
    ["127.0.0.1@evil.example.com", 421],
    ["", 421],
  ])("%j is %i", async (host, status) => {
    expect((await world.call("GET", "/api/agents", { headers: { host } })).status).toBe(status);
  });
});

describe("the origin of a page", () => {
  test.each([
    ["http://127.0.0.1:4141", 200],
    ["http://localhost:3000", 200],
    ["http://localhost:3001", 403],
    ["http://127.0.0.1:9999", 403],
    ["http://evil.example.com", 403],
    ["http://127.0.0.1:4141.evil.example.com", 403],
    ["null", 403],
  ])("%j is %i", async (origin, status) => {
    const headers = { origin, host: "127.0.0.1:4141" };
    expect((await world.call("GET", "/api/agents", { headers })).status).toBe(status);
    expect((await world.call("POST", "/api/tasks", { headers, body: {} })).status).toBe(status === 200 ? 422 : 403);
  });

  test("only pages that the config names may read the answers, and never everybody", async () => {
    const ask = async (origin: string) =>
      (await world.call("GET", "/api/agents", { headers: { origin } })).headers.get("access-control-allow-origin");
    expect(await ask("http://localhost:3000")).toBe("http://localhost:3000");
    expect(await ask("http://evil.example.com")).toBeNull();
    expect(await ask("http://127.0.0.1:4141")).toBeNull();
  });

  test("a preflight of a page that the config names needs no token; any other gets nothing", async () => {
    const preflight = (origin: string) =>
      world.call("OPTIONS", "/api/tasks", {
        token: null,
        headers: { origin, "access-control-request-method": "POST" },
      });
    expect((await preflight("http://localhost:3000")).status).toBe(204);
    expect((await preflight("http://evil.example.com")).status).toBe(403);
  });
});

describe("how fast one principal may ask", () => {
  test("is bounded, and others are not held up", async () => {
    const slow = startWorld({ server: { ...SERVER_CONFIG, limits: { rate: 1, burst: 3 } } });
    const statuses = [];
    for (let i = 0; i < 5; i++) statuses.push((await slow.call("GET", "/api/agents")).status);
    expect(statuses).toEqual([200, 200, 200, 429, 429]);
    expect((await slow.call("GET", "/api/agents", { token: tokenOf("reader") })).status).toBe(200);
    await slow.stop();
  });
});

describe("what comes in", () => {
  test.each([
    ["no JSON type", { "content-type": "text/plain" }, "{}", 415],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }, "agent=a", 415],
    ["no JSON", {}, "{", 400],
    ["nothing", {}, "", 400],
    ["a list", {}, "[]", 422],
    ["a key twice", {}, '{"agent":"janitor","agent":"x","message":"go"}', 422],
    ["a prototype", {}, '{"agent":"janitor","message":"go","__proto__":{}}', 422],
    ["an unknown key", {}, '{"agent":"janitor","message":"go","principal":"root"}', 422],
    ["a nesting without end", {}, `${"[".repeat(200_000)}`, 400],
    ["a nesting too deep", {}, `{"agent":${"[".repeat(100)}${"]".repeat(100)}}`, 422],
    ["half a character", {}, '{"agent":"janitor","message":"\\ud800"}', 422],
    ["an unknown agent", {}, '{"agent":"nobody","message":"go"}', 404],
    ["too much", {}, `{"agent":"${"a".repeat(1024 * 1024)}"}`, 413],
  ])("%s is refused", async (_what, headers, body, status) => {
    const response = await world.call("POST", "/api/tasks", { headers, body });
    expect([response.status, (await response.json()) as object]).toEqual([
      status,
      { error: expect.objectContaining({ code: expect.any(String), message: expect.any(String) }) },
    ]);
    expect((await (await world.call("GET", "/api/tasks")).json()) as object).toEqual({ tasks: [] });
  });

  test("a query says which part is wrong", async () => {
    for (const query of ["limit=0", "limit=201", "limit=x", "status=closed", "bogus=1"]) {
      const response = await world.call("GET", `/api/requests?${query}`);
      expect([query, response.status]).toEqual([query, 422]);
    }
  });
});

test("a broken world is 503 when waiting helps, and 500 without details when nobody knows", async () => {
  const { HoldpointError } = await import("../../src/errors.ts");
  const list = world.runtime.store.listTasks;
  world.runtime.store.listTasks = async () => {
    throw new HoldpointError("store-unavailable", "the database is away");
  };
  const busy = await world.call("GET", "/api/tasks");
  expect([busy.status, busy.headers.get("retry-after")]).toEqual([503, "1"]);
  world.runtime.store.listTasks = async () => {
    throw new Error("password=hunter2");
  };
  const broken = await world.call("GET", "/api/tasks");
  expect([broken.status, await broken.text()]).toEqual([500, expect.not.stringContaining("hunter2")]);
  expect(world.errors).toHaveLength(1);
  world.runtime.store.listTasks = list;
});
