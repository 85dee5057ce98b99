/** read_file, write_file and delete_file: inside one root, on exactly the file that was shown. */
import type { ToolConfig } from "../config/config.ts";
import { type ConfinedFiles, type Effect, type Look, PathRefused, type Place } from "../ports/confined-files.ts";
import { sha256 } from "../task/digest.ts";
import { canonicalJson, findJsonProblem, type JsonObject } from "../task/json.ts";
import { findDifference, OLD_BYTES_MAX, textOf } from "./files-diff.ts";
import { pathBelow } from "./files-path.ts";
import {
  type DeletePlan,
  type Image,
  type ReadPlan,
  readDeletePlan,
  readReadPlan,
  readWritePlan,
  type WritePlan,
} from "./files-plan.ts";
import { builtinCheck, builtinFacts, exactly } from "./plan.ts";
import { renderPrompt } from "./prompt.ts";
import { CallRefused, type Finished, type Tool, type Work } from "./tool.ts";

export type FileConfig = ToolConfig & { readonly type: "read_file" | "write_file" | "delete_file" };

export interface FileParts {
  readonly files: ConfinedFiles;
  /** Configuration, data folder and token: absolute paths, each with everything below it. */
  readonly protectedPaths: readonly string[];
}

const READ_BYTES_MAX = 10 * 1024 * 1024;
const CONTENT_BYTES_MAX = 1024 * 1024;
const NEW_FILE_MODE = "644";
const CHANGED = "the file changed after it was approved; nothing was";

type Settled = "done" | "not-done" | "unknown";

/** What the three differ in. */
interface Behaviour {
  readonly description: string;
  plan(place: Place, args: JsonObject): Promise<ReadPlan | WritePlan | DeletePlan>;
  run(work: Work): Promise<Finished>;
  settle?(place: Place, args: JsonObject, approved: JsonObject | undefined): Promise<Settled>;
}

const PATH: JsonObject = {
  type: "string",
  minLength: 1,
  maxLength: 4096,
  description: "Path of the file, relative to the root.",
};

const ONE_FILE: JsonObject = exactly({ path: PATH });
const FILE_AND_CONTENT: JsonObject = exactly({
  path: PATH,
  content: { type: "string", description: "The whole new content." },
});

const KINDS = {
  read_file: { action: "read", parameters: ONE_FILE, check: builtinCheck(ONE_FILE), create: reading },
  write_file: { action: "write", parameters: FILE_AND_CONTENT, check: builtinCheck(FILE_AND_CONTENT), create: writing },
  delete_file: { action: "delete", parameters: ONE_FILE, check: builtinCheck(ONE_FILE), create: deleting },
} as const;

export function createFileTool(config: FileConfig, parts: FileParts): Tool {
  const { action, parameters, check, create } = KINDS[config.type];
  const behaviour: Behaviour = create(parts);
  const isRead = config.type === "read_file";

  async function placeOf(args: JsonObject): Promise<Place> {
    // One MiB of content may be six of JSON; its own limit is judged with the plan.
    const problem = findJsonProblem(args, 8 * CONTENT_BYTES_MAX);
    if (problem) throw new CallRefused("arguments-invalid", `${problem.pointer || "/"}: ${problem.text}`);
    check(args);
    const root = await parts.files.findRoot(config.root);
    const path = pathBelow([config.root, root], String(args.path), action);
    return { root, path, protectedPaths: parts.protectedPaths };
  }

  async function prepare(args: JsonObject) {
    try {
      const plan = await behaviour.plan(await placeOf(args), args);
      return builtinFacts(config, { root: config.root }, parameters, plan);
    } catch (error) {
      throw error instanceof PathRefused ? new CallRefused("not-allowed", error.message) : error;
    }
  }

  async function settle(args: JsonObject, approved: JsonObject | undefined): Promise<Settled> {
    try {
      return (await behaviour.settle?.(await placeOf(args), args, approved)) ?? "unknown";
    } catch {
      // A path that leads elsewhere by now says nothing about what happened.
      return "unknown";
    }
  }

  return {
    name: config.name,
    description: behaviour.description,
    parameters,
    ...(config.type === "write_file" ? { longArgument: "content" } : {}),
    gated: config.requiresApproval,
    risk: config.risk,
    editable: config.editable,
    idempotent: isRead || config.idempotent,
    // A read that was cut off is simply done again.
    onAmbiguous: isRead && config.onAmbiguous === "ask" ? "retry" : config.onAmbiguous,
    rule: config.place,
    prepare,
    promptFor: (args) =>
      renderPrompt(config.approvalPrompt, config.name, typeof args.path === "string" ? args.path : canonicalJson(args)),
    ...(behaviour.settle ? { settle } : {}),
    run: (work) => run(behaviour, work),
  };
}

async function run(behaviour: Behaviour, work: Work): Promise<Finished> {
  if (work.signal.aborted) return failed("not run: it was canceled before it began");
  try {
    return await behaviour.run(work);
  } catch (error) {
    if (error instanceof PathRefused) return failed(`not run: ${error.message}`);
    throw error;
  }
}

