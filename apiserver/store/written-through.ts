/**
 * Changes that are written through: `update` intents that carry the call which asked, and get its answer in the
 * transaction that records their effect. The callers wait for that; however many come with one key, it is one intent.
 */
import type { AuditAction } from '../../lib/model/audit.ts'
import type { DeletionPolicy } from '../../lib/model/environment.ts'
import type { EnvironmentRow } from './environments.ts'
import type { IdempotencyScope } from './idempotency.ts'
import type { IntentRow } from './intents.ts'
import type { Sql } from './sql.ts'

/** Who asked for a change: what its audit event will say. */
export interface ChangeCall {
  readonly actor: string
  readonly action: Extract<AuditAction, 'update_environment' | 'renew_environment'>
  readonly metadata: Readonly<Record<string, unknown>>
}

/** A change of a spec, in the resource's words. */
export interface SpecChange {
  readonly ttlHours?: number
  /** ISO 8601. */
  readonly expiresAt?: string
  readonly deletionProtection?: boolean
  readonly deletionPolicy?: DeletionPolicy
}

const INSERT = `with numbered as (
    update environments set seq = seq + 1, updated_at = now() where id = $1 returning id, seq)
  insert into intents (environment_row, seq, request_id, verb, payload, call, scope_hash, key_hash)
  select id, seq, $2, 'update', $3::jsonb, $4::jsonb, $5, $6 from numbered returning id`
/** An intent without an operation: a merge patch of the spec. Answers its id. */
export const insertChange = async (
  sql: Sql,
  change: {
    readonly environmentRow: string
    readonly requestId: string
    readonly spec: SpecChange
    readonly call: ChangeCall
    readonly key: IdempotencyScope | undefined
  },
): Promise<number> => {
  const { environmentRow, requestId, spec, call, key } = change
  const row = await sql.row<{ id: number }>(INSERT, [
    environmentRow,
    requestId,
    JSON.stringify(spec),
    JSON.stringify(call),
    key?.scopeHash,
    key?.keyHash,
  ])
  if (row === undefined) throw new Error('A change was not kept')
  return row.id
}

const FIND_BY_KEY = `select id, environment_row as "environmentRow" from intents
  where scope_hash = $1 and key_hash = $2 order by id desc limit 1`
/** The change that a key stands for. */
export const findChangeByKey = (
  sql: Sql,
  key: IdempotencyScope,
): Promise<{ readonly id: number; readonly environmentRow: string } | undefined> =>
  sql.row(FIND_BY_KEY, [key.scopeHash, key.keyHash])

/** What became of a change. */
export interface ChangeFate {
  readonly state: IntentRow['state']
  readonly lastError: string | null
  readonly answer: Buffer | null
}

const FATE = `select state, last_error as "lastError", answer from intents where id = $1`
export const changeFate = (sql: Sql, id: number): Promise<ChangeFate | undefined> => sql.row<ChangeFate>(FATE, [id])

/** Why a change was cancelled: its caller gave up before anybody had tried to carry it. */
export const GIVEN_UP = 'Given up by its caller'

const GIVE_UP = `with given_up as (
    update intents set state = 'cancelled', last_error = '${GIVEN_UP}'
    where id = $1 and state = 'pending' and attempts = 0 returning scope_hash, key_hash)
  delete from idempotency_keys k using given_up g where k.scope_hash = g.scope_hash and k.key_hash = g.key_hash`
/** Takes back a change that nobody has tried to carry, and lets go of its key. Else it stays what it is. */
export const giveUpChange = async (sql: Sql, id: number): Promise<void> => {
  await sql.rows(GIVE_UP, [id])
}

const ANSWER = `update intents set state = 'dispatched', dispatched_at = now(), generation = $2, last_error = null, answer = $3
  where id = $1 and state in ('pending', 'cancelled')`
/** The store holds the change, and this is what its callers are told. */
export const answerChange = async (sql: Sql, id: number, generation: number, answer: Buffer): Promise<void> => {
  await sql.rows(ANSWER, [id, generation, answer])
}

const APPLY = `update environments as e set ttl_hours = coalesce($2, e.ttl_hours), expires_at = coalesce($3, e.expires_at),
    deletion_protection = coalesce($4, e.deletion_protection), deletion_policy = coalesce($5, e.deletion_policy),
    updated_at = now()
  where e.id = $1 and coalesce(e.observed_generation, 0) <= $6 and e.phase <> 'deleted'`
/** Sets what the resource had at a generation, unless a later one was folded already. */
export const applyChange = async (
  sql: Sql,
  { id }: Pick<EnvironmentRow, 'id'>,
  { ttlHours, expiresAt, deletionProtection, deletionPolicy }: SpecChange,
  generation: number,
): Promise<void> => {
  await sql.rows(APPLY, [id, ttlHours, expiresAt, deletionProtection, deletionPolicy, generation])
}
