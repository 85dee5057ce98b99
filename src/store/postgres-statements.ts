/** The statements of the PostgreSQL store, each prepared at its first use on a connection. */
import { APPEND } from "./postgres-append.ts";
import type { Statement } from "./postgres-connection.ts";

/** Advisory locks of ours: the letters "hold", then which. */
export const LOCKS = { migrate: "1752132708, 1", seal: "1752132708, 2" } as const;

const ENDED = "state in ('completed', 'failed', 'canceled', 'rejected') and not purged";
/** In an index condition the clock must be one value for the whole statement. */
const NOW = "(select holdpoint.clock_ms())";
const STATEMENTS = {
  append: APPEND,
  /** At least one row, so that the clock is answered for an unknown task too. */
  read: `select greatest(holdpoint.clock_ms(), task.updated_at) as now, seq, at, body, hash
    from (values (1)) as always
      left join holdpoint.tasks as task on task.tenant = $1 and task.id = $2
      left join holdpoint.events as event on event.tenant = $1 and event.task_id = $2 and seq > $3
    order by seq`,
  findMessage: "select task_id from holdpoint.events where tenant = $1 and message_hash = $2",
  readVersions: `select coalesce(version, 0) as version
    from unnest($1::text[], $2::text[]) with ordinality as wanted (tenant, id, place)
      left join holdpoint.tasks on tasks.tenant = wanted.tenant and tasks.id = wanted.id
    order by place`,
  readBlob: "select content from holdpoint.blobs where tenant = $1 and task_id = $2 and sha256 = $3",
  readRequest: "select status from holdpoint.requests where tenant = $1 and task_id = $2 and n = $3",

  claimDue: `with due as materialized (
      select pk, lease_until is not null as abandoned from holdpoint.tasks
      where wake_at <= ${NOW} and (retry_at is null or retry_at <= ${NOW}) and (lease_until is null or lease_until <= ${NOW})
        and (tenant, id) not in (select * from unnest($3::text[], $4::text[]))
      order by wake_at limit $1 for update skip locked),
    taken as (
      update holdpoint.tasks set lease_until = holdpoint.clock_ms() + $2, fence = fence + 1
      from due where tasks.pk = due.pk returning tenant, id, fence, attempts, wake_at, abandoned)
    select tenant, id, fence, attempts, abandoned from taken order by wake_at`,
  renew: `update holdpoint.tasks set lease_until = holdpoint.clock_ms() + $1
    from unnest($2::text[], $3::text[], $4::bigint[]) as held (tenant, id, fence)
    where tasks.tenant = held.tenant and tasks.id = held.id and tasks.fence = held.fence and lease_until is not null`,
  release: `update holdpoint.tasks set lease_until = null, retry_at = holdpoint.clock_ms() + $4,
      attempts = coalesce($5, 0)
    where tenant = $1 and id = $2 and fence = $3 and lease_until is not null`,

  trySealLock: `select pg_try_advisory_xact_lock(${LOCKS.seal}) as locked`,
  unsealedEvents: `select pk, tenant, task_id, seq, at, hash from holdpoint.events where seal is null
    order by tenant, task_id, seq limit $1`,
  clock: "select holdpoint.clock_ms() as now",
  insertSeal: "insert into holdpoint.seals (n, at, count, previous, hash) values ($1, $2, $3, $4, $5)",
  setSeal: "update holdpoint.events set seal = $1 where pk = any ($2::bigint[])",
  lastSeal: "select n, at, count, previous, hash from holdpoint.seals order by n desc limit 1",

  sealsAfter: "select n, at, count, previous, hash from holdpoint.seals where n > $1 order by n limit $2",
  eventsAfter: `select tenant, task_id, seq, at, body, hash, seal from holdpoint.events
    where (tenant, task_id, seq) > ($1, $2, $3) order by tenant, task_id, seq limit $4`,
  sealedAfter: `select tenant, task_id, seq, at, null as body, hash, seal from holdpoint.events
    where seal is not null and (seal, tenant, task_id, seq) > ($1, $2, $3, $4)
    order by seal, tenant, task_id, seq limit $5`,
  tasksAfter: `select tenant, id, version, state in ('completed', 'failed', 'canceled', 'rejected') as ended from holdpoint.tasks
    where (tenant, id) > ($1, $2) order by tenant, id limit $3`,

  purge: `with ended as materialized (
      select pk, tenant, id from holdpoint.tasks where ${ENDED} and updated_at < $1
      order by updated_at limit $2 for update skip locked),
    marked as (update holdpoint.tasks set purged = true from ended where tasks.pk = ended.pk),
    emptied as (
      update holdpoint.events set body = null from ended where events.tenant = ended.tenant and task_id = ended.id),
    dropped as (delete from holdpoint.blobs using ended where blobs.tenant = ended.tenant and task_id = ended.id)
    select count(*) as purged from ended`,
  ping: "update holdpoint.meta set value = value where key = 'schema'",
} as const;

type Name = keyof typeof STATEMENTS;

// Object.fromEntries forgets the keys; they are those of STATEMENTS.
export const POSTGRES = Object.fromEntries(
  Object.entries(STATEMENTS).map(([name, text]) => [name, { name, text }]),
) as Readonly<Record<Name, Statement>>;
