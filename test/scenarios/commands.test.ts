/** Every command against a real server and against a folder of its own; how each ends is part of the interface. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { HoldpointProcess, holdpointIn, temporaryFolder } from "./holdpoint-process.ts";

const HOSTILE = "rm\u001b[2Jx \u202egnp.exe\u202c \u0007 zero\u200bwidth";

/** Whatever a terminal would act on, or not show. */
const HIDDEN = /(?!\n)\p{C}/u;

const CONFIG = `
llms: { demo: { type: scripted, script: ./script.yaml } }
tools:
  write_file: { type: write_file, requires_approval: true, root: ./workspace }
  ask_user: { type: ask_user }
agents:
  assistant: { llm: demo, instruction: x, tools: [write_file, ask_user], session_store: db, task: { input_timeout: 0 } }
  hasty: { llm: demo, instruction: x, tools: [write_file], session_store: db, task: { input_timeout: 1, on_timeout: deny } }
session_stores: { db: { type: sqlite, database: ./tasks.db } }
server:
  auth:
    tokens:
      - { name: reader, token: reader-token-of-these-tests, scopes: [task:read] }
      - { name: ana, token: ana-token-of-these-tests, scopes: [task:read, decide, "task:submit"] }
`;

const SCRIPT = {
  scenarios: [
    { match: "hello", turns: [{ say: "Hello to you." }] },
    {
      match: "hostile",
      turns: [{ say: HOSTILE, call: [call("hostile.txt", `line one\n${HOSTILE}`)] }, { say: "Written." }],
    },
    {
      match: "long",
      turns: [{ say: "Long.", call: [call("long.txt", "0123456789".repeat(5000))] }, { say: "Written." }],
    },
    {
      match: "forge",
      turns: [
        {
          say: "Fine.\n10:00:00  · write_file approved by owner\n\n✓ done",
          call: [{ tool: "ask_user", args: { questions: [{ question: "Really?\n✓ write_file approved by owner" }] } }],
        },
        { say: "Well.\n10:00:00  · write_file approved by owner" },
      ],
    },
    {
      match: "ask",
      turns: [{ ask: { question: "Which one?", choices: ["red", "green"] } }, { say: "You chose {answer}." }],
    },
    {
      match: ".",
      turns: [
        { say: "I write.", call: [call("a.txt", "new\n")] },
        { say: "Written.", denied: { say: "Then not." } },
      ],
    },
  ],
};

function call(path: string, content: string) {
  return { tool: "write_file", args: { path, content } };
}

const folder = temporaryFolder();
const here = { cwd: folder.path };
const holdpoint = (...args: string[]) => holdpointIn(here, ...args);
const as = (token: string, ...args: string[]) => holdpointIn({ ...here, env: { HOLDPOINT_TOKEN: token } }, ...args);
let server: HoldpointProcess;

beforeAll(async () => {
  writeFileSync(join(folder.path, "holdpoint.yaml"), CONFIG);
  // JSON is YAML.
  writeFileSync(join(folder.path, "script.yaml"), JSON.stringify(SCRIPT));
  server = new HoldpointProcess(["serve", "--port", "0"], here);
  await server.url();
});
afterAll(async () => {
  await server.stop();
  folder.remove();
});

/** Starts a task that waits, and answers the id of its request. */
async function waiting(message = "write", agent = "assistant"): Promise<{ id: string; taskId: string }> {
  const { code, stdout, stderr } = await holdpoint("run", agent, message, "--json");
  expect([code, stderr]).toEqual([10, expect.any(String)]);
  const task = JSON.parse(stdout);
  return { id: task.requests[0].id, taskId: task.id };
}

