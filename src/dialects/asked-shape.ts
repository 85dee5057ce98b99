/** What is asked, read back from JSON that somebody else wrote. */
import { z } from "zod";
import { isObject, type JsonObject } from "../task/json.ts";
import { REQUEST_KINDS } from "../task/request.ts";
import type { Asked } from "./dialect.ts";
import { AnyObject, Id, objectOf, Sha256, Text, Texts } from "./shape.ts";

const ofAll = {
  requestId: Id.exactOptional(),
  title: Text.exactOptional(),
  prompt: Text.exactOptional(),
  digest: Sha256.exactOptional(),
  risk: z.enum(["low", "medium", "high"]).exactOptional(),
  path: Texts.exactOptional(),
  expiresAt: Text.exactOptional(),
  onTimeout: z.enum(["fail", "deny"]).exactOptional(),
};
const ofCalls = {
  tool: Text,
  args: AnyObject.exactOptional(),
  input: Text.exactOptional(),
  callId: Text.exactOptional(),
};

export const AskedShape = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("approval"),
    ...ofAll,
    ...ofCalls,
    argv: Texts.exactOptional(),
    editable: z.boolean().exactOptional(),
  }),
  z.object({ kind: z.literal("in-doubt"), ...ofAll, ...ofCalls }),
  z.object({ kind: z.literal("input"), ...ofAll, schema: AnyObject }),
  z.object({ kind: z.literal("auth"), ...ofAll, url: Text }),
]) satisfies z.ZodType<Asked>;

/** Whether somebody says what kind of request this is, in our words. */
export function hasKind(metadata: unknown): metadata is Record<string, unknown> {
  return isObject(metadata) && REQUEST_KINDS.some((kind) => kind === metadata.kind);
}

export function encodeAsked(asked: Asked): JsonObject {
  return objectOf({ ...asked });
}
