/** MCP over the pipes of a process that we start: the SDK's framing, our rules for environment, group and end. */
import { type JSONRPCMessage, ReadBuffer, serializeMessage, type Transport } from "@modelcontextprotocol/client";
import { type PipedProcess, spawnPiped } from "../ports/piped-process.ts";
import { MESSAGE_BYTES_MAX } from "./mcp-http.ts";

export interface StdioCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** The SDK knows a transport of this kind by these two, and then takes silence for an older server. */
  readonly stderr = null;
  pid: number | null = null;
  /** Why the process is gone, with its last words. */
  reason = "";

  readonly #command: StdioCommand;
  readonly #redact: (text: string) => string;
  readonly #buffer = new ReadBuffer({ maxBufferSize: MESSAGE_BYTES_MAX });
  #process: PipedProcess | undefined;
  #isDeaf = false;

  /** `redact`: before its last words are cut and joined with others, where a part of a secret would not be known. */
  constructor(command: StdioCommand, redact: (text: string) => string) {
    this.#command = command;
    this.#redact = redact;
  }

  async start(): Promise<void> {
    const { command, args, env } = this.#command;
    this.#process = spawnPiped(command, args, env, {
      onData: (chunk) => this.#read(chunk),
      onGone: (reason) => {
        this.reason ||= [reason, this.#redact(this.#process?.lastWords().trim() ?? "")].filter(Boolean).join(": ");
        this.onclose?.();
      },
    });
    this.pid = this.#process.pid || null;
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (!this.#process) throw new Error("not started");
    await this.#process.write(serializeMessage(message));
  }

  async close(): Promise<void> {
    await this.#process?.end();
    this.#buffer.clear();
  }

  #read(chunk: Buffer): void {
    if (this.#isDeaf) return;
    try {
      this.#buffer.append(chunk);
    } catch (error) {
      this.reason = error instanceof Error ? error.message : String(error);
      this.#isDeaf = true;
      // Not awaited: nothing that it says from here on is read, and its end is reported by `onGone`.
      this.close().catch(() => {});
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
}
