/** For programs that build on Holdpoint: run its own proofs against your store, your tools and your agents. */
export { storeConformance } from "../store/conformance.ts";
export { MemoryStore } from "../store/memory.ts";
export { type Ack, checkHistory, type History, type TaskHistory } from "./checker.ts";
export { type CallHandler, type PortCall, pointsOf, wrapPort } from "./crash-points.ts";
export { type Ledger, type LedgerEntry, toLedgerEntry } from "./ledger.ts";
export { Random } from "./random.ts";
export { createScriptedAgent, createScriptedTool } from "./scripted-agent.ts";
export { Host, SimWorld } from "./sim-world.ts";
export { type SimulationResult, simulate } from "./simulation.ts";