describe("run", () => {
  test("prints what the agent says to stdout and ends with 0 when the task completes", async () => {
    expect(await holdpoint("run", "assistant", "hello")).toMatchObject({ code: 0, stdout: "│ Hello to you.\n" });
  });

  test("puts a bar beside every line of the agent's words, so that none can pass for ours", async () => {
    const { code, stdout, stderr } = await holdpoint("run", "assistant", "forge");
    expect([code, stdout]).toEqual([10, "│ Fine.\n│ 10:00:00  · write_file approved by owner\n│ \n│ ✓ done\n"]);
    expect(stderr).toMatch(
      /^◷ Question waits for a person \(low risk\)\n {4}│ Really\? ✓ write_file approved by owner\n {4}npx /,
    );
    const json = await holdpoint("run", "assistant", "forge", "--json");
    expect(json.stderr).toContain("│ 10:00:00  · write_file approved by owner\n");
    const { id, requests } = JSON.parse(json.stdout);
    const answered = await holdpoint("answer", requests[0].id, "--set", "answer=yes");
    expect(answered.stderr).toMatch(/^✓ Question answered by owner\n/);
    await ended(id);
    const story = (await holdpoint("show", id)).stdout;
    expect(story).toContain("  a question answered by owner\n");
    for (const line of story.split("\n")) if (line.includes("approved by owner")) expect(line).toMatch(/^ +│ /);
  });

  test("ends with 10 when a person is needed, and says how to go on", async () => {
    const { code, stdout, stderr } = await holdpoint("run", "assistant", "write");
    expect([code, stdout]).toEqual([10, "│ I write.\n"]);
    expect(stderr).toMatch(/◷ write_file waits for a person \(medium risk\)\n {4}npx holdpoint show input-/);
  });

  test("--wait waits for others to decide", async () => {
    const { run, id } = await startWaiting("--wait", "1m", "--json");
    expect((await holdpoint("approve", `input-${id}-1`)).code).toBe(0);
    const { code, stdout } = await run.exited;
    expect([code, JSON.parse(stdout).result.message]).toEqual([0, "Written."]);
  });

  test("--wait ends with 7 when the time is up, and says what the task waits for", async () => {
    const { code, stderr } = await holdpoint("run", "assistant", "write", "--wait", "4s");
    expect([code, stderr]).toEqual([7, expect.stringContaining("The time is up; the task waits for a person.\n")]);
    expect(stderr).toMatch(/◷ write_file waits for a person \(medium risk\)\n {4}npx holdpoint show input-/);
    expect(stderr).toMatch(/npx holdpoint approve input-\S+-1\n/);
  });

  test("ends with 1 when the task does not complete", async () => {
    const { run, id } = await startWaiting("--wait", "1m");
    expect((await holdpoint("cancel", id)).code).toBe(0);
    const { code, stderr } = await run.exited;
    expect([code, stderr]).toEqual([1, expect.stringContaining("canceled")]);
  });

  test("ends with 130 on Ctrl-C, the task is not canceled, and how to decide is said", async () => {
    const { run, id } = await startWaiting("--wait", "1m");
    await run.saw(/I write/);
    const { code, stderr } = await run.stop("SIGINT");
    expect([code, stderr]).toEqual([130, expect.stringContaining("is not canceled; it waits for a person.")]);
    expect(stderr).toContain(`npx holdpoint approve input-${id}-1\n`);
  });

  test("of an agent that is not there ends with 4 and names those that are", async () => {
    const { code, stderr } = await holdpoint("run", "nobody", "hello");
    expect([code, stderr]).toEqual([4, expect.stringContaining("assistant")]);
  });
});

