/** Whatever comes in at `/v1/agents`: a task or a precise no, never a fault of ours, and never an approval. */
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startWorld, type World } from "../api/world.ts";

let world: World;
beforeEach(() => {
  world = startWorld({ server: { limits: { rate: 1e9, burst: 1e9 } } });
});
afterEach(() => world.stop());

/** None of these words may approve, so nothing that is made of them may either. */
const word = fc.constantFrom("", "maybe", "disapprove", "approve ✓", "input-x-1", "TASK_STATE_WORKING", "__proto__");
const wild = fc.jsonValue({ maxDepth: 2 }).filter((value) => !/^"?\W*(y|yes|approved?)\W*"?$/im.test(stringsOf(value)));
const stringsOf = (value: unknown): string =>
  typeof value === "object" && value !== null ? Object.values(value).map(stringsOf).join("\n") : String(value);
const leaf = fc.oneof(word, wild, fc.constantFrom(null, true, -1, 1e308, [], {}));
const mostly = <T>(good: fc.Arbitrary<T>) =>
  fc.oneof({ arbitrary: good as fc.Arbitrary<unknown>, weight: 9 }, { arbitrary: leaf, weight: 1 });
const answer = fc.record({ decision: leaf, request_id: leaf, type: leaf, data: leaf }, { requiredKeys: [] });
const part = fc.oneof(
  { arbitrary: fc.record({ text: mostly(word) }), weight: 6 },
  { arbitrary: fc.record({ data: mostly(answer) }), weight: 3 },
  { arbitrary: fc.record({ text: leaf, data: leaf, url: leaf, metadata: leaf }, { requiredKeys: [] }), weight: 1 },
);

test("generated requests to a paused task change nothing that only a person may change", async () => {
  const begun = await world.call("POST", "/v1/agents/janitor/message:send", {
    body: { request: { role: "user", parts: [{ text: "go" }] } },
  });
  const { task } = (await begun.json()) as { task: { id: string } };
  const request = fc.record({
    role: mostly(fc.constantFrom("user", "ROLE_USER")),
    parts: mostly(fc.array(part, { minLength: 1, maxLength: 3 })),
    taskId: mostly(fc.constant(task.id)),
    contextId: mostly(fc.constant(undefined)),
    messageId: mostly(fc.constant(undefined)),
  });
  const body = fc.oneof(
    { arbitrary: fc.record({ request, configuration: fc.constant({ blocking: false }) }), weight: 6 },
    { arbitrary: fc.record({ request: leaf, configuration: leaf }, { requiredKeys: [] }), weight: 1 },
    { arbitrary: leaf, weight: 1 },
  );
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(body, async (sent) => {
      const response = await world.call("POST", "/v1/agents/janitor/message:send", { body: JSON.stringify(sent) });
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      const told = (await response.json()) as { error?: unknown; task?: object };
      if (response.status === 200) expect(told.task).toBeDefined();
      else expect([[400, 404], typeof told.error]).toEqual([expect.arrayContaining([response.status]), "string"]);
    }),
    { numRuns: 2000 },
  );
  expect(world.stage.ran).toEqual([]);
  expect(world.errors).toEqual([]);
  // Both ways were taken, so both are tested.
  expect(statuses.get(200)).toBeGreaterThan(100);
  expect(statuses.get(400)).toBeGreaterThan(100);
  const { task: now } = await world.runtime.load({ tenant: "default", id: task.id });
  expect(now?.requests[0]?.decision?.outcome).not.toBe("approved");
});

test.each([
  ["no JSON type", { "content-type": "text/plain" }, "{}", 415],
  ["no JSON", {}, "{", 400],
  ["nothing", {}, "", 400],
  ["a key twice", {}, '{"request":{"role":"user","role":"user","parts":[{"text":"a"}]}}', 400],
  ["a prototype", {}, '{"request":{"role":"user","parts":[{"data":{"__proto__":{}}}]}}', 400],
  ["half a character", {}, '{"request":{"role":"user","parts":[{"text":"\\ud800"}]}}', 400],
  ["a nesting without end", {}, "[".repeat(200_000), 400],
  ["too much", {}, `{"request":"${"a".repeat(1024 * 1024)}"}`, 413],
])("%s is refused", async (_what, headers, body, status) => {
  const response = await world.call("POST", "/v1/agents/janitor/message:send", { headers, body });
  expect([response.status, await response.json()]).toMatchObject([status, { error: expect.anything() }]);
  expect((await world.runtime.store.listTasks({ tenant: "default" })).items).toEqual([]);
});

test.each([
  ["GET", "/v1/agents/janitor/tasks?pageToken=x"],
  ["GET", "/v1/agents/janitor/tasks?status=CANCELLED"],
  ["GET", "/v1/agents/janitor/tasks/%00"],
  ["GET", "/v1/agents/janitor/tasks/:subscribe"],
  ["GET", "/v1/agents/janitor/tasks/x:nothing"],
  ["POST", "/v1/agents/janitor/tasks/x"],
  ["POST", "/v1/agents/janitor/tasks/:cancel"],
  ["GET", `/v1/agents/${"x".repeat(5000)}/tasks`],
  ["GET", "/v1/agents/__proto__/tasks"],
  ["GET", "/v1/agents/%E0%A4%A/tasks"],
])("%s %s is a plain no", async (method, path) => {
  const response = await world.call(method, path, method === "POST" ? { body: {} } : {});
  expect([400, 404]).toContain(response.status);
  expect(world.errors).toEqual([]);
});
