/** Every request and both client programs that seed 002 prints, on a real server, with only host, token and import changed. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HoldpointProcess, temporaryFolder } from "../scenarios/holdpoint-process.ts";
import { parseFrames } from "../v1/frames.ts";

const TOKEN = "token-for-the-seed";
const HOST = "http://localhost:8080";
const read = (name: string) => readFileSync(new URL(name, import.meta.url), "utf8");
const [SEND = "", APPROVE = "", CANCEL = "", SUBSCRIBE = ""] = read("002-requests.txt").split(/\n\n/);
const MESSAGES = JSON.parse(read("002-messages.json"));

const CONFIG = `llms:
  scripted: { type: scripted, script: ./script.yaml }
tools:
  delete_file: { type: delete_file, enabled: true, requires_approval: true }
agents:
  assistant:
    llm: scripted
    tools: [delete_file]
`;
const SCRIPT = `scenarios:
  - match: "temporary files"
    turns:
      - call: [ { tool: delete_file, args: { path: old.tmp } } ]
      - say: "Files deleted successfully"
        denied: { say: "Nothing was deleted" }
`;
const PROMPT = "🔐 Tool Approval Required\n\nTool: delete_file\nInput: old.tmp\n\nPlease respond with: approve or deny";

let folder: ReturnType<typeof temporaryFolder>;
let server: HoldpointProcess;
let url: string;

async function serve(): Promise<void> {
  const args = ["serve", "--config", "holdpoint.yaml", "--data", "data", "--port", "0"];
  server = new HoldpointProcess(args, { cwd: folder.path, env: { HOLDPOINT_TOKEN: TOKEN } });
  url = await server.url();
}

beforeEach(async () => {
  folder = temporaryFolder();
  mkdirSync(join(folder.path, "workspace"));
  writeFileSync(join(folder.path, "holdpoint.yaml"), CONFIG);
  writeFileSync(join(folder.path, "script.yaml"), SCRIPT);
  writeFileSync(join(folder.path, "workspace", "old.tmp"), "x");
  await serve();
});

afterEach(async () => {
  await server.stop("SIGKILL");
  folder.remove();
});

const isThere = () => existsSync(join(folder.path, "workspace", "old.tmp"));

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** With an answer for each question that it asks on its standard input. */
function run(
  program: string,
  args: readonly string[],
  { input = "", env = {}, onBegin = () => {} } = {},
): Promise<Ran> {
  const child = spawn(program, args, {
    cwd: folder.path,
    env: { ...process.env, NO_PROXY: "*", no_proxy: "*", ...env },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
    onBegin();
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}

const hasProgram = (name: string) => spawnSync(name, ["--version"]).status === 0;
const HAS_CURL = hasProgram("curl");
const PYTHON = ["python3", "python"].find(hasProgram);

/** A printed command as a shell runs it; where there is no curl, what it would have sent. */
async function runCurl(printed: string, onBegin = () => {}): Promise<string> {
  const command = printed.replace(HOST, url).replace("curl ", `curl -sSN -H "Authorization: Bearer ${TOKEN}" `);
  if (HAS_CURL) {
    const { code, stdout, stderr } = await run("sh", ["-c", command], { onBegin });
    expect([code, stderr]).toEqual([0, ""]);
    return stdout;
  }
  const [, method = "", address = ""] = /-X (\S+) (\S+)/.exec(command) ?? [];
  const [, body] = /-d '([^']*)'/s.exec(command) ?? [];
  const headers = [...command.matchAll(/-H "([^:]+): ([^"]*)"/g)].map(([, name = "", value = ""]): [string, string] => [
    name,
    value,
  ]);
  const response = await fetch(address, { method, headers, ...(body === undefined ? {} : { body }) });
  onBegin();
  return response.text();
}

const curl = async (printed: string) => JSON.parse(await runCurl(printed)).task;
/** "POST /path" as the command that it stands for. */
const toCurl = (line: string, id: string) =>
  `curl -X ${line.trim().replace(" /", ` ${HOST}/`).replace("{agent}", "assistant").replace("{taskID}", id)}`;
const approving = (id: string) => APPROVE.replace("task-abc123", id);
const saying = (message: object, id: string) =>
  APPROVE.replace(/-d '.*'/s, () => `-d '${JSON.stringify({ request: { ...message, taskId: id } })}'`);