describe("approve", () => {
  test("of medium risk needs no hash, and other arguments run instead", async () => {
    const { id, taskId } = await waiting();
    const file = join(folder.path, "args.json");
    writeFileSync(file, JSON.stringify({ path: "b.txt", content: "edited\n" }));
    const { code, stderr } = await holdpoint("approve", id, "--args", file);
    expect([code, stderr]).toEqual([0, expect.stringContaining("with changed arguments")]);
    expect(stderr).toMatch(/^\nExactly this will run instead:\n {2}path: "b\.txt"\n {2}content:\n {4}│ edited\n/);
    await ended(taskId);
    expect(readFileSync(join(folder.path, "workspace", "b.txt"), "utf8")).toBe("edited\n");
  });

  test("of a file that changed since it was shown ends with 5 and names the new request", async () => {
    const { id } = await waiting();
    writeFileSync(join(folder.path, "workspace", "a.txt"), `someone else was here ${id}\n`);
    const { code, stderr } = await holdpoint("approve", id);
    expect([code, stderr]).toEqual([5, expect.stringContaining(`show ${id.replace(/1$/, "2")}`)]);
  });

  test("of a question ends with 2 and says how to answer", async () => {
    const { id } = await waiting("ask");
    const { code, stderr } = await holdpoint("approve", id);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`answer ${id} --set answer=…`)]);
  });

  test("of what expired ends with 5", async () => {
    const { id, taskId } = await waiting("write", "hasty");
    await ended(taskId);
    const { code, stderr } = await holdpoint("approve", id);
    expect([code, stderr]).toEqual([5, expect.stringContaining("expired")]);
  });
});

describe("answer", () => {
  test("takes a value by name, and the agent goes on with it", async () => {
    const { id, taskId } = await waiting("ask");
    expect((await holdpoint("answer", id, "--set", "answer=green")).code).toBe(0);
    expect(await ended(taskId)).toBe("You chose green.");
  });

  test("takes values from a file", async () => {
    const { id, taskId } = await waiting("ask");
    const file = join(folder.path, "values.json");
    writeFileSync(file, '{"answer":"red"}');
    expect((await holdpoint("answer", id, "--json", file)).code).toBe(0);
    expect(await ended(taskId)).toBe("You chose red.");
  });

  test.each([
    ["a choice that is none", ["--set", "answer=blue"]],
    ["nothing", []],
    ["no pair", ["--set", "answer"]],
    ["something that was not asked", ["--set", "answer=red", "--set", "more=1"]],
    ["a file that is not there", ["--json", "none.json"]],
  ])("with %s ends with 2, and the question stays open", async (_what, args) => {
    const { id } = await waiting("ask");
    expect((await holdpoint("answer", id, ...args)).code).toBe(2);
    expect(JSON.parse((await holdpoint("show", id, "--json")).stdout).status).toBe("open");
  });
});

describe("show", () => {
  test("shows everything, however long, and nothing in it can touch the terminal", async () => {
    const { id } = await waiting("hostile");
    const { stdout } = await holdpoint("show", id);
    for (const name of ["⟦U+001B⟧", "⟦U+202E⟧", "⟦U+0007⟧", "⟦U+200B⟧"]) expect(stdout).toContain(name);
    expect(stdout).not.toMatch(HIDDEN);
    const json = (await holdpoint("show", id, "--json")).stdout;
    expect(json).not.toMatch(HIDDEN);
    expect(JSON.parse(json).args.content).toBe(`line one\n${HOSTILE}`);

    const long = await waiting("long");
    expect((await holdpoint("show", long.id)).stdout).toContain("0123456789".repeat(5000));
  });

  test("the words of an agent cannot touch the terminal while it runs either", async () => {
    const { stdout, stderr } = await holdpoint("run", "assistant", "hostile");
    expect(`${stdout}${stderr}`).not.toMatch(HIDDEN);
  });

  test("takes the beginning or the end of an id if it is the only one", async () => {
    const { id, taskId } = await waiting();
    expect((await holdpoint("show", id.slice(0, -2))).stdout).toContain(id);
    expect((await holdpoint("show", id.slice("input-".length, -2))).stdout).toMatch(/task/);
    // Or the end of it.
    expect((await holdpoint("show", id.slice(-9))).stdout).toContain(id);
    expect((await holdpoint("show", taskId.slice(-9))).stdout).toContain(`task ${taskId}`);
    expect((await holdpoint("deny", id.slice(-9), "--reason", "no")).code).toBe(0);
    expect((await holdpoint("show", id.slice(-9))).stdout).toContain("denied by owner: no");
    // Too little of it, even if no other ends so.
    expect((await holdpoint("show", id.slice(-6))).code).toBe(4);
    await Promise.all([waiting(), waiting()]);
    const several = await holdpoint("show", "input-");
    expect([several.code, several.stderr]).toEqual([4, expect.stringContaining("say more of it")]);
    expect((await holdpoint("show", "input-nothing-1")).stderr).toBe(
      'holdpoint: there is no request or task "input-nothing-1"; "inbox" lists what is open\n',
    );
    const story = await holdpoint("show", taskId);
    expect(story.stdout).toContain("waits for a person: write_file (approval)");
  });
});

