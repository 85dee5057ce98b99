/** The model that a configuration names. */
import type { LlmConfig } from "../config/config.ts";
import type { Clock } from "../ports/clock.ts";
import type { Fetch } from "../ports/network.ts";
import type { Model } from "./model.ts";
import { createProviderModel } from "./provider.ts";
import { createScriptedModel } from "./scripted.ts";

export interface ModelParts {
  readonly clock: Clock;
  readonly fetch: Fetch;
}

export function createModel(name: string, config: LlmConfig, parts: ModelParts): Model {
  return config.type === "scripted"
    ? createScriptedModel(config.script, parts.clock)
    : createProviderModel(name, config, parts);
}