async function pause(): Promise<{ id: string }> {
  const task = await curl(SEND);
  expect(task.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  return task;
}

const DECISIONS = [
  ["approve", false, "Files deleted successfully"],
  ["deny", true, "Nothing was deleted"],
] as const;

describe("the printed commands", () => {
  test("send, and get the pause as printed", async () => {
    const task = await curl(SEND);
    const { state, message } = task.status;
    expect(state).toBe("TASK_STATE_INPUT_REQUIRED");
    const [text, data] = MESSAGES.pause.parts;
    expect([message.role, message.parts.length]).toEqual([MESSAGES.pause.role, 2]);
    expect(message.parts[0]).toEqual({ text: PROMPT });
    expect(PROMPT.replace("delete_file", "execute_command").replace("old.tmp", "rm -rf /tmp/old-files")).toBe(
      text.text,
    );
    expect(message.parts[1].data).toEqual({
      ...data.data,
      tool_name: "delete_file",
      tool_input: "old.tmp",
      request_id: `input-${task.id}-1`,
    });
    expect(isThere()).toBe(true);
  });

  test("approve, and it runs", async () => {
    const { id } = await pause();
    const task = await curl(approving(id));
    expect(task).toMatchObject({
      id,
      status: {
        state: "TASK_STATE_COMPLETED",
        message: { role: "ROLE_AGENT", parts: [{ text: "Files deleted successfully" }] },
      },
    });
    expect(isThere()).toBe(false);
  });

  test.each(DECISIONS)("the printed message to %s does that", async (name, stays, text) => {
    const { id } = await pause();
    const task = await curl(saying(MESSAGES[name], id));
    expect(task.status).toMatchObject({ state: "TASK_STATE_COMPLETED", message: { parts: [{ text }] } });
    expect(isThere()).toBe(stays);
  });

  test("cancel, and nothing runs", async () => {
    const { id } = await pause();
    expect((await curl(toCurl(CANCEL, id))).status.state).toBe("TASK_STATE_CANCELLED");
    expect((await curl(approving(id))).status.state).toBe("TASK_STATE_CANCELLED");
    expect(isThere()).toBe(true);
  });

  test("subscribe, and hear the pause, the work and the end", async () => {
    const { id } = await pause();
    let heard = Promise.resolve("");
    await new Promise<void>((began) => {
      heard = runCurl(toCurl(SUBSCRIBE, id), began);
    });
    await curl(approving(id));
    const frames = parseFrames(await heard);
    expect(frames[0]).toMatchObject({ event: "task", data: { id, status: { state: "TASK_STATE_INPUT_REQUIRED" } } });
    const updates = frames.slice(1);
    expect(new Set(updates.map(({ event }) => event))).toEqual(new Set(["status_update"]));
    expect(updates.map(({ data }) => data.taskId)).toEqual(updates.map(() => id));
    const states = updates.map(({ data }) => data.status.state);
    expect([states[0], states.at(-1)]).toEqual(["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
  });

  test("a pause outlives a killed server", async () => {
    const { id } = await pause();
    await server.stop("SIGKILL");
    await serve();
    expect((await curl(approving(id))).status.state).toBe("TASK_STATE_COMPLETED");
    expect(isThere()).toBe(false);
  });
});

describe("the printed TypeScript program", () => {
  test.each(DECISIONS)("asks, is told to %s, and ends", async (decision, stays) => {
    const client = fileURLToPath(new URL("../../src/client/index.ts", import.meta.url));
    const program = read("002-client-typescript.txt")
      .replace("'@hector/sdk'", `'${client}'`)
      .replace(`'${HOST}'`, `'${url}', { token: '${TOKEN}' }`);
    writeFileSync(join(folder.path, "program.mts"), `${program}\nawait executeWithApproval();\n`);
    // Browsers have it; here it answers as a person would.
    const prompt = `data:text/javascript,globalThis.prompt = async () => ${JSON.stringify(decision)};`;
    const { code, stdout, stderr } = await run(process.execPath, ["--import", prompt, "program.mts"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.startsWith(`${PROMPT}\nTask completed:`)).toBe(true);
    expect(stdout).toContain("TASK_STATE_COMPLETED");
    expect(isThere()).toBe(stays);
  });
});

// It needs an interpreter that not every machine has.
describe.skipIf(PYTHON === undefined)("the printed Python program", () => {
  test.each(DECISIONS)("asks, is told to %s, and ends", async (decision, stays, text) => {
    const program = read("002-client-python.txt")
      .replace("hector_sdk", "holdpoint_client")
      .replace(`'${HOST}'`, `'${url}', '${TOKEN}'`);
    writeFileSync(join(folder.path, "holdpoint_client.py"), read("holdpoint_client.py"));
    writeFileSync(join(folder.path, "program.py"), `${program}\nexecute_with_approval()\n`);
    const options = { input: `${decision}\n`, env: { PYTHONIOENCODING: "utf-8" } };
    const { code, stdout, stderr } = await run(PYTHON ?? "", ["program.py"], options);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(PROMPT);
    expect(stdout).toContain("Task completed:");
    expect(stdout).toContain(text);
    expect(isThere()).toBe(stays);
  });
});