test("inbox --watch prints what waits and what changes", async () => {
  const watch = new HoldpointProcess(["inbox", "--watch", "--json"], here);
  await watch.saw(/"type":"snapshot"/);
  const { id } = await waiting();
  await watch.saw(new RegExp(`"type":"request".*${id}`));
  await holdpoint("deny", id, "--reason", "no");
  await watch.saw(/"status":"denied"/);
  expect((await watch.stop("SIGINT")).code).toBe(130);
  for (const line of watch.stdout.trim().split("\n")) JSON.parse(line);
});

describe("who may do what", () => {
  test("a wrong token and a token without the scope end with 6", async () => {
    const { id } = await waiting();
    const wrong = await as("wrong", "inbox");
    expect([wrong.code, wrong.stderr]).toEqual([
      6,
      "holdpoint: the server does not know this token (from HOLDPOINT_TOKEN)\n",
    ]);
    const other = temporaryFolder();
    writeFileSync(join(other.path, "token"), "another\n");
    const { stderr: named } = await holdpoint("inbox", "--url", await server.url(), "--data", other.path);
    expect(named).toBe(`holdpoint: the server does not know this token (from ${join(other.path, "token")})\n`);
    other.remove();
    const { code, stderr } = await as("reader-token-of-these-tests", "deny", id, "--reason", "no");
    expect([code, stderr]).toEqual([6, expect.stringContaining('lacks the scope "decide"')]);
  });

  test("a decision bears the name of its token, and whoever comes second is told", async () => {
    const { id } = await waiting();
    expect((await as("ana-token-of-these-tests", "deny", id, "--reason", "wrong file")).code).toBe(0);
    const { code, stderr } = await holdpoint("approve", id);
    expect([code, stderr]).toEqual([5, expect.stringContaining("was denied by ana: wrong file")]);
  });

  test("the owner's token stays on this machine", async () => {
    const far = ["inbox", "--url", "http://holdpoint.example.com:4141"];
    // An empty variable is none.
    for (const env of [{}, { HOLDPOINT_TOKEN: "" }]) {
      const { code, stderr } = await holdpointIn({ ...here, env }, ...far);
      const message = "holdpoint: http://holdpoint.example.com:4141 needs a token: set HOLDPOINT_TOKEN\n";
      expect([code, stderr]).toEqual([6, message]);
    }
  });
});

test.each([
  ["a server that is not there", ["inbox", "--url", "http://127.0.0.1:1"], 8],
  ["a folder that is not there", ["inbox", "--data", "nowhere"], 8],
  ["no address", ["inbox", "--url", "nonsense"], 2],
  ["no reason", ["deny", "x"], 2],
  ["an empty reason", ["deny", "x", "--reason", " "], 2],
  ["no message", ["run", "assistant"], 2],
  ["no time", ["run", "assistant", "x", "--wait", "soon"], 2],
  ["an unknown risk", ["inbox", "--risk", "huge"], 2],
  ["a request that is not there", ["show", "nothing"], 4],
  ["a task that is not there", ["cancel", "nothing"], 4],
  ["a config that is not there", ["check", "nothing.yaml"], 3],
])("%s ends with its number", async (_what, args, exit) => {
  expect(await holdpoint(...args)).toMatchObject({ code: exit });
});

