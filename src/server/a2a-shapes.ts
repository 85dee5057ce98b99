/**
 * What an A2A client may ask, as JSON of known shape. The SDK's codecs would take anything (a number for a text, an
 * object for an id); here what is wrong is told with its place. Unknown fields are ignored, null is absent, and both
 * spellings of ProtoJSON names are read.
 */
import { z } from "zod";
import { isObject, type Json, type JsonObject } from "../task/json.ts";
import { InvalidRequest } from "./a2a-errors.ts";

const ID_CHARS_MAX = 256;
const PAGE_MAX = 100;
const INT32_MAX = 2 ** 31 - 1;

/** What parseJson has taken is JSON all the way down. */
const AnyObject = z.custom<JsonObject>(isObject, "must be an object");
const AnyJson = z.custom<Json>((value) => value !== undefined);
const Id = z.string().min(1).max(ID_CHARS_MAX);
const Whole = z
  .union(
    [
      z.number(),
      z
        .string()
        .regex(/^\d{1,10}$/)
        .transform(Number),
    ],
    "must be a whole number",
  )
  .refine((n) => Number.isInteger(n) && n >= 0 && n <= INT32_MAX, "must be a whole number, 0 or more");
const Flag = z.union(
  [z.boolean(), z.enum(["true", "false"]).transform((text) => text === "true")],
  "must be true or false",
);

/** Protobuf does not tell an empty text from none. */
const Name = maybe(z.string().max(ID_CHARS_MAX)).transform((text) => text || undefined);

function maybe<T extends z.ZodType>(shape: T) {
  return shape.nullish().transform((value) => value ?? undefined);
}

function proto<T extends z.ZodRawShape>(shape: T) {
  return z.preprocess(camelKeys, z.object(shape));
}

function camelKeys(value: unknown): unknown {
  if (!isObject(value)) return value;
  const entries = Object.entries(value).map(([key, inner]) => [
    key.includes("_") ? key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()) : key,
    inner,
  ]);
  return Object.fromEntries(entries);
}

const CONTENTS = ["text", "raw", "url", "data"] as const;

const Part = proto({
  text: maybe(z.string()),
  raw: maybe(z.string().regex(/^[A-Za-z0-9+/_-]*={0,2}$/, "must be base64")),
  url: maybe(z.string().min(1)),
  data: maybe(AnyJson),
  mediaType: Name,
  filename: Name,
  metadata: maybe(AnyObject),
}).refine(
  (part) => CONTENTS.filter((name) => part[name] !== undefined).length === 1,
  "must have exactly one of text, raw, url and data",
);

const Message = proto({
  messageId: Id,
  taskId: Name,
  contextId: Name,
  role: z.union([z.literal("ROLE_USER"), z.literal(1)], 'must be "ROLE_USER"'),
  parts: z.array(Part).min(1),
  metadata: maybe(AnyObject),
  extensions: maybe(z.array(z.string())),
  referenceTaskIds: maybe(z.array(z.string())),
});

const Configuration = proto({
  acceptedOutputModes: maybe(z.array(z.string())),
  historyLength: maybe(Whole),
  returnImmediately: maybe(Flag),
  taskPushNotificationConfig: maybe(AnyObject),
});

const STATES = [
  "TASK_STATE_UNSPECIFIED",
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_REJECTED",
  "TASK_STATE_AUTH_REQUIRED",
] as const;
const State = z.union(
  [
    z.enum(STATES),
    z
      .int()
      .min(0)
      .max(STATES.length - 1)
      .transform((n) => STATES[n]),
  ],
  "must be the name of a state",
);

const Time = z.iso
  .datetime({ offset: true, error: "must be a time such as 2026-01-31T12:00:00Z" })
  .transform((text) => new Date(text).getTime())
  .refine((ms) => Number.isFinite(ms), "must be a time");

const Tenant = { tenant: Name };

export const SendShape = proto({
  ...Tenant,
  message: Message,
  configuration: maybe(Configuration),
  metadata: maybe(AnyObject),
});
export const GetShape = proto({ ...Tenant, id: Id, historyLength: maybe(Whole) });
export const TaskIdShape = proto({ ...Tenant, id: Id });
export const ListShape = proto({
  ...Tenant,
  contextId: Name,
  status: maybe(State),
  pageSize: maybe(Whole.refine((n) => n >= 1 && n <= PAGE_MAX, `must be from 1 to ${PAGE_MAX}`)),
  pageToken: maybe(z.string().max(1024)).transform((text) => text || undefined),
  historyLength: maybe(Whole),
  statusTimestampAfter: maybe(Time),
  includeArtifacts: maybe(Flag),
});
export const EmptyShape = proto(Tenant);

export type SendRequest = z.output<typeof SendShape>;
export type GetRequest = z.output<typeof GetShape>;
export type ListRequest = z.output<typeof ListShape>;

/** The value in this shape; throws what is wrong with it, and where. */
export function readShape<T>(shape: z.ZodType<T>, value: unknown): T {
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  throw new InvalidRequest(
    result.error.issues.map(({ path, message }) => ({
      pointer: path.map((step) => `/${String(step).replaceAll("~", "~0").replaceAll("/", "~1")}`).join(""),
      text: message,
    })),
  );
}
