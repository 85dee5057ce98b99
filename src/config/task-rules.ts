/** The `task` section of an agent: how long it waits for people, and what happens after a crash. */
import type { TaskConfig } from "./config.ts";
import type { Section } from "./section.ts";

const TASK_KEYS = {
  enabled: { lost: "Tasks of this agent would be tracked." },
  backend: {},
  worker_pool: { lost: "The default of 5 workers would count." },
  input_timeout: { lost: "The default deadline would count." },
  on_timeout: { lost: "A task that nobody answers would fail." },
  hitl: { lost: 'The default "mode: auto" would count.' },
  checkpoint: { lost: "The defaults would count." },
} as const;
const HITL_KEYS = { mode: { lost: 'The default "mode: auto" would count.' } } as const;
const CHECKPOINT_KEYS = {
  enabled: { lost: "Checkpoints would be on." },
  strategy: { lost: "The default strategy, hybrid, would count." },
  interval: {},
  recovery: { lost: "The defaults would count." },
} as const;
const INTERVAL_KEYS = { every_n_iterations: {} } as const;
const RECOVERY_KEYS = {
  auto_resume: { lost: "Tasks would go on by themselves after a crash." },
  auto_resume_hitl: { lost: "Open requests would not be announced again." },
  resume_timeout: { lost: "Tasks of any age would go on after a crash." },
} as const;

const WORKERS_DEFAULT = 5;
const WORKERS_MAX = 10_000;
const BLOCKING_TIMEOUT_S = 600;
const TEN_YEARS_S = 315_360_000;

/** `storeNamed`: whether the agent has a `session_store`. */
export function readTaskRules<K extends string>(agent: Section<K | "task">, storeNamed: boolean): TaskConfig {
  const task = agent.section("task", TASK_KEYS);
  task?.choice("backend", ["memory", "sql"]);
  const mode = readMode(task, storeNamed);
  return {
    enabled: task?.flag("enabled") ?? true,
    mode,
    workerPool: task?.number("worker_pool", { min: 1, max: WORKERS_MAX, whole: true }) ?? WORKERS_DEFAULT,
    inputTimeoutMs: deadline(task, "input_timeout", mode === "blocking" ? BLOCKING_TIMEOUT_S : 0),
    onTimeout: task?.choice("on_timeout", ["fail", "deny"]) ?? "fail",
    checkpoint: readCheckpoint(task, mode),
  };
}

type TaskSection = Section<keyof typeof TASK_KEYS>;

function readMode(task: TaskSection | undefined, storeNamed: boolean): TaskConfig["mode"] {
  const hitl = task?.section("hitl", HITL_KEYS);
  const mode = hitl?.choice("mode", ["auto", "blocking", "async"]) ?? "auto";
  if (mode === "async" && !storeNamed) {
    hitl?.report.error(hitl.valueSpanOf("mode"), "async HITL requires session_store to be configured");
  }
  if (mode !== "auto") return mode;
  // Where nothing at all is said, what is kept is resumed.
  return storeNamed || !task || task.size === 0 ? "async" : "blocking";
}

function readCheckpoint(task: TaskSection | undefined, mode: TaskConfig["mode"]): TaskConfig["checkpoint"] {
  const checkpoint = task?.section("checkpoint", CHECKPOINT_KEYS);
  checkpoint?.choice("strategy", ["event", "interval", "hybrid"]);
  checkpoint?.section("interval", INTERVAL_KEYS)?.number("every_n_iterations", { min: 1, max: 10_000, whole: true });
  const enabled = checkpoint?.flag("enabled") ?? true;
  const recovery = checkpoint?.section("recovery", RECOVERY_KEYS);
  const autoResume = recovery?.flag("auto_resume") ?? true;
  if (recovery?.has("auto_resume") && autoResume && mode === "blocking") {
    recovery.report.warn(recovery.spanOf("auto_resume"), '"auto_resume" has no effect in blocking mode', {
      consequence: "A task that waits when the server stops is lost. Name a session_store to keep it.",
    });
  }
  return {
    autoResume: autoResume && enabled && mode === "async",
    autoResumeHitl: recovery?.flag("auto_resume_hitl") ?? false,
    resumeTimeoutMs: deadline(recovery, "resume_timeout", 0),
  };
}

/** Seconds, 0 for none. */
function deadline<K extends string>(section: Section<K> | undefined, key: K, otherwise: number): number | null {
  const seconds = section?.number(key, { min: 0, max: TEN_YEARS_S }) ?? otherwise;
  return seconds === 0 ? null : seconds * 1_000;
}
