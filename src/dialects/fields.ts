/** Form fields and the JSON Schema of the values that they give: one field for each property. */
import { z } from "zod";
import { isObject, type JsonObject } from "../task/json.ts";
import { objectOf, Text, Texts } from "./shape.ts";

type FieldType = "text" | "select" | "multiselect" | "number" | "boolean" | "json";

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  readonly label: string;
  readonly required: boolean;
  readonly options?: readonly string[];
}

/** A schema without properties has no fields; whoever answers it reads the schema itself. */
export function fieldsOf(schema: JsonObject): readonly Field[] {
  if (!isObject(schema.properties)) return [];
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).map(([name, property]) => {
    const about = isObject(property) ? property : {};
    const label = typeof about.title === "string" ? about.title : name;
    return { name, ...inputOf(about), label, required: required.includes(name) };
  });
}

export function encodeField({ name, type, label, required, options }: Field): JsonObject {
  return objectOf({ name, type, label, required, options });
}

/** A field as others write it. */
export const WireField = z.object({
  name: Text,
  type: Text.optional(),
  label: Text.optional(),
  required: z.boolean().optional(),
  options: Texts.optional(),
});

export function schemaOf(fields: readonly z.infer<typeof WireField>[]): JsonObject {
  return {
    type: "object",
    additionalProperties: false,
    required: fields.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(fields.map((field) => [field.name, propertyOf(field)])),
  };
}

function inputOf(property: Readonly<Record<string, unknown>>): Pick<Field, "type" | "options"> {
  const options = choicesOf(property);
  if (options) return { type: "select", options };
  switch (property.type) {
    case "string":
      return { type: "text" };
    case "integer":
    case "number":
      return { type: "number" };
    case "boolean":
      return { type: "boolean" };
    case "array": {
      const several = isObject(property.items) ? choicesOf(property.items) : undefined;
      return several ? { type: "multiselect", options: several } : { type: "json" };
    }
    default:
      return { type: "json" };
  }
}

function choicesOf({ type, enum: choices }: Readonly<Record<string, unknown>>): readonly string[] | undefined {
  if (!Array.isArray(choices) || (type !== undefined && type !== "string")) return undefined;
  return choices.every((choice) => typeof choice === "string") ? choices : undefined;
}

function propertyOf({ name, type, label = name, options }: z.infer<typeof WireField>): JsonObject {
  const one = { type: "string", ...(options ? { enum: options } : {}) };
  switch (type) {
    case "number":
    case "boolean":
      return { type, title: label };
    case "json":
      return { title: label };
    case "multiselect":
      return { type: "array", title: label, items: one, uniqueItems: true };
    default:
      // A kind of field that nobody here knows is still something that a person can type.
      return { ...one, title: label };
  }
}
