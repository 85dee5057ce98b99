/**
 * Logs as release 0.1.0 stored them. Every later release must still read them: what was paused then is resumed now. Never
 * write the file anew; when the format grows, add logs of the new release beside these.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { chainHash } from "./digest.ts";
import { decodeEvent, type FactType, type TaskKey } from "./event.ts";
import { replay } from "./log.ts";

interface StoredLog {
  readonly name: string;
  readonly key: TaskKey;
  readonly events: readonly { seq: number; at: number; hash: string; body: string }[];
  readonly task: object;
}

const { logs } = JSON.parse(readFileSync(new URL("golden-log.json", import.meta.url), "utf8")) as { logs: StoredLog[] };

/** The compiler sees to it that none is forgotten. */
const EVERY_TYPE: Readonly<Record<FactType, true>> = {
  "task-submitted": true,
  "message-received": true,
  "model-replied": true,
  "call-refused": true,
  "request-opened": true,
  "request-decided": true,
  "effect-claimed": true,
  "effect-finished": true,
  "effect-unknown": true,
  "artifact-updated": true,
  "cancel-requested": true,
  "task-completed": true,
  "task-failed": true,
  "task-canceled": true,
  "task-rejected": true,
};

describe.each(logs)("a task that was $name", ({ key, events, task }) => {
  test("is read as it was then", () => {
    const log = events.map(({ seq, at, body }) => decodeEvent(key, seq, at, body));
    // What a later release knows in addition may come to it; nothing may go.
    expect(JSON.parse(JSON.stringify(replay(key, log)))).toMatchObject(task);
  });

  test("keeps its hash chain", () => {
    let previous = "";
    for (const { seq, at, body, hash } of events) {
      expect(chainHash(previous, key, seq, at, body)).toBe(hash);
      previous = hash;
    }
  });
});

test("every type of event is there, and every outcome of a request", () => {
  const bodies = logs.flatMap(({ events }) => events.map(({ body }) => JSON.parse(body)));
  expect(new Set(bodies.map(({ type }) => type))).toEqual(new Set(Object.keys(EVERY_TYPE)));
  const outcomes = bodies.flatMap(({ type, outcome }) => (type === "request-decided" ? [outcome] : []));
  expect(new Set(outcomes)).toEqual(new Set(["approved", "denied", "answered", "expired", "canceled", "superseded"]));
});
