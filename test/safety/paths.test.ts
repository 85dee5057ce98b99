/** File tools stay inside their root, on plain files, and do exactly what was approved. */
import { execFileSync } from "node:child_process";
import { hash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GIT_OWN, NO_PATH, OUTSIDE } from "./hostile-paths.ts";
import { call, openWorkshop, refusalOf, type Workshop } from "./workshop.ts";

const TYPES = ["read_file", "write_file", "delete_file"] as const;

let workshop: Workshop;
let socket: Server;
let protect: string[] = [];
beforeEach(async () => {
  workshop = openWorkshop();
  const { root, outside } = workshop;
  const inRoot = (name: string) => join(root, name);
  symlinkSync(join(outside, "secret.txt"), inRoot("link-file"));
  symlinkSync("file.txt", inRoot("link-inside"));
  symlinkSync(outside, inRoot("link-folder"));
  symlinkSync("../..", inRoot("sub/link-up"));
  symlinkSync(".", inRoot("sub/link-self"));
  symlinkSync("link-loop", inRoot("link-loop"));
  symlinkSync("/", inRoot("link-root"));
  symlinkSync("/proc", inRoot("link-proc"));
  symlinkSync("nowhere", inRoot("link-absent"));
  linkSync(join(outside, "secret.txt"), inRoot("hard"));
  makeNode([inRoot("pipe"), "p"]);
  makeDevice(inRoot("device"));
  for (const folder of [".holdpoint", ".git/hooks", "sub/.git"]) mkdirSync(inRoot(folder), { recursive: true });
  for (const file of [
    "holdpoint.yaml",
    ".holdpoint/token",
    ".git/config",
    ".git/hooks/pre-commit",
    "sub/.git/config",
  ]) {
    writeFileSync(inRoot(file), "precious");
  }
  protect = ["holdpoint.yaml", ".holdpoint", "later.yaml"].map(inRoot);
  socket = createServer();
  await new Promise<void>((resolve) => socket.listen(inRoot("socket"), resolve));
});
afterEach(async () => {
  await new Promise((resolve) => socket.close(resolve));
  workshop.close();
});

function makeNode(args: readonly string[]): void {
  execFileSync("mknod", args, { stdio: "ignore" });
}

/** Only root can make one; anybody else has to do with a second pipe. */
function makeDevice(path: string): void {
  try {
    makeNode([path, "c", "1", "3"]);
  } catch {
    makeNode([path, "p"]);
  }
}

const argsFor = (type: string, path: string) => (type === "write_file" ? { path, content: "new" } : { path });

/** Everything in and around the root, with kinds and contents; links are not followed. */
function picture(folder = join(workshop.root, "..")): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    const line = `${path} ${lstatSync(path).mode} ${entry.isFile() ? readFileSync(path, "utf8") : ""}`;
    return entry.isDirectory() ? [line, ...picture(path)] : [line];
  });
}

