/** `npm run tck:serve -- --port 9999 [--legacy]`: the server that the public TCK is run against. */
import { readFlags, stop } from "../flags.ts";
import { startSystemUnderTest } from "./system-under-test.ts";

const USAGE =
  "npm run tck:serve -- [--port 9999] [--legacy] [--profile 1.0.0|1.0.1] [--input-modes type,type] [--webhook-host name]";

const { values } = readFlags(USAGE, {
  options: {
    port: { type: "string", default: "9999" },
    legacy: { type: "boolean", default: false },
    profile: { type: "string", default: "1.0.0" },
    "input-modes": { type: "string", default: "*/*" },
    "webhook-host": { type: "string" },
  },
});

const { profile, legacy } = values;
const port = Number(values.port);
if (!/^\d+$/.test(values.port) || port > 65_535)
  stop(`--port is a number from 0 to 65535, not "${values.port}"\n${USAGE}`);
if (profile !== "1.0.0" && profile !== "1.0.1") stop(`--profile is 1.0.0 or 1.0.1, not "${profile}"\n${USAGE}`);
const webhookHost = values["webhook-host"];
const inputModes = values["input-modes"].split(",");

const system = await startSystemUnderTest({
  port,
  legacy,
  profile,
  inputModes,
  ...(webhookHost === undefined ? {} : { webhookHost }),
}).catch((error: unknown) => stop(error instanceof Error ? error.message : String(error)));
// By that name: the 0.3 TCK takes an address on a card for a leak.
const named = (url: string) => url.replace("127.0.0.1", "localhost");
console.log(`TCK system under test ready on ${named(system.url)} (agent ${named(system.agentUrl)})`);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void system.close());
