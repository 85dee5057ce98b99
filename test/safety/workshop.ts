/** A folder with the real tools in it, for the tests of this folder. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AllowedCommand } from "../../src/config/config.ts";
import { systemCommands } from "../../src/ports/commands.ts";
import { createConfinedFiles, systemConfinedFiles } from "../../src/ports/confined-files.ts";
import type { JsonObject } from "../../src/task/json.ts";
import { type CommandConfig, createCommandTool } from "../../src/tools/command.ts";
import { createFileTool, type FileConfig } from "../../src/tools/files.ts";
import { CallRefused, type Finished, type Tool } from "../../src/tools/tool.ts";

const RULE = {
  enabled: true,
  requiresApproval: true,
  place: { file: "holdpoint.yaml", line: 1 },
  approvalPrompt: undefined,
  risk: "high",
  editable: true,
  idempotent: false,
  onAmbiguous: "ask",
  timeoutMs: 10_000,
} as const;

export interface Workshop {
  /** Where tools work. */
  readonly root: string;
  /** Beside it, with something to lose. */
  readonly outside: string;
  /** The path of a program that writes its arguments, NUL-separated, into argv.bin of its folder. */
  readonly printargs: string;
  /** Allows a few harmless programs unless the rule says otherwise. */
  command(rule?: Partial<CommandConfig> & { protect?: string[] }): Tool;
  file(type: FileConfig["type"], rule?: Partial<FileConfig> & { withoutProc?: boolean; protect?: string[] }): Tool;
  /** The arguments that printargs was really given. */
  recordedArgs(): string[];
  close(): void;
}

export function openWorkshop(): Workshop {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "holdpoint-safety-")));
  const [root, outside] = [join(folder, "ws"), join(folder, "outside")];
  for (const path of [root, outside, join(folder, "ws-evil"), join(root, "sub")]) mkdirSync(path);
  writeFileSync(join(outside, "secret.txt"), "secret");
  writeFileSync(join(folder, "ws-evil", "secret.txt"), "secret");
  writeFileSync(join(root, "file.txt"), "one\ntwo\n");
  writeFileSync(join(root, "sub", "inner.txt"), "inner\n");
  const printargs = join(outside, "printargs");
  writeFileSync(printargs, `#!/bin/sh\nif [ $# -gt 0 ]; then printf '%s\\0' "$@"; fi > argv.bin\n`);
  chmodSync(printargs, 0o755);
  return {
    root,
    outside,
    printargs,
    command: ({ protect = [], ...rule } = {}) => {
      const allowedCommands = allow("ls", "cat", "touch", "find", printargs);
      const own = { name: "execute_command", type: "command", allowedCommands, workingDirectory: root } as const;
      return createCommandTool({ ...RULE, ...own, ...rule }, { commands: systemCommands, protectedPaths: protect });
    },
    file: (type, { withoutProc, protect = [], ...rule } = {}) =>
      createFileTool(
        { ...RULE, name: type, type, root, ...rule },
        { files: withoutProc ? createConfinedFiles(false) : systemConfinedFiles, protectedPaths: protect },
      ),
    recordedArgs: () => readFileSync(join(root, "argv.bin"), "utf8").split("\0").slice(0, -1),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function allow(...names: readonly string[]): AllowedCommand[] {
  return names.map((command) => ({ command, args: undefined }));
}

/** Prepares and runs, as the gate does: the plan goes through JSON in between. */
export async function call(tool: Tool, args: JsonObject, signal = new AbortController().signal): Promise<Finished> {
  const facts = JSON.parse(JSON.stringify(await tool.prepare(args)));
  return tool.run({ args, facts, idempotencyKey: "input-t-1", signal });
}

/** The code with which a call is refused; "taken" when it is not. */
export async function refusalOf(tool: Tool, args: JsonObject): Promise<CallRefused["code"] | "taken"> {
  try {
    await tool.prepare(args);
    return "taken";
  } catch (error) {
    if (error instanceof CallRefused) return error.code;
    throw error;
  }
}
