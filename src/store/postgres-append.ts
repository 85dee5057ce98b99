/**
 * `append` as one function inside PostgreSQL: one round trip, one transaction, and no client that can vanish while it
 * holds the lock. Each statement of it sees everything that was committed before the task's row was locked.
 */
import { hash } from "node:crypto";
import type { TaskKey } from "../task/event.ts";
import type { Digest } from "../task/request.ts";
import type { Rows } from "../task/rows.ts";
import { encodeDigest } from "./listing.ts";
import type { Entry } from "./store.ts";

/** Raised inside the function: undoes all that it has written, and means "conflict". */
export const GUARD_FAILED = "HP001";

export const APPEND_FUNCTION = `
  create function holdpoint.append(
    p_tenant text, p_id text, p_expected bigint, p_fence bigint, p_task jsonb, p_events json,
    p_opened json, p_closed json, p_claimed json, p_ended json, p_blobs json
  ) returns text language plpgsql as $$
  declare
    v_version bigint;
    v_updated_at bigint;
    v_fence bigint;
    v_count bigint;
  begin
    select version, updated_at, case when lease_until is not null then fence end
      into v_version, v_updated_at, v_fence
      from holdpoint.tasks where tenant = p_tenant and id = p_id for update;
    if p_fence is not null and p_fence is distinct from v_fence then return 'fenced'; end if;
    if p_expected <> coalesce(v_version, 0) then return 'conflict'; end if;

    if p_expected = 0 then
      insert into holdpoint.tasks (tenant, id, agent, context_id, state, version, created_at, updated_at, wake_at)
        select p_tenant, p_id, agent, context_id, state, json_array_length(p_events), created_at, updated_at, wake_at
        from jsonb_to_record(p_task)
          as task (agent text, context_id text, state text, created_at bigint, updated_at bigint, wake_at bigint)
        on conflict do nothing;
      if not found then return 'conflict'; end if;
    else
      update holdpoint.tasks set state = p_task ->> 'state', version = p_expected + json_array_length(p_events),
          updated_at = (p_task ->> 'updated_at')::bigint, wake_at = (p_task ->> 'wake_at')::bigint, retry_at = null
        where tenant = p_tenant and id = p_id;
    end if;

    insert into holdpoint.events (tenant, task_id, seq, at, body, hash, message_hash)
      select p_tenant, p_id, seq, at, body, decode(hash, 'hex'), decode(message_hash, 'hex')
      from json_to_recordset(p_events) as event (seq bigint, at bigint, body text, hash text, message_hash text);

    if p_opened is not null then
      insert into holdpoint.requests (tenant, task_id, n, kind, agent, status, digest, opened_at, expires_at)
        select p_tenant, p_id, n, kind, agent, 'open', decode(digest, 'hex'), opened_at, expires_at
        from json_to_recordset(p_opened)
          as opened (n bigint, kind text, agent text, digest text, opened_at bigint, expires_at bigint);
    end if;

    if p_closed is not null then
      -- The second gate, beside the version. The clock is read here, not when the transaction began; and for one task
      -- it never goes back behind what was committed.
      update holdpoint.requests as request set status = closed.outcome
        from json_to_recordset(p_closed) as closed (n bigint, outcome text, digest text, deadline text)
        where tenant = p_tenant and task_id = p_id and request.n = closed.n and status = 'open'
          and request.digest = decode(closed.digest, 'hex')
          and case deadline
            when 'ahead' then expires_at is null or expires_at > greatest(holdpoint.clock_ms(), v_updated_at)
            when 'passed' then expires_at <= greatest(holdpoint.clock_ms(), v_updated_at)
            when 'any' then true
          end;
      get diagnostics v_count = row_count;
      if v_count <> json_array_length(p_closed) then
        raise exception 'a request is not open as it was shown' using errcode = '${GUARD_FAILED}';
      end if;
    end if;

    if p_claimed is not null then
      insert into holdpoint.effects (tenant, task_id, effect_id, status, token, digest)
        select p_tenant, p_id, effect_id, 'claimed', token, decode(digest, 'hex')
        from json_to_recordset(p_claimed) as claimed (effect_id text, token text, digest text);
    end if;

    if p_ended is not null then
      update holdpoint.effects as effect set status = ended.outcome
        from json_to_recordset(p_ended) as ended (effect_id text, token text, outcome text)
        where tenant = p_tenant and task_id = p_id and effect.effect_id = ended.effect_id
          and effect.token = ended.token and status = 'claimed';
      get diagnostics v_count = row_count;
      if v_count <> json_array_length(p_ended) then
        raise exception 'an effect is not claimed under this token' using errcode = '${GUARD_FAILED}';
      end if;
    end if;

    if p_blobs is not null then
      insert into holdpoint.blobs (tenant, task_id, sha256, content)
        select p_tenant, p_id, sha256, content from json_to_recordset(p_blobs) as blob (sha256 text, content text)
        on conflict do nothing;
    end if;
    return 'appended';
  end $$;
`;

export const APPEND = "select holdpoint.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) as result";

/** The values of `APPEND`. The names are written out: a field renamed in `Rows` must not become a silent null here. */
export function encodeAppend(
  { tenant, id }: TaskKey,
  expected: number,
  entries: readonly Entry[],
  { task, opened, closed, effects, blobs }: Rows,
  fence: number | undefined,
): unknown[] {
  return [
    tenant,
    id,
    expected,
    fence ?? null,
    JSON.stringify({
      agent: task.agent,
      context_id: task.contextId,
      state: task.state,
      created_at: task.createdAtMs,
      updated_at: task.updatedAtMs,
      wake_at: task.wakeAtMs,
    }),
    JSON.stringify(
      entries.map(({ event, body, hash, messageKey }) => ({
        seq: event.seq,
        at: event.at,
        body,
        hash,
        message_hash: messageKey === undefined ? null : messageHash(messageKey).toString("hex"),
      })),
    ),
    encodeRows(opened, ({ n, kind, agent, digest, openedAtMs, expiresAtMs }) => ({
      n,
      kind,
      agent,
      digest: hex(digest),
      opened_at: openedAtMs,
      expires_at: expiresAtMs,
    })),
    encodeRows(closed, ({ n, outcome, digest, deadline }) => ({ n, outcome, digest: hex(digest), deadline })),
    encodeRows(
      effects.filter((effect) => effect.type === "claimed"),
      ({ effectId, token, digest }) => ({ effect_id: effectId, token, digest: hex(digest) }),
    ),
    encodeRows(
      effects.filter((effect) => effect.type === "ended"),
      ({ effectId, token, outcome }) => ({ effect_id: effectId, token, outcome }),
    ),
    encodeRows(blobs, ({ sha256, text }) => ({ sha256, content: text })),
  ];
}

/** A client's message id has any length, and an index entry of PostgreSQL at most 2,700 bytes. */
export function messageHash(messageKey: string): Buffer {
  return hash("sha256", messageKey, "buffer");
}

function encodeRows<T>(rows: readonly T[], encode: (row: T) => Record<string, string | number | null>): string | null {
  return rows.length === 0 ? null : JSON.stringify(rows.map(encode));
}

function hex(digest: Digest): string {
  return encodeDigest(digest).toString("hex");
}
