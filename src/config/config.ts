/** A valid configuration, as data: names resolved, defaults filled in, times in milliseconds, paths absolute. */
import type { JsonObject } from "../task/json.ts";
import type { Risk } from "../task/request.ts";

export interface Config {
  /** Absolute path of the file, and its folder; undefined for the built-in demo. */
  readonly file: string | undefined;
  readonly llms: ReadonlyMap<string, LlmConfig>;
  readonly tools: ReadonlyMap<string, ToolConfig>;
  readonly agents: ReadonlyMap<string, AgentConfig>;
  /** The one store that the agents name; undefined: SQLite in the data folder. */
  readonly store: StoreConfig | undefined;
  readonly server: ServerConfig;
}

/** Where something stands in the file, for people. */
export interface Place {
  readonly file: string;
  readonly line: number;
}

export type LlmConfig =
  | {
      readonly type: "scripted";
      readonly script: Script;
      /** Absolute path of the file it was read from. */
      readonly file?: string;
    }
  | {
      readonly type: "openai" | "anthropic" | "google" | "openai-compatible";
      readonly model: string;
      readonly apiKey: string | undefined;
      /** Base url of the provider's API; undefined: the provider's own. Required for openai-compatible. */
      readonly host: string | undefined;
      readonly temperature: number | undefined;
      readonly maxTokens: number | undefined;
      /** For `openai` only. */
      readonly api: "chat" | "responses";
    };

/** The scripted model's lines, validated (DESIGN: "Scripted model"). */
export interface Script {
  readonly scenarios: readonly Scenario[];
}

export interface Scenario {
  /** JavaScript regex source, matched case-insensitively on the text that opened the task. */
  readonly match: string;
  readonly turns: readonly ScriptTurn[];
}

export interface ScriptTurn {
  readonly say?: string;
  readonly call?: readonly { readonly tool: string; readonly args: JsonObject }[];
  readonly ask?: { readonly question: string; readonly choices?: readonly string[]; readonly multiple?: boolean };
  readonly delayMs?: number;
  /** Used instead of this turn when a call of the previous turn was denied, expired or canceled. */
  readonly denied?: Omit<ScriptTurn, "denied">;
}

interface ToolRule {
  readonly name: string;
  readonly enabled: boolean;
  readonly requiresApproval: boolean;
  /** The line that gates it, or the tool's own line when nothing does. */
  readonly place: Place;
  readonly approvalPrompt: string | undefined;
  readonly risk: Risk;
  readonly editable: boolean;
  readonly idempotent: boolean;
  readonly onAmbiguous: "ask" | "fail" | "retry";
  readonly timeoutMs: number;
}

export type ToolConfig =
  | (ToolRule & {
      readonly type: "command";
      readonly allowedCommands: readonly AllowedCommand[];
      readonly workingDirectory: string;
    })
  | (ToolRule & { readonly type: "read_file" | "write_file" | "delete_file"; readonly root: string })
  | (ToolRule & { readonly type: "ask_user" })
  | (ToolRule & McpConfig);

/** `args` are JavaScript regexes, one for each argument, anchored; undefined: any arguments. */
export interface AllowedCommand {
  readonly command: string;
  readonly args: readonly string[] | undefined;
}

export interface McpConfig {
  readonly type: "mcp";
  readonly transport:
    | {
        readonly type: "streamable_http" | "sse";
        readonly url: string;
        readonly headers: Readonly<Record<string, string>>;
      }
    | {
        readonly type: "stdio";
        readonly command: string;
        readonly args: readonly string[];
        readonly env: Readonly<Record<string, string>>;
        /** Command and arguments as they are written, where variables stand in them: `${NAME}` is shown, not its value. */
        readonly shownArgv?: readonly string[];
        /** What those variables hold; never shown. */
        readonly variables?: Readonly<Record<string, string>>;
      };
  /** The tools that may be used; undefined: all that the server has. */
  readonly tools: readonly string[] | undefined;
  /** Those of them that ask a person; `requiresApproval` gates all. */
  readonly requireApproval: readonly string[];
  readonly allowedHeaders: readonly string[];
}

export type AgentConfig = ModelAgentConfig | CodeAgentConfig | RemoteAgentConfig;

interface AgentBase {
  readonly name: string;
  readonly description: string;
  readonly place: Place;
  readonly task: TaskConfig;
  /** The dialect of its requests towards clients; absent: `input`. */
  readonly serveDialect?: "input" | "hitl" | "hector" | "kagent";
}

export interface ModelAgentConfig extends AgentBase {
  readonly type: "model";
  readonly llm: string;
  readonly instruction: string;
  /** Gates every tool of this agent. */
  readonly requiresApproval: boolean;
  readonly approvalPlace: Place;
  readonly tools: readonly string[];
  readonly subAgents: readonly string[];
  readonly maxIterations: number;
  readonly streaming: boolean;
}

export interface CodeAgentConfig extends AgentBase {
  readonly type: "code";
  /** Absolute path. */
  readonly module: string;
  readonly requiresApproval: boolean;
  readonly approvalPlace: Place;
  readonly tools: readonly string[];
}

export interface RemoteAgentConfig extends AgentBase {
  readonly type: "a2a";
  readonly url: string;
  readonly dialect: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface TaskConfig {
  /** `false`: no tracking; every gated call is denied. */
  readonly enabled: boolean;
  /** Resolved from `auto`. */
  readonly mode: "async" | "blocking";
  readonly workerPool: number;
  /** null: no deadline. */
  readonly inputTimeoutMs: number | null;
  readonly onTimeout: "fail" | "deny";
  readonly checkpoint: {
    /** Whether a task that was working at a crash goes on. */
    readonly autoResume: boolean;
    readonly autoResumeHitl: boolean;
    /** null: no limit. */
    readonly resumeTimeoutMs: number | null;
  };
}

export type StoreConfig =
  | { readonly name: string; readonly type: "sqlite"; readonly database: string }
  | { readonly name: string; readonly type: "postgres"; readonly url: string };

export interface ServerConfig {
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly grpcPort: number | undefined;
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly auth: {
    readonly tokens: readonly {
      readonly name: string;
      readonly token: string;
      readonly scopes: readonly Scope[];
      readonly tenant: string;
    }[];
    readonly jwt:
      | {
          readonly issuer: string;
          readonly audience: string;
          readonly jwksUrl: string;
          readonly scopesClaim: string;
          readonly tenantClaim: string;
        }
      | undefined;
    readonly selfApproval: "allow" | "deny";
  };
  readonly answersWithoutId: "allow" | "deny";
  readonly a2a: {
    readonly profile: "1.0.0" | "1.0.1";
    readonly legacy: boolean;
    readonly messageIds: "unique" | "ignored";
  };
  readonly push: { readonly allow: readonly string[] };
  readonly limits: { readonly rate: number; readonly burst: number };
  readonly agUi: { readonly tanstack: boolean };
  readonly trustedProxy: boolean;
}

export const SCOPES = ["task:submit", "task:read", "decide", "admin"] as const;
export type Scope = (typeof SCOPES)[number];
