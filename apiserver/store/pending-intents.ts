/** What the dispatcher reads and writes: intents on their way to the resource store. Every write is made under the lease. */
import type { Phase } from '../../lib/model/environment.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { markDeleted } from './environments.ts'
import { cancelPendingIntents, type IntentRow } from './intents.ts'
import { moveOperation } from './operations.ts'
import type { Sql } from './sql.ts'
import type { ChangeCall } from './written-through.ts'

/** The next intent of an environment, with everything that decides what becomes of it. */
export interface PendingIntent extends EnvironmentPath {
  readonly intentId: number
  readonly seq: number
  readonly verb: IntentRow['verb']
  readonly payload: Readonly<Record<string, unknown>>
  /** Attempts begun before: over 0, the store may have been written already. */
  readonly attempts: number
  readonly requestId: string
  readonly operationId: string | null
  readonly actor: string | null
  /** Of a change that is written through, else null. */
  readonly call: ChangeCall | null
  readonly environmentRow: string
  readonly namespace: string
  readonly resourceName: string
  readonly uid: string | null
  readonly phase: Phase
  /** The operation of the environment's `create` intent; null for an adopted environment. */
  readonly createOperationId: string | null
}

const WAITING = `select environment_row as "environmentRow" from intents where state = 'pending'
  group by environment_row order by min(id)`
/** Environments for which something waits, oldest first. */
export const environmentsWithIntents = async (sql: Sql): Promise<readonly string[]> =>
  (await sql.rows<{ environmentRow: string }>(WAITING)).map(row => row.environmentRow)

// A delete goes before the requests that it makes pointless, but after updates: one may lift the protection that the
// store would refuse it for. An update needs the resource bound, so without a uid the delete looks first.
const NEXT = `select i.id as "intentId", i.seq, i.verb, i.payload, i.attempts, i.request_id as "requestId",
    i.operation_id as "operationId", coalesce(o.actor, i.call ->> 'actor') as actor, i.call, e.id as "environmentRow", e.organization_id as "organizationId",
    e.project_id as "projectId", e.environment_id as "environmentId", e.namespace, e.resource_name as "resourceName",
    e.uid, e.phase,
    (select c.operation_id from intents c where c.environment_row = e.id and c.verb = 'create') as "createOperationId"
  from intents i join environments e on e.id = i.environment_row left join operations o on o.id = i.operation_id
  where i.environment_row = $1 and i.state = 'pending'
  order by
    case when not exists (select from intents d where d.environment_row = $1 and d.state = 'pending' and d.verb = 'delete')
         then 0
         when i.verb = 'update' and e.uid is not null then 0
         when i.verb = 'delete' then 1
         else 2 end, i.seq
  limit 1`
/** The intent to carry next. */
export const nextIntent = (sql: Sql, environmentRow: string): Promise<PendingIntent | undefined> =>
  sql.row<PendingIntent>(NEXT, [environmentRow])

const NOTE_ERROR = `update intents set last_error = $2
  where id = $1 and state = 'pending' and last_error is distinct from $2`
/** Notes why an attempt came to nothing; the intent stays pending. */
export const noteAttemptError = async (sql: Sql, intentId: number, error: string): Promise<void> => {
  await sql.rows(NOTE_ERROR, [intentId, error.slice(0, 1024)])
}

const BIND = `update environments set uid = $2 where id = $1 and uid is null`
/** Binds an environment to the resource that its create made. Only the first uid counts. */
export const bindEnvironment = async (sql: Sql, environmentRow: string, uid: string): Promise<void> => {
  await sql.rows(BIND, [environmentRow, uid])
}

const DISPATCHED = `update intents set state = 'dispatched', dispatched_at = now(), generation = $2, last_error = null
  where id = $1 and state in ('pending', 'cancelled')`
/**
 * The store holds the intent's effect. `generation` is that of the resource with it; undefined when there is nothing to
 * see. An intent that was cancelled while it was carried counts as dispatched: it did happen.
 */
export const recordDispatched = async (
  sql: Sql,
  intent: PendingIntent,
  written: { readonly uid: string; readonly generation: number | undefined },
): Promise<void> => {
  await bindEnvironment(sql, intent.environmentRow, written.uid)
  await sql.rows(DISPATCHED, [intent.intentId, written.generation])
  // What a delete overtakes is never carried.
  if (intent.verb === 'delete') await cancelPendingIntents(sql, intent.environmentRow)
  if (intent.operationId !== null) await moveOperation(sql, intent.operationId, { state: 'running' })
}

const DISPATCHED_REQUEST = `update intents set state = 'dispatched', dispatched_at = now()
  where operation_id = $1 and state = 'pending'`
/** An operation's intent was carried after all: its effect is known from elsewhere. */
export const recordRequestDispatched = async (sql: Sql, operationId: string): Promise<void> => {
  await sql.rows(DISPATCHED_REQUEST, [operationId])
}

const FAILED = `update intents set state = 'failed', last_error = $2 where id = $1 and state = 'pending'`
const NEVER_MADE = `select clock_timestamp()::timestamptz(3) as now from environments where id = $1 and uid is null`
/** The intent will never be carried: ends it and its operation. An environment whose create failed is deleted: its id is free. */
export const recordFailed = async (sql: Sql, intent: PendingIntent, error: string): Promise<void> => {
  if (intent.verb === 'create') await recordNeverMade(sql, intent.environmentRow)
  await sql.rows(FAILED, [intent.intentId, error.slice(0, 1024)])
  if (intent.operationId !== null) await moveOperation(sql, intent.operationId, { state: 'failed', error })
}

const recordNeverMade = async (sql: Sql, environmentRow: string): Promise<void> => {
  const unbound = await sql.row<{ now: Date }>(NEVER_MADE, [environmentRow])
  if (unbound !== undefined) await markDeleted(sql, environmentRow, unbound.now)
}

/** A delete of something that was never made: done, and what it cancels will not be carried. */
export const recordNothingToDelete = async (sql: Sql, intent: PendingIntent): Promise<void> => {
  await recordNeverMade(sql, intent.environmentRow)
  await sql.rows(DISPATCHED, [intent.intentId, undefined])
  await cancelPendingIntents(sql, intent.environmentRow)
  if (intent.operationId === null) return
  const result = { environment_id: intent.environmentId, phase: 'deleted' }
  await moveOperation(sql, intent.operationId, { state: 'succeeded', result })
}

const FIGURES = `select count(*) as pending,
    coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as "oldestSeconds"
  from intents where state = 'pending'`
/** How much waits and for how long, for metrics. */
export const pendingIntentFigures = async (
  sql: Sql,
): Promise<{ readonly pending: number; readonly oldestSeconds: number }> =>
  (await sql.row<{ pending: number; oldestSeconds: number }>(FIGURES)) ?? { pending: 0, oldestSeconds: 0 }

const BOUND = `select e.uid, i.state = 'pending' as pending
  from environments e join intents i on i.environment_row = e.id where i.id = $1`
/** Which resource an environment is bound to by now, whoever noted it; and whether the intent still waits. */
export const boundUid = (
  sql: Sql,
  intentId: number,
): Promise<{ readonly uid: string | null; readonly pending: boolean } | undefined> => sql.row(BOUND, [intentId])

const KNOWN = `select uid from environments where uid = any($1)`
/** Which of these uids belong to environments that we know. */
export const knownUids = async (sql: Sql, uids: readonly string[]): Promise<readonly string[]> =>
  (await sql.rows<{ uid: string }>(KNOWN, [uids])).map(row => row.uid)
