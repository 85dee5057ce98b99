/** Programs that an operator names in the configuration, as a port. */
import { pathToFileURL } from "node:url";

/** What the module at this absolute path exports by default. */
export async function importDefault(path: string): Promise<unknown> {
  const module: { readonly default?: unknown } = await import(pathToFileURL(path).href);
  return module.default;
}