describe.each([
  ["through descriptors", false],
  ["without /proc", true],
] as const)("%s", (_name, withoutProc) => {
  test("no path leads out of the root, to links, to special files, or to what is protected", async () => {
    const before = picture();
    const { root, outside } = workshop;
    const wrong: string[] = [];
    for (const type of TYPES) {
      const tool = workshop.file(type, { withoutProc, protect });
      for (const pattern of OUTSIDE) {
        const path = pattern.replace("{root}", root).replace("{outside}", outside);
        const outcome = await refusalOf(tool, argsFor(type, path));
        if (outcome === "taken") wrong.push(`${type} ${path}`);
      }
    }
    expect(wrong).toEqual([]);
    expect(picture()).toEqual(before);
  });

  test("what is no path is told so", async () => {
    for (const type of TYPES) {
      const tool = workshop.file(type, { withoutProc, protect });
      for (const path of NO_PATH) {
        expect([type, path, await refusalOf(tool, argsFor(type, path))]).toEqual([type, path, "arguments-invalid"]);
      }
    }
  });

  test("git's own files can be read and nothing else", async () => {
    for (const path of GIT_OWN) {
      for (const type of ["write_file", "delete_file"] as const) {
        expect(await refusalOf(workshop.file(type, { withoutProc }), argsFor(type, path))).toBe("not-allowed");
      }
    }
    expect(await call(workshop.file("read_file", { withoutProc }), { path: ".git/config" })).toMatchObject({
      outcome: "done",
    });
  });

  test("reading, writing and deleting do what they say", async () => {
    const [read, write, remove] = TYPES.map((type) => workshop.file(type, { withoutProc }));
    if (!read || !write || !remove) throw new Error("three tools");
    const { root } = workshop;
    chmodSync(join(root, "file.txt"), 0o750);
    expect(await call(read, { path: "./sub//inner.txt" })).toMatchObject({
      outcome: "done",
      result: { path: "sub/inner.txt", content: "inner\n" },
    });
    expect(await call(read, { path: join(root, "file.txt") })).toMatchObject({ result: { content: "one\ntwo\n" } });
    expect((await call(write, { path: "file.txt", content: "one\nthree\n" })).outcome).toBe("done");
    expect(readFileSync(join(root, "file.txt"), "utf8")).toBe("one\nthree\n");
    expect(statSync(join(root, "file.txt")).mode & 0o777).toBe(0o750);
    expect((await call(write, { path: "new/deep/er.txt", content: "x" })).outcome).toBe("done");
    expect(statSync(join(root, "new/deep/er.txt")).mode & 0o777).toBe(0o644);
    expect((await call(remove, { path: "new/deep/er.txt" })).outcome).toBe("done");
    expect(existsSync(join(root, "new/deep/er.txt"))).toBe(false);
    expect(readdirSync(root).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  /** Between the approval and the run somebody does this. */
  const MEANWHILE: readonly (readonly [string, (root: string, outside: string) => void])[] = [
    ["another content", (root) => writeFileSync(join(root, "sub/inner.txt"), "changed\n")],
    ["a link instead of the file", (root, outside) => swap(join(root, "sub/inner.txt"), join(outside, "secret.txt"))],
    ["a link instead of the folder", (root, outside) => swap(join(root, "sub"), outside)],
    ["the folder elsewhere", (root, outside) => renameSync(join(root, "sub"), join(outside, "sub"))],
    ["no folder", (root) => rmSync(join(root, "sub"), { recursive: true })],
    [
      "a folder instead of the file",
      (root) => {
        rmSync(join(root, "sub/inner.txt"));
        mkdirSync(join(root, "sub/inner.txt"));
      },
    ],
    ["a second name", (root, outside) => linkSync(join(root, "sub/inner.txt"), join(outside, "second"))],
    [
      "a pipe instead of the file",
      (root) => {
        rmSync(join(root, "sub/inner.txt"));
        makeNode([join(root, "sub/inner.txt"), "p"]);
      },
    ],
    ["a link instead of the root", (root, outside) => swap(root, outside)],
  ];

  test.each(MEANWHILE)("meanwhile %s: nothing is written or deleted", async (_what, change) => {
    const { root, outside } = workshop;
    writeFileSync(join(outside, "inner.txt"), "inner\n");
    const tools = (["write_file", "delete_file"] as const).map((type) => workshop.file(type, { withoutProc }));
    const calls = await Promise.all(
      tools.map(async (tool) => {
        const args = argsFor(tool.name, "sub/inner.txt");
        return { tool, args, facts: await tool.prepare(args) };
      }),
    );
    change(root, outside);
    const before = picture();
    for (const { tool, args, facts } of calls) {
      const { signal } = new AbortController();
      const finished = await tool.run({ args, facts, idempotencyKey: "k", signal });
      expect(finished.outcome).toBe("failed");
    }
    expect(picture()).toEqual(before);
  });
});

function swap(path: string, target: string): void {
  renameSync(path, `${path}.away`);
  symlinkSync(target, path);
}

test("nothing is made where the root's parent leads by now", async () => {
  const { root, outside } = workshop;
  const tool = workshop.file("write_file", { root: join(root, "sub") });
  const args = { path: "deep/new.txt", content: "x" };
  const facts = await tool.prepare(args);
  mkdirSync(join(outside, "sub"));
  swap(root, outside);
  const { signal } = new AbortController();
  expect((await tool.run({ args, facts, idempotencyKey: "k", signal })).outcome).toBe("failed");
  expect(readdirSync(join(outside, "sub"))).toEqual([]);
  rmSync(root);
  renameSync(`${root}.away`, root);
});

test("a changed file is told as such", async () => {
  const tool = workshop.file("write_file");
  const args = { path: "file.txt", content: "new" };
  const facts = await tool.prepare(args);
  writeFileSync(join(workshop.root, "file.txt"), "somebody else's");
  expect(await tool.run({ args, facts, idempotencyKey: "k", signal: new AbortController().signal })).toEqual({
    outcome: "failed",
    result: "the file changed after it was approved; nothing was written",
  });
});

test("a new file is not written over one that appeared meanwhile", async () => {
  const tool = workshop.file("write_file");
  const args = { path: "new.txt", content: "ours" };
  const facts = await tool.prepare(args);
  writeFileSync(join(workshop.root, "new.txt"), "theirs");
  expect((await tool.run({ args, facts, idempotencyKey: "k", signal: new AbortController().signal })).outcome).toBe(
    "failed",
  );
  expect(readFileSync(join(workshop.root, "new.txt"), "utf8")).toBe("theirs");
});

test("what a crash left beside is replaced, and never written through", async () => {
  const tool = workshop.file("write_file");
  const { root, outside } = workshop;
  const args = { path: "file.txt", content: "new" };
  const { signal } = new AbortController();
  const work = { args, facts: await tool.prepare(args), idempotencyKey: "k", signal };
  const beside = `.holdpoint-${hash("sha256", "k", "hex").slice(0, 16)}.tmp`;
  symlinkSync(join(outside, "secret.txt"), join(root, beside));
  expect((await tool.run(work)).outcome).toBe("done");
  expect(readFileSync(join(outside, "secret.txt"), "utf8")).toBe("secret");
  expect(readdirSync(root).filter((name) => name.endsWith(".tmp"))).toEqual([]);
});

describe("the executor takes the plan that was approved", () => {
  test("other content than the plan's is not written", async () => {
    const tool = workshop.file("write_file");
    const facts = await tool.prepare({ path: "file.txt", content: "approved" });
    const args = { path: "file.txt", content: "swapped" };
    expect((await tool.run({ args, facts, idempotencyKey: "k", signal: new AbortController().signal })).outcome).toBe(
      "failed",
    );
    expect(readFileSync(join(workshop.root, "file.txt"), "utf8")).toBe("one\ntwo\n");
  });

  test("another path in the arguments changes nothing", async () => {
    const tool = workshop.file("delete_file");
    const facts = await tool.prepare({ path: "sub/inner.txt" });
    const { signal } = new AbortController();
    await tool.run({ args: { path: "file.txt" }, facts, idempotencyKey: "k", signal });
    expect(existsSync(join(workshop.root, "file.txt"))).toBe(true);
    expect(existsSync(join(workshop.root, "sub/inner.txt"))).toBe(false);
  });

  test("a plan of another shape is not run", async () => {
    const { plan, ...rest } = await workshop.file("write_file").prepare({ path: "file.txt", content: "x" });
    const { signal } = new AbortController();
    for (const bent of [{}, { ...plan, extra: 1 }, { ...plan, action: "delete" }, { ...plan, mode: "4755" }]) {
      for (const type of TYPES) {
        const work = {
          args: { path: "file.txt", content: "x" },
          facts: { ...rest, plan: bent },
          idempotencyKey: "k",
          signal,
        };
        await expect(workshop.file(type).run(work)).rejects.toThrow(/not one of this tool/);
      }
    }
  });

  test("nothing begins when it was canceled before", async () => {
    for (const type of ["write_file", "delete_file"] as const) {
      const finished = await call(workshop.file(type), argsFor(type, "file.txt"), AbortSignal.abort());
      expect(finished.outcome).toBe("failed");
    }
    expect(readFileSync(join(workshop.root, "file.txt"), "utf8")).toBe("one\ntwo\n");
  });
});

describe("after a crash", () => {
  test("a write is judged by what is on disk", async () => {
    const tool = workshop.file("write_file");
    const path = join(workshop.root, "file.txt");
    const args = { path: "file.txt", content: "new" };
    const { plan } = await tool.prepare(args);
    expect(await tool.settle?.(args, plan)).toBe("not-done");
    expect(await tool.settle?.(args, undefined)).toBe("unknown");
    writeFileSync(path, "new");
    expect(await tool.settle?.(args, plan)).toBe("done");
    expect(await tool.settle?.(args, undefined)).toBe("done");
    writeFileSync(path, "neither");
    expect(await tool.settle?.(args, plan)).toBe("unknown");
    rmSync(path);
    expect(await tool.settle?.(args, plan)).toBe("unknown");
    symlinkSync(workshop.outside, path);
    expect(await tool.settle?.(args, plan)).toBe("unknown");
    expect(await tool.settle?.(args, { action: "write" })).toBe("unknown");
  });

  test("a write of a new file, too", async () => {
    const tool = workshop.file("write_file");
    const args = { path: "a/new.txt", content: "new" };
    const { plan } = await tool.prepare(args);
    expect(await tool.settle?.(args, plan)).toBe("not-done");
    mkdirSync(join(workshop.root, "a"));
    writeFileSync(join(workshop.root, "a/new.txt"), "other");
    expect(await tool.settle?.(args, plan)).toBe("unknown");
  });

  test("a deletion, too", async () => {
    const tool = workshop.file("delete_file");
    const path = join(workshop.root, "file.txt");
    const args = { path: "file.txt" };
    const { plan } = await tool.prepare(args);
    expect(await tool.settle?.(args, plan)).toBe("not-done");
    expect(await tool.settle?.(args, undefined)).toBe("unknown");
    writeFileSync(path, "neither");
    expect(await tool.settle?.(args, plan)).toBe("unknown");
    rmSync(path);
    expect(await tool.settle?.(args, plan)).toBe("done");
    expect(await tool.settle?.(args, undefined)).toBe("done");
  });

  test("a read is simply done again", () => {
    const tool = workshop.file("read_file");
    expect([tool.idempotent, tool.onAmbiguous, tool.settle]).toEqual([true, "retry", undefined]);
  });
});

describe("limits", () => {
  test("one MiB is written, a byte more is refused; ten MiB are read, a byte more is not", async () => {
    const write = workshop.file("write_file");
    const content = "é".repeat(512 * 1024);
    expect((await call(write, { path: "big.txt", content })).outcome).toBe("done");
    expect(await refusalOf(write, { path: "big.txt", content: `${content}x` })).toBe("arguments-invalid");
    const read = workshop.file("read_file");
    writeFileSync(join(workshop.root, "huge.txt"), "x".repeat(10 * 1024 * 1024));
    expect((await call(read, { path: "huge.txt" })).outcome).toBe("done");
    writeFileSync(join(workshop.root, "huge.txt"), "x".repeat(10 * 1024 * 1024 + 1));
    expect((await call(read, { path: "huge.txt" })).outcome).toBe("failed");
  });

  test("what is not text is not read, and a lone surrogate is not written", async () => {
    writeFileSync(join(workshop.root, "binary"), Buffer.from([0xff, 0xfe, 0]));
    expect((await call(workshop.file("read_file"), { path: "binary" })).outcome).toBe("failed");
    expect(await refusalOf(workshop.file("write_file"), { path: "x", content: "\ud800" })).toBe("arguments-invalid");
  });

  test("absent files are told before anybody is asked", async () => {
    for (const type of ["read_file", "delete_file"] as const) {
      expect(await refusalOf(workshop.file(type), { path: "nothing.txt" })).toBe("arguments-invalid");
    }
    expect(await refusalOf(workshop.file("read_file", { root: join(workshop.root, "gone") }), { path: "x" })).toBe(
      "not-allowed",
    );
  });
});
