/** The provider's package, loaded when it is first needed, told everything by the configuration and nothing else. */
import type { LlmConfig } from "../config/config.ts";
import type { Fetch } from "../ports/network.ts";
import { ModelFailed } from "./model.ts";

export type ProviderConfig = Exclude<LlmConfig, { type: "scripted" }>;

/** Given explicitly: the packages would else take the address, and where the key goes, from the environment. */
const HOSTS = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta",
  "openai-compatible": undefined,
} as const satisfies Record<ProviderConfig["type"], string | undefined>;

const KEY_HEADERS = ["authorization", "x-api-key", "x-goog-api-key"];

/** The largest answer that is read; text and arguments have smaller limits of their own. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

export function hostOf(config: ProviderConfig): string {
  const address = config.host ?? HOSTS[config.type] ?? "";
  return URL.canParse(address) ? new URL(address).host : address;
}

export async function loadProviderModel(name: string, config: ProviderConfig, network: Fetch) {
  const baseURL = config.host ?? HOSTS[config.type];
  if (!baseURL || !URL.canParse(baseURL)) {
    throw new ModelFailed(
      `llm "${name}": host is ${baseURL ? `"${baseURL}", no url` : "missing"}. Set llms.${name}.host.`,
    );
  }
  if (!config.apiKey && !config.host) {
    throw new ModelFailed(`llm "${name}": no key for ${hostOf(config)}. Set llms.${name}.api_key.`);
  }
  // A host of one's own may need no key. The packages insist on one, and would look for it in the environment.
  const apiKey = config.apiKey || "none";
  const options = { baseURL, apiKey, fetch: guard(network, Boolean(config.apiKey)) };
  switch (config.type) {
    case "openai": {
      const provider = (await import("@ai-sdk/openai")).createOpenAI(options);
      return config.api === "responses" ? provider.responses(config.model) : provider.chat(config.model);
    }
    case "anthropic":
      return (await import("@ai-sdk/anthropic")).createAnthropic(options)(config.model);
    case "google":
      return (await import("@ai-sdk/google")).createGoogle(options)(config.model);
    case "openai-compatible": {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ ...options, name: "openai-compatible", includeUsage: true })(config.model);
    }
  }
}

/** No redirect takes the key elsewhere, no key is made up, no answer is endless. */
function guard(network: Fetch, hasKey: boolean): Fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    if (!hasKey) for (const name of KEY_HEADERS) headers.delete(name);
    const response = await network(input, { ...init, headers, redirect: "manual" });
    return response.body ? new Response(bounded(response.body), response) : response;
  };
}

function bounded(body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  let bytes = 0;
  const count = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      bytes += chunk.byteLength;
      if (bytes > ANSWER_BYTES_MAX) throw new Error(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`);
      controller.enqueue(chunk);
    },
  });
  return body.pipeThrough(count);
}
