/** `npm run bench -- <what>`: measures the product beside what no product could beat. Targets are information. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { AGENTS_HELP, agents } from "./agents.ts";
import { GATE_HELP, gate } from "./gate.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const [what, ...args] = process.argv.slice(2);

if (what === "gate") {
  await gate(args, root);
} else if (what === "agents") {
  await agents(args, root);
} else {
  process.stderr.write(`npm run bench -- …\n\n${GATE_HELP}\n\n${AGENTS_HELP}\n`);
  process.exitCode = what === undefined || what === "help" ? 0 : 2;
}
