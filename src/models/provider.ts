/** Every provider through one library: one prompt, one streamed reply. The gate executes the tools, never the library. */
import type { LanguageModelMiddleware } from "ai";
import type { Clock } from "../ports/clock.ts";
import type { Fetch } from "../ports/network.ts";
import type { Usage } from "../task/event.ts";
import { isObject, type JsonObject, parseJson } from "../task/json.ts";
import { encodeMessages, encodeParameters, namesOf } from "./encode-prompt.ts";
import { LiveText } from "./live-text.ts";
import type { Model, ModelReply, Prompt, ReplyOptions } from "./model.ts";
import { judgeFailure } from "./provider-failure.ts";
import { loadProviderModel, type ProviderConfig } from "./provider-package.ts";
import type { ToolNames } from "./tool-names.ts";

/** Between the attempts of one call; what still fails then is the runtime's to try again later. */
const RETRY_DELAYS_MS = [500, 2_000] as const;
/** A provider that says nothing for so long will not. Long enough for a model that thinks before it speaks. */
const SILENCE_MAX_MS = 5 * 60 * 1000;
/** Above the largest argument that a tool takes (`write_file.content`), escapes included. */
const ARGS_BYTES_MAX = 4 * 1024 * 1024;
const CALLS_MAX = 128;
const NAME_CHARACTERS_MAX = 256;

export function createProviderModel(
  name: string,
  config: ProviderConfig,
  parts: { readonly clock: Clock; readonly fetch: Fetch },
): Model {
  const { clock } = parts;
  let loaded: ReturnType<typeof load> | undefined;
  const load = async () => ({
    library: await import("ai"),
    model: await loadProviderModel(name, config, parts.fetch),
  });

  /** One attempt. */
  async function ask(prompt: Prompt, text: LiveText, signal: AbortSignal, onPart: () => void): Promise<ModelReply> {
    loaded ??= load();
    const { library, model } = await loaded;
    const names = namesOf(prompt);
    const calls: RawCall[] = [];
    const tools = prompt.tools.map(({ name, description, parameters }) => {
      const inputSchema = library.jsonSchema(encodeParameters(parameters));
      return [names.toWire(name), { description, inputSchema }] as const;
    });
    const stop = new AbortController();
    const { stream } = library.streamText({
      model: library.wrapLanguageModel({ model, middleware: listen(calls) }),
      ...(prompt.system === "" ? {} : { instructions: prompt.system }),
      messages: encodeMessages(prompt, names),
      ...(tools.length === 0 ? {} : { tools: Object.fromEntries(tools) }),
      ...(config.temperature === undefined ? {} : { temperature: config.temperature }),
      ...(config.maxTokens === undefined ? {} : { maxOutputTokens: config.maxTokens }),
      // The log is ours: nothing needs to be kept at the provider.
      ...(config.type === "openai" ? { providerOptions: { openai: { store: false } } } : {}),
      maxRetries: 0,
      abortSignal: AbortSignal.any([signal, stop.signal]),
      // Errors come in the stream; the library would print them too.
      onError: () => {},
    });
    for await (const part of stream) {
      onPart();
      signal.throwIfAborted();
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta" && !text.add(part.text)) {
        stop.abort();
        return { text: text.end(), calls: decodeCalls(calls, names) };
      }
      if (part.type !== "finish") continue;
      if (part.finishReason === "interrupted") throw new Error("the answer broke off");
      const { inputTokens, outputTokens } = part.totalUsage;
      const usage = decodeUsage(inputTokens, outputTokens);
      return { text: text.end(), calls: decodeCalls(calls, names), ...(usage ? { usage } : {}) };
    }
    throw new Error("the answer broke off");
  }

  async function reply(prompt: Prompt, { onText, signal }: ReplyOptions): Promise<ModelReply> {
    signal.throwIfAborted();
    for (let attempt = 0; ; attempt++) {
      const text = new LiveText(onText);
      const silence = watchSilence(clock, signal);
      try {
        return await untilAborted(ask(prompt, text, silence.signal, silence.heard), silence.signal);
      } catch (cause) {
        signal.throwIfAborted();
        if (silence.signal.aborted) throw new Error(`llm "${name}" said nothing for ${SILENCE_MAX_MS / 1000} s`);
        const { error, transient } = judgeFailure(name, config, cause, clock.nowMs());
        const delayMs = RETRY_DELAYS_MS[attempt];
        // What was shown cannot be taken back: then the runtime begins the turn again.
        if (!transient || delayMs === undefined || text.isShown) throw error;
        await clock.sleep(delayMs, signal);
        signal.throwIfAborted();
      } finally {
        silence.end();
      }
    }
  }

  return { reply };
}

