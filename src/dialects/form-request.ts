/** A form that asks: fields to fill in, and in its metadata what they are about. */
import { z } from "zod";
import { unreachable } from "../errors.ts";
import type { Json, JsonObject } from "../task/json.ts";
import { IN_DOUBT_ANSWERS } from "../task/request.ts";
import { AskedShape, hasKind } from "./asked-shape.ts";
import { type Asked, type Decoded, decoded } from "./dialect.ts";
import { encodeField, type Field, fieldsOf, schemaOf, WireField } from "./fields.ts";
import { AnyObject, objectOf, readShape, Text } from "./shape.ts";

export function encodeForm(asked: Asked): JsonObject {
  return objectOf({
    title: asked.title,
    description: asked.prompt,
    fields: fieldsFor(asked).map(encodeField),
    metadata: objectOf(metadataOf(asked)),
  });
}

const Form = z.object({
  title: Text.nullish(),
  description: Text.nullish(),
  fields: z.array(WireField).nullish(),
  metadata: AnyObject.nullish(),
});

/** Forms of others say less: without a kind in our words, a form is a question with these fields. */
export function decodeForm(data: unknown, requestId: string | undefined): Decoded<Asked> {
  const form = readShape(Form, data);
  if (form.outcome !== "decoded") return form;
  const { title, description, fields, metadata } = form.value;
  const said = {
    ...(requestId === undefined ? {} : { requestId }),
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof description === "string" ? { prompt: description } : {}),
  };
  const schema = schemaOf(fields ?? []);
  if (!hasKind(metadata)) return decoded({ kind: "input", schema, ...said });
  return readShape(AskedShape, { ...(metadata.kind === "input" ? { schema } : {}), ...metadata, ...said }, "/metadata");
}

function metadataOf(asked: Asked): Readonly<Record<string, Json | undefined>> {
  const { kind, digest, risk, path, expiresAt, onTimeout } = asked;
  const rest = { risk, path, expiresAt, onTimeout };
  switch (kind) {
    case "approval":
      return { kind, tool: asked.tool, args: asked.args, argv: asked.argv, digest, editable: asked.editable, ...rest };
    case "in-doubt":
      return { kind, tool: asked.tool, args: asked.args, digest, ...rest };
    case "input":
      return { kind, schema: asked.schema, digest, ...rest };
    case "auth":
      return { kind, url: asked.url, digest, ...rest };
    default:
      return unreachable(asked);
  }
}

const DECISION: readonly Field[] = [
  { name: "decision", type: "select", label: "Decision", required: true, options: ["approve", "deny"] },
  { name: "reason", type: "text", label: "Reason", required: false },
];
const CHANGES: Field = { name: "editedArgs", type: "json", label: "Changed arguments", required: false };
const OUTCOME: Field = { name: "outcome", type: "select", label: "Outcome", required: true, options: IN_DOUBT_ANSWERS };

function fieldsFor(asked: Asked): readonly Field[] {
  switch (asked.kind) {
    case "approval":
      return asked.editable ? [...DECISION, CHANGES] : DECISION;
    case "in-doubt":
      return [OUTCOME];
    case "input":
      return fieldsOf(asked.schema);
    case "auth":
      return [];
    default:
      return unreachable(asked);
  }
}