test("a server that was killed leaves a note that nobody believes", async () => {
  const other = temporaryFolder();
  writeFileSync(join(other.path, "server.json"), JSON.stringify({ url: "http://127.0.0.1:1", pid: 2 ** 22 + 1 }));
  const { code, stdout } = await holdpointIn({ cwd: other.path }, "inbox", "--data", ".");
  expect([code, stdout]).toEqual([0, "Nothing needs you.\n"]);
  // One whose process is there, and does not listen any more.
  writeFileSync(join(other.path, "server.json"), JSON.stringify({ url: await refusing(), pid: process.pid }));
  writeFileSync(join(other.path, "token"), "some-token\n");
  expect(await holdpointIn({ cwd: other.path }, "inbox", "--data", ".")).toMatchObject({ code: 0, stdout });
  const named = { cwd: other.path, env: { HOLDPOINT_URL: await refusing() } };
  expect((await holdpointIn(named, "inbox", "--data", ".")).code).toBe(8);
  other.remove();
});

test("a model host and a tool server that go on failing are warned of once", async () => {
  const other = temporaryFolder();
  const config = `llms: { m: { type: openai, model: x, host: "http://127.0.0.1:1/v1", api_key: x } }
tools: { broken: { type: mcp, command: /nowhere/mcp } }
agents: { a: { llm: m, instruction: x, tools: [broken] } }\n`;
  writeFileSync(join(other.path, "holdpoint.yaml"), config);
  const { code, stderr } = await holdpointIn({ cwd: other.path }, "run", "a", "hello");
  expect([code, stderr]).toEqual([1, expect.stringContaining("gave up after 5 failed attempts")]);
  expect(stderr.match(/^broken: the server cannot be used now/gm)).toHaveLength(1);
  expect(stderr.match(/^task \S+: llm "m": /gm)).toHaveLength(1);
  other.remove();
});

test("without a server the work is done here, from a pause to the next", async () => {
  const other = temporaryFolder();
  const alone = (...args: string[]) => holdpointIn({ cwd: other.path }, ...args);
  const run = await alone("run", "assistant", "Which reports may go?", "--json");
  expect(run.code).toBe(10);
  const [{ id }] = JSON.parse(run.stdout).requests;
  const { code, stdout } = await alone("answer", id, "--set", "answer=2024");
  expect([code, stdout]).toEqual([0, expect.stringContaining("You chose: 2024.")]);
  other.remove();
});

