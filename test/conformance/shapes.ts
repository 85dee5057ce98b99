/** The objects of A2A 1.0 as JSON, closed: a field that the protocol does not have is an error, as in the TCK's schema. */
import { z } from "zod";

const Id = z.string().min(1);
const Struct = z.record(z.string(), z.unknown());
const CONTENTS = ["text", "raw", "url", "data"] as const;

const Part = z
  .strictObject({
    text: z.string().optional(),
    raw: z.base64().optional(),
    url: z.url().optional(),
    data: z.unknown().optional(),
    mediaType: z.string().optional(),
    filename: z.string().optional(),
    metadata: Struct.optional(),
  })
  .refine((part) => CONTENTS.filter((name) => part[name] !== undefined).length === 1, "one content");

export const Message = z.strictObject({
  messageId: Id,
  contextId: Id.optional(),
  taskId: Id.optional(),
  role: z.enum(["ROLE_USER", "ROLE_AGENT"]),
  parts: z.array(Part).min(1),
  metadata: Struct.optional(),
  extensions: z.array(z.string()).optional(),
  referenceTaskIds: z.array(z.string()).optional(),
});

const Artifact = z.strictObject({
  artifactId: Id,
  parts: z.array(Part).min(1),
  name: z.string().optional(),
  description: z.string().optional(),
  metadata: Struct.optional(),
  extensions: z.array(z.string()).optional(),
});

const STATES = [
  "SUBMITTED",
  "WORKING",
  "COMPLETED",
  "FAILED",
  "CANCELED",
  "INPUT_REQUIRED",
  "REJECTED",
  "AUTH_REQUIRED",
];

const Status = z.strictObject({
  state: z.enum(STATES.map((name) => `TASK_STATE_${name}`)),
  message: Message.optional(),
  timestamp: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/),
});

export const Task = z.strictObject({
  id: Id,
  contextId: Id,
  status: Status,
  artifacts: z.array(Artifact).optional(),
  history: z.array(Message).optional(),
  metadata: Struct.optional(),
});

export const SendMessageResponse = z.union([z.strictObject({ task: Task }), z.strictObject({ message: Message })]);

export const StreamResponse = z.union([
  z.strictObject({ task: Task }),
  z.strictObject({ message: Message }),
  z.strictObject({
    statusUpdate: z.strictObject({ taskId: Id, contextId: Id, status: Status, metadata: Struct.optional() }),
  }),
  z.strictObject({
    artifactUpdate: z.strictObject({
      taskId: Id,
      contextId: Id,
      artifact: Artifact,
      append: z.boolean().optional(),
      lastChunk: z.boolean().optional(),
      metadata: Struct.optional(),
    }),
  }),
]);

export const ListTasksResponse = z.strictObject({
  tasks: z.array(Task),
  nextPageToken: z.string(),
  pageSize: z.int(),
  totalSize: z.int(),
});

const SCHEMES = [
  "apiKeySecurityScheme",
  "httpAuthSecurityScheme",
  "oauth2SecurityScheme",
  "openIdConnectSecurityScheme",
  "mtlsSecurityScheme",
] as const;

const Skill = z.strictObject({
  id: Id,
  name: Id,
  description: z.string().min(1),
  tags: z.array(z.string()).min(1),
  examples: z.array(z.string()).optional(),
  inputModes: z.array(z.string()).optional(),
  outputModes: z.array(z.string()).optional(),
});

export const AgentCard = z.strictObject({
  name: Id,
  description: z.string().min(1),
  version: Id,
  supportedInterfaces: z
    .array(
      z.strictObject({
        url: z.url(),
        protocolBinding: z.enum(["JSONRPC", "HTTP+JSON", "GRPC"]),
        protocolVersion: z.string().regex(/^\d+\.\d+$/),
        tenant: z.string().optional(),
      }),
    )
    .min(1),
  capabilities: z.strictObject({
    streaming: z.boolean().optional(),
    pushNotifications: z.boolean().optional(),
    extendedAgentCard: z.boolean().optional(),
    extensions: z
      .array(
        z.strictObject({
          uri: Id,
          description: z.string().optional(),
          required: z.boolean().optional(),
          params: Struct.optional(),
        }),
      )
      .optional(),
  }),
  defaultInputModes: z.array(z.string().min(1)).min(1),
  defaultOutputModes: z.array(z.string().min(1)).min(1),
  skills: z.array(Skill).min(1),
  securitySchemes: z
    .record(
      Id,
      z.partialRecord(z.enum(SCHEMES), Struct).refine((scheme) => Object.keys(scheme).length === 1, "one scheme"),
    )
    .optional(),
  securityRequirements: z
    .array(z.strictObject({ schemes: z.record(Id, z.strictObject({ list: z.array(z.string()) })) }))
    .optional(),
  provider: z.strictObject({ organization: z.string(), url: z.url() }).optional(),
  documentationUrl: z.url().optional(),
  iconUrl: z.url().optional(),
});