function reading({ files, protectedPaths }: FileParts): Behaviour {
  return {
    description: "Reads a text file.",
    async plan(place) {
      if ((await files.look(place, 0)).type === "absent") throw absent(place);
      return { action: "read", root: place.root, path: place.path, bytesMax: READ_BYTES_MAX };
    },
    async run({ facts }) {
      const { root, path, bytesMax } = readReadPlan(facts.plan);
      const look = await files.look({ root, path, protectedPaths }, bytesMax);
      if (look.type === "absent") return failed(`there is no file ${path}`);
      if (!look.content) return failed(`${path} has ${look.bytes} bytes; at most ${bytesMax} are read`);
      const content = textOf(look.content);
      if (content === undefined) return failed(`${path} is not text (${look.bytes} bytes)`);
      return { outcome: "done", result: { path, bytes: look.bytes, content } };
    },
  };
}

function writing({ files, protectedPaths }: FileParts): Behaviour {
  return {
    description: "Writes a text file, whole: what was in it before is replaced. Missing folders are made.",
    async plan(place, args) {
      const content = String(args.content);
      const after = imageOf(content);
      if (after.bytes > CONTENT_BYTES_MAX) {
        const text = `/content: ${after.bytes} bytes; at most ${CONTENT_BYTES_MAX} are written`;
        throw new CallRefused("arguments-invalid", text);
      }
      const { root, path } = place;
      const look = await files.look(place, OLD_BYTES_MAX);
      const plan = { action: "write", root, path, after } as const;
      if (look.type === "absent") {
        const { missingFolders: newFolders } = look;
        return { ...plan, before: null, diff: { type: "new-file" }, mode: NEW_FILE_MODE, newFolders };
      }
      const { sha256, bytes } = look;
      const diff = findDifference(path, look.content, bytes, content);
      return { ...plan, before: { sha256, bytes }, diff, mode: octal(look.mode), newFolders: [] };
    },
    async run({ facts, args, idempotencyKey }) {
      const { root, path, before, after, mode, newFolders } = readWritePlan(facts.plan);
      const content = String(args.content);
      // The plan holds the hash of the content, the arguments hold the content.
      if (imageOf(content).sha256 !== after.sha256) return failed("not run: the content is not the one of the plan");
      const effect = await files.replace(
        { root, path, protectedPaths },
        {
          before: before?.sha256,
          content: Buffer.from(content),
          mode: Number.parseInt(mode, 8),
          newFolders,
          mark: sha256(idempotencyKey).slice(0, 16),
        },
      );
      return finished(effect, `${CHANGED} written`, { path, bytes: after.bytes, sha256: after.sha256 });
    },
    async settle(place, args, approved) {
      const look = await files.look(place, 0);
      const { before, after } = approved
        ? readWritePlan(approved)
        : { before: undefined, after: imageOf(String(args.content)) };
      if (isImage(look, after)) return "done";
      // Nobody wrote down what was there before an ungated call.
      if (before === undefined) return "unknown";
      const isAsBefore = before === null ? look.type === "absent" : isImage(look, before);
      return isAsBefore ? "not-done" : "unknown";
    },
  };
}

function deleting({ files, protectedPaths }: FileParts): Behaviour {
  return {
    description: "Deletes one file. Folders are not deleted.",
    async plan(place) {
      const look = await files.look(place, 0);
      if (look.type === "absent") throw absent(place);
      const { sha256, bytes } = look;
      return { action: "delete", root: place.root, path: place.path, before: { sha256, bytes } };
    },
    async run({ facts }) {
      const { root, path, before } = readDeletePlan(facts.plan);
      const effect = await files.remove({ root, path, protectedPaths }, before.sha256);
      return finished(effect, `${CHANGED} deleted`, { path, ...before });
    },
    async settle(place, _args, approved) {
      const look = await files.look(place, 0);
      if (look.type === "absent") return "done";
      return approved && isImage(look, readDeletePlan(approved).before) ? "not-done" : "unknown";
    },
  };
}

function finished(effect: Effect, changed: string, result: JsonObject): Finished {
  if (effect === "changed") return failed(changed);
  if (effect === "unsure") return { outcome: "unknown", why: "the disk did not confirm that it will last" };
  return { outcome: "done", result };
}

function failed(result: string): Finished {
  return { outcome: "failed", result };
}

function absent({ path, root }: Place): CallRefused {
  return new CallRefused("arguments-invalid", `/path: there is no file ${path} in ${root}`);
}

function imageOf(content: string): Image {
  return { sha256: sha256(content), bytes: Buffer.byteLength(content) };
}

function isImage(look: Look, image: Image): boolean {
  return look.type === "file" && look.sha256 === image.sha256;
}

function octal(mode: number): string {
  return mode.toString(8).padStart(3, "0");
}
