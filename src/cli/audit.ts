/** `holdpoint audit`: the chain, checked and exported. Reads only; a server may be running. */
import { HoldpointError } from "../errors.ts";
import { systemClock } from "../ports/clock.ts";
import { readText } from "../ports/files.ts";
import { systemIds } from "../ports/ids.ts";
import { type AuditReport, verifyAudit } from "../store/seal.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { isObject } from "../task/json.ts";
import { dataFolder } from "./data-folder.ts";

const STDIN = 0;

export async function auditVerify(flags: { data: string; head?: string; json?: boolean }): Promise<boolean> {
  const head = flags.head === undefined ? undefined : readHead(flags.head);
  const store = openReadOnly(flags.data);
  const damage = (await store.findDamage()).map((text) => `the file is damaged: ${text}`);
  const chain = await verifyAudit(store, head);
  const report = { ...chain, ok: chain.ok && damage.length === 0, problems: [...damage, ...chain.problems] };
  process.stdout.write(flags.json ? `${JSON.stringify(report)}\n` : describe(report));
  return report.ok;
}

export async function auditHead(flags: { data: string }): Promise<void> {
  const seal = await openReadOnly(flags.data).lastSeal();
  if (!seal)
    throw new HoldpointError("store-unavailable", "nothing has been sealed yet; a running server seals once a second");
  process.stdout.write(`${JSON.stringify({ n: seal.n, hash: seal.hash })}\n`);
}

function openReadOnly(data: string): SqliteStore {
  return SqliteStore.open({ path: dataFolder(data).database, clock: systemClock, ids: systemIds, readOnly: true });
}

function readHead(file: string): { n: number; hash: string } {
  const wrong = `${file} is not a head; give the line that "holdpoint audit head" printed`;
  try {
    const head: unknown = JSON.parse(readText(file === "-" ? STDIN : file));
    if (isObject(head) && typeof head.n === "number" && typeof head.hash === "string")
      return { n: head.n, hash: head.hash };
  } catch (cause) {
    throw new HoldpointError("usage-invalid", wrong, { cause });
  }
  throw new HoldpointError("usage-invalid", wrong);
}

function describe({ ok, events, tasks, seals, purged, unsealed, problems }: AuditReport): string {
  if (ok && events === 0) return "✓ nothing has been written here yet.\n";
  const counts = `${events} events of ${tasks} tasks under ${seals} seals`;
  const notes = [purged > 0 ? `${purged} purged` : "", unsealed > 0 ? `${unsealed} not yet sealed` : ""].filter(
    Boolean,
  );
  const suffix = notes.length > 0 ? ` (${notes.join(", ")})` : "";
  if (ok) return `✓ ${counts}${suffix}: nothing was changed.\n`;
  return [
    `✗ ${counts}${suffix}: the log is not what was written.`,
    ...problems.map((problem) => `  ${problem}`),
    "",
  ].join("\n");
}