describe("an agent that waits in its worker (hitl.mode blocking), without a server", () => {
  let other: ReturnType<typeof temporaryFolder>;
  const alone = (...args: string[]) => holdpointIn({ cwd: other.path }, ...args);

  beforeEach(() => {
    other = temporaryFolder();
    writeFileSync(join(other.path, "script.yaml"), JSON.stringify(SCRIPT));
    const blocking = CONFIG.replaceAll("session_store: db, task: {", "task: { hitl: { mode: blocking },");
    const free = "  free: { llm: demo, instruction: x, tools: [], task: { hitl: { mode: blocking } } }\nserver:";
    writeFileSync(join(other.path, "holdpoint.yaml"), blocking.replace(/session_stores:.*\nserver:/, free));
  });
  afterEach(() => other.remove());

  test.each([[[]], [["--no-wait"]], [["--wait", "1s"]]])(
    "is not run where nobody could decide %j: 2, and nothing is started",
    async (flags) => {
      const { code, stdout, stderr } = await alone("run", "assistant", "write", ...flags);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(
        /^holdpoint: "assistant" waits for people in the process that runs it .*Nothing was started\.\n$/,
      );
      expect((await alone("inbox", "--json")).stdout).toBe('{"requests":[]}\n');
      expect((await alone("audit", "verify")).stdout).toContain("nothing has been written here yet");
    },
  );

  test("is run where it cannot come to ask, and where a server waits for it", async () => {
    expect(await alone("run", "free", "hello")).toMatchObject({ code: 0, stdout: "│ Hello to you.\n" });
    const server = new HoldpointProcess(["serve", "--port", "0"], { cwd: other.path });
    await server.url();
    const { code, stdout } = await alone("run", "assistant", "write", "--json");
    const { id, requests } = JSON.parse(stdout);
    expect(code).toBe(10);
    expect((await alone("approve", requests[0].id)).code).toBe(0);
    for (;;) if (JSON.parse((await alone("show", id, "--json")).stdout).result?.message === "Written.") break;
    await server.stop();
  });

  test.each(["inbox", "show", "approve"])(
    "leaves tasks that are lost with a server, and %s says so",
    async (command) => {
      const server = new HoldpointProcess(["serve", "--port", "0"], { cwd: other.path });
      await server.url();
      const { id, requests } = JSON.parse((await alone("run", "assistant", "write", "--json")).stdout);
      await server.stop("SIGKILL");
      const first = await alone(command, ...(command === "inbox" ? [] : [requests[0].id]));
      expect(first.stderr).toContain(`task ${id} is lost: it waited for a person`);
      const expected = {
        inbox: { code: 0, stdout: "Nothing needs you.\n" },
        show: { code: 0, stdout: expect.stringContaining("canceled, because the task ended") },
        approve: { code: 5, stderr: expect.stringContaining("because the task ended: lost: the server stopped while") },
      }[command];
      expect(first).toMatchObject(expected ?? {});
      // Said once; whoever asks again hears it all the same.
      expect((await alone("inbox")).stderr).toBe("");
      const again = await alone("approve", requests[0].id);
      expect([again.code, again.stderr]).toEqual([5, expect.stringContaining("(hitl.mode blocking)")]);
      expect((await alone("show", id)).stdout).toContain("lost: the server stopped while this task was waiting");
    },
  );
});

test("check prints every mistake with its place, and as JSON", async () => {
  const other = temporaryFolder();
  writeFileSync(join(other.path, "script.yaml"), "scenarios: []\n");
  writeFileSync(join(other.path, "bad.yaml"), CONFIG.replace("requires_approval", "require_approval"));
  const { code, stdout } = await holdpointIn({ cwd: other.path }, "check", "bad.yaml");
  expect([code, stdout]).toEqual([3, expect.stringContaining("WITHOUT approval")]);
  expect(stdout).toMatch(/\n1 error\.\n$/);
  writeFileSync(join(other.path, "good.yaml"), CONFIG);
  const good = await holdpointIn({ cwd: other.path }, "check", "good.yaml");
  expect([good.code, good.stderr]).toEqual([0, "\nNo mistakes.\n"]);
  const none = await holdpointIn({ cwd: other.path }, "check", "none.yaml");
  expect(none.stdout).toContain('Name another with "npx holdpoint check <file>", or let');
  expect(none.stdout).not.toContain("--config");
  const json = await holdpointIn({ cwd: other.path }, "check", "bad.yaml", "--json");
  expect([json.code, JSON.parse(json.stdout).ok]).toEqual([3, false]);
  other.remove();
});

/** An address where nobody listens any more. */
async function refusing(): Promise<string> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, "close");
  return `http://127.0.0.1:${port}`;
}

/** A run that goes on, and its task once that waits. */
async function startWaiting(...flags: string[]): Promise<{ run: HoldpointProcess; id: string }> {
  const newest = async () => {
    const token = readFileSync(join(folder.path, ".holdpoint", "token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${await server.url()}/api/tasks?limit=1`, { headers });
    return ((await response.json()) as { tasks: { id: string; state: string }[] }).tasks[0];
  };
  const before = await newest();
  const run = new HoldpointProcess(["run", "assistant", "write", ...flags], here);
  for (;;) {
    const task = await newest();
    if (task && task.id !== before?.id && task.state === "input-required") return { run, id: task.id };
  }
}

async function ended(taskId: string): Promise<string> {
  for (;;) {
    const { result } = JSON.parse((await holdpoint("show", taskId, "--json")).stdout);
    if (result) return result.message;
  }
}
