/** What the file tools would do: the plans that are shown, hashed and executed, read back from JSON with a check. */
import type { Difference } from "./files-diff.ts";
import { COUNT, createPlanReader, exactly, SHA256, TEXT, TEXTS } from "./plan.ts";

/** A file's content, without the content. */
export type Image = { readonly sha256: string; readonly bytes: number };

export type ReadPlan = {
  readonly action: "read";
  readonly root: string;
  readonly path: string;
  readonly bytesMax: number;
};

export type WritePlan = {
  readonly action: "write";
  /** A real path. */
  readonly root: string;
  readonly path: string;
  /** null: there is no such file. */
  readonly before: Image | null;
  readonly after: Image;
  readonly diff: Difference;
  /** Of the file afterwards, octal. */
  readonly mode: string;
  /** Folders that are made for it. */
  readonly newFolders: readonly string[];
};

export type DeletePlan = {
  readonly action: "delete";
  readonly root: string;
  readonly path: string;
  readonly before: Image;
};

const ROOT = { type: "string", pattern: "^/" };
const PATH = { type: "string", minLength: 1 };
const IMAGE = exactly({ sha256: SHA256, bytes: COUNT });

export const readReadPlan = createPlanReader<ReadPlan>(
  exactly({ action: { const: "read" }, root: ROOT, path: PATH, bytesMax: COUNT }),
);

export const readWritePlan = createPlanReader<WritePlan>(
  exactly({
    action: { const: "write" },
    root: ROOT,
    path: PATH,
    before: { anyOf: [IMAGE, { type: "null" }] },
    after: IMAGE,
    diff: {
      anyOf: [
        exactly({ type: { const: "unified" }, text: TEXT }),
        exactly({ type: { const: "new-file" } }),
        exactly({ type: { const: "not-shown" }, why: TEXT }),
      ],
    },
    mode: { type: "string", pattern: "^[0-7]{3}$" },
    newFolders: TEXTS,
  }),
);

export const readDeletePlan = createPlanReader<DeletePlan>(
  exactly({ action: { const: "delete" }, root: ROOT, path: PATH, before: IMAGE }),
);
