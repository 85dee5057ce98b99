/**
 * `npm run sabotage [-- --only text | --from text]`: applies each break alone, in a copy of the tree, and runs the suites that it
 * names. Fails unless every break is caught by every suite that it names, and the unbroken tree by none.
 */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readFlags, stop } from "../flags.ts";
import { BREAKS, type Break, SUITES, type SuiteName } from "./breaks.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const COPIED = [
  "src",
  "test",
  "examples",
  "docs",
  "README.md",
  "bin",
  "scripts",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
  "biome.json",
];
const SUITE_TIMEOUT_MS = 240_000;
const REPORT = "sabotage-report.json";

const USAGE = 'npm run sabotage -- [--only "part of a name"] [--from "part of a name"]';
const { values } = readFlags(USAGE, {
  options: { only: { type: "string", default: "" }, from: { type: "string", default: "" } },
});
const first = BREAKS.findIndex(({ name }) => name.includes(values.from));
const chosen = BREAKS.slice(Math.max(first, 0)).filter(({ name }) => name.includes(values.only));
if (chosen.length === 0)
  stop(`no break has that name; there are:\n${BREAKS.map(({ name }) => `  ${name}`).join("\n")}`);
const since = performance.now();
const missed: string[] = [];

const needed = [...new Set(chosen.flatMap(({ caughtBy }) => caughtBy))];
await inParallel(needed, async (folder, suite) => {
  const verdict = await runSuite(folder, suite);
  if (verdict !== "green") missed.push(`the unbroken tree: "${suite}" is ${verdict}${describeFailures(folder)}`);
  say(verdict === "green" ? "✓" : "✗", `unbroken: ${suite} is ${verdict}`);
});
if (missed.length === 0) {
  await inParallel(chosen, async (folder, broken) => {
    const path = join(folder, broken.file);
    const original = readFileSync(path, "utf8");
    writeFileSync(path, apply(broken, original));
    for (const suite of broken.caughtBy) {
      const verdict = await runSuite(folder, suite);
      say(verdict === "red" ? "✓" : "✗", `${broken.name}: ${suite} is ${verdict}`);
      if (verdict !== "red") missed.push(`${broken.name}: "${suite}" did not catch it (${verdict})`);
    }
    writeFileSync(path, original);
  });
}
const seconds = Math.round((performance.now() - since) / 1000);
console.log(`\n${chosen.length} breaks, ${missed.length} not caught, ${seconds} s`);
for (const line of missed) console.log(`  ${line}`);
process.exitCode = missed.length === 0 ? 0 : 1;

function say(mark: string, text: string): void {
  console.log(`${mark} ${String(Math.round((performance.now() - since) / 1000)).padStart(4)} s  ${text}`);
}

function apply({ name, find, replace }: Break, text: string): string {
  const count = text.split(find).length - 1;
  if (count !== 1) throw new Error(`"${name}": what it breaks stands ${count} times in the file; bring it up to date`);
  return text.replace(find, () => replace);
}

/** One copy of the tree for each core, so that breaks do not meet. */
async function inParallel<T>(items: readonly T[], work: (folder: string, item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  await Promise.all(
    Array.from({ length: Math.min(availableParallelism(), queue.length) }, async () => {
      const folder = mkdtempSync(join(tmpdir(), "sabotage-"));
      for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
      symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
      try {
        for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(folder, item);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
  );
}

type Verdict = "green" | "red" | "broken beyond testing";

/** Red means that tests ran and some failed; a tree that does not even load proves nothing. */
async function runSuite(folder: string, suite: SuiteName): Promise<Verdict> {
  const report = join(folder, REPORT);
  rmSync(report, { force: true });
  const args = ["run", "--reporter=json", `--outputFile=${report}`, "--bail=1", ...SUITES[suite]];
  const child = spawn(join(ROOT, "node_modules", ".bin", "vitest"), args, {
    cwd: folder,
    stdio: "ignore",
    detached: true,
  });
  const timer = setTimeout(() => child.pid && process.kill(-child.pid, "SIGKILL"), SUITE_TIMEOUT_MS);
  const code = await new Promise((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  if (code === 0) return "green";
  const { numFailedTests } = readReport(report);
  return numFailedTests > 0 ? "red" : "broken beyond testing";
}

/** As vitest writes it. */
interface Report {
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly failureMessages: readonly string[] }[];
  }[];
}

/** A suite that is red where nothing is broken must say why: the copy is gone afterwards. */
function describeFailures(folder: string): string {
  const results = readReport(join(folder, REPORT)).testResults.flatMap(({ assertionResults }) => assertionResults);
  return results
    .flatMap(({ fullName, failureMessages }) => failureMessages.map((message) => `\n    ${fullName}: ${message}`))
    .join("");
}

function readReport(path: string): Report {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Report;
  } catch {
    return { numFailedTests: 0, testResults: [] };
  }
}
