/** Figures beside their floors and targets, as a table and as JSON. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, platform, release, totalmem } from "node:os";
import { join } from "node:path";

export type Unit = "/s" | "ms" | "s" | "MB" | "bytes" | "rows";

export interface Floor {
  /** What does no more than this. */
  readonly name: string;
  readonly value: number;
}

export interface Figure {
  readonly part: string;
  readonly name: string;
  readonly value: number;
  readonly unit: Unit;
  readonly floors?: readonly Floor[];
  readonly target?: Target;
}

export type Target =
  | { readonly atMost: number }
  | { readonly atLeast: number }
  /** Of the first floor. */
  | { readonly shareAtLeast: number };

function isMet({ value, floors, target }: Figure): boolean | undefined {
  if (!target) return undefined;
  if ("atMost" in target) return value <= target.atMost;
  if ("atLeast" in target) return value >= target.atLeast;
  return value >= target.shareAtLeast * (floors?.[0]?.value ?? Number.POSITIVE_INFINITY);
}

const COLUMNS = ["figure", "measured", "floor", "ratio", "target", ""] as const;

export function printReport(figures: readonly Figure[], machine: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(machine)) console.log(`${name.padEnd(12)}${value}`);
  const lines = figures.map((figure) => ({ part: figure.part, cells: toCells(figure) }));
  const widths = COLUMNS.map((title, i) =>
    Math.max(title.length, ...lines.flatMap(({ cells }) => cells.map((line) => line[i]?.length ?? 0))),
  );
  const print = (cells: readonly string[]) =>
    console.log(
      cells
        .map((cell, i) => (i === 1 || i === 3 ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
        .join("  ")
        .trimEnd(),
    );
  for (const [part, group] of Map.groupBy(lines, (line) => line.part)) {
    console.log(`\n${part}`);
    print(COLUMNS);
    for (const { cells } of group) for (const line of cells) print(line);
  }
  const judged = figures.map(isMet).filter((met) => met !== undefined);
  console.log(`\n${judged.filter(Boolean).length} of ${judged.length} targets met`);
}

/** One line for the figure with its first floor, one more for each other floor. */
function toCells(figure: Figure): string[][] {
  const { name, value, unit, floors = [] } = figure;
  const met = isMet(figure);
  const [first, ...others] = floors.map((floor) => [
    `${format(floor.value, unit)} ${floor.name}`,
    `×${round(value / floor.value)}`,
  ]);
  const verdict = met === undefined ? "" : met ? "PASS" : "FAIL";
  return [
    [name, format(value, unit), first?.[0] ?? "", first?.[1] ?? "", formatTarget(figure), verdict],
    ...others.map((floor) => ["", "", ...floor, "", ""]),
  ];
}

function formatTarget({ target, unit }: Figure): string {
  if (!target) return "";
  if ("atMost" in target) return `≤ ${format(target.atMost, unit)}`;
  if ("atLeast" in target) return `≥ ${format(target.atLeast, unit)}`;
  return `≥ ×${target.shareAtLeast}`;
}

function format(value: number, unit: Unit): string {
  return unit === "/s" ? `${round(value)}/s` : `${round(value)} ${unit}`;
}

/** Three digits that count. */
function round(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

export function describeMachine(root: string, diskP50Ms: number): Record<string, string> {
  return {
    date: new Date().toISOString(),
    commit: describeCommit(root),
    node: process.versions.node,
    sqlite: process.versions.sqlite ?? "",
    cores: `${cpus().length} × ${cpus()[0]?.model.trim() ?? "unknown"}`,
    memory: `${round(totalmem() / 2 ** 30)} GB`,
    system: `${platform()} ${release()}`,
    disk: `fdatasync of 4 KiB p50 ${round(diskP50Ms)} ms`,
  };
}

function describeCommit(root: string): string {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim();
  try {
    return git("rev-parse", "--short", "HEAD") + (git("status", "--porcelain", "--", "src") ? " and changes" : "");
  } catch {
    return "unknown"; // not a checkout
  }
}

export function saveReport(folder: string, name: string, content: Readonly<Record<string, unknown>>): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${name}-${new Date().toISOString().replaceAll(":", "-")}.json`);
  writeFileSync(path, `${JSON.stringify(content, null, 2)}\n`);
  return path;
}
