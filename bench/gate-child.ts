/** One measurement in a process of its own: role and plan come as arguments, the result goes back as a message. */
import { attend, becomeReady } from "./gate-attend.ts";
import { expire } from "./gate-expire.ts";
import { prepare } from "./gate-prepare.ts";
import { measureThroughput } from "./gate-throughput.ts";

const ROLES = { throughput: measureThroughput, prepare, ready: becomeReady, attend, expire } as const;
export type Roles = typeof ROLES;

const [role, plan = ""] = process.argv.slice(2);
// Trust boundary: only `children.ts` starts this file, and there the types hold role and plan together.
const result = await ROLES[role as keyof Roles](JSON.parse(plan));
process.send?.({ result }, () => process.disconnect());