/** A call as the model wrote it. */
interface RawCall {
  readonly id: string;
  readonly name: string;
  readonly input: string;
}

/**
 * Takes the calls before the library parses them: it would mend what must be refused (duplicate keys). Keeps the
 * provider's warnings from being printed.
 */
function listen(calls: RawCall[]): LanguageModelMiddleware {
  return {
    specificationVersion: "v4",
    wrapStream: async ({ doStream }) => {
      const { stream, ...rest } = await doStream();
      const tap: typeof stream = stream.pipeThrough(
        new TransformStream({
          transform(part, controller) {
            if (part.type === "tool-call") calls.push({ id: part.toolCallId, name: part.toolName, input: part.input });
            controller.enqueue(part.type === "stream-start" ? { ...part, warnings: [] } : part);
          },
        }),
      );
      return { ...rest, stream: tap };
    },
  };
}

function decodeCalls(calls: readonly RawCall[], names: ToolNames): ModelReply["calls"] {
  return calls.slice(0, CALLS_MAX).map(({ id, name, input }) => ({
    tool: names.toOurs(name).slice(0, NAME_CHARACTERS_MAX).toWellFormed(),
    modelCallId: id.slice(0, NAME_CHARACTERS_MAX).toWellFormed(),
    ...decodeArgs(input),
  }));
}

function decodeArgs(input: string): { args: JsonObject; problem?: string } {
  // Some hosts send nothing where a tool takes nothing.
  if (input.trim() === "") return { args: {} };
  const parsed = parseJson(input, ARGS_BYTES_MAX);
  if (!parsed.ok) {
    const { pointer, text } = parsed.problem;
    return { args: {}, problem: `The arguments cannot be read${pointer && ` at ${pointer}`}: ${text}` };
  }
  if (!isObject(parsed.value)) return { args: {}, problem: "The arguments are not a JSON object." };
  // parseJson made it of JSON alone.
  return { args: parsed.value as JsonObject };
}

function decodeUsage(input: number | undefined, output: number | undefined): Usage | undefined {
  if (input === undefined && output === undefined) return undefined;
  const count = (tokens: number | undefined) => (Number.isSafeInteger(tokens) ? Math.max(tokens ?? 0, 0) : 0);
  return { inputTokens: count(input), outputTokens: count(output) };
}

/** Aborts when nothing was heard for too long, or when the caller does. */
function watchSilence(clock: Clock, signal: AbortSignal) {
  const silent = new AbortController();
  const ended = new AbortController();
  let heardAtMs = clock.nowMs();
  const watch = async () => {
    for (;;) {
      const leftMs = heardAtMs + SILENCE_MAX_MS - clock.nowMs();
      if (leftMs <= 0) return silent.abort();
      await clock.sleep(leftMs, ended.signal);
      if (ended.signal.aborted) return;
    }
  };
  void watch();
  return {
    signal: AbortSignal.any([signal, silent.signal]),
    heard: () => {
      heardAtMs = clock.nowMs();
    },
    end: () => ended.abort(),
  };
}

/** Rejects as soon as the caller aborts, whatever still hangs. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const done = new AbortController();
  const aborted = new Promise<never>((_, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true, signal: done.signal });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    done.abort();
  }
}
