/**
 * Intents: what is to be carried to the resource store, in `seq` order per environment.
 * pending -> dispatched | failed | cancelled. A command writes them in its own transaction; dispatch carries them.
 */
import { OPERATION_OF, type RequestVerb } from '../../lib/model/operation.ts'
import { columns } from './columns.ts'
import { OPERATION, type OperationRow } from './operations.ts'
import type { Sql } from './sql.ts'

export interface IntentRow {
  readonly id: number
  readonly environmentRow: string
  readonly seq: number
  readonly operationId: string | null
  readonly requestId: string
  readonly verb: RequestVerb | 'update'
  readonly payload: Readonly<Record<string, unknown>>
  readonly state: 'pending' | 'dispatched' | 'failed' | 'cancelled'
  readonly attempts: number
  readonly lastError: string | null
  readonly folded: boolean
  readonly createdAt: Date
  readonly dispatchedAt: Date | null
}

const INTENT = columns('i', [
  'id',
  'environment_row',
  'seq',
  'operation_id',
  'request_id',
  'verb',
  'payload',
  'state',
  'attempts',
  'last_error',
  'folded',
  'created_at',
  'dispatched_at',
])

/** An operation to open, and the intent that carries it. */
export interface NewRequest {
  readonly operationId: string
  readonly environmentRow: string
  readonly verb: RequestVerb
  readonly payload: Readonly<Record<string, unknown>>
  readonly actor: string
  readonly requestId: string
  readonly deadlineSeconds: number
}

const REQUEST = `with numbered as (
    update environments set seq = seq + 1, updated_at = now() where id = $1
    returning id, organization_id, project_id, environment_id, seq),
  o as (
    insert into operations (id, kind, organization_id, project_id, environment_id, environment_row, seq, actor, request_id, deadline_at)
    select $2, $8, organization_id, project_id, environment_id, id, seq, $5, $6, now() + make_interval(secs => $7)
    from numbered returning *),
  carried as (
    insert into intents (environment_row, seq, operation_id, request_id, verb, payload)
    select environment_row, seq, id, request_id, $3, $4::jsonb from o)
  select ${OPERATION} from o`
/**
 * Opens an operation with its intent, numbered after all before it.
 * @throws a unique violation of `operations_one_open` when one is open already
 */
export const insertRequest = async (sql: Sql, request: NewRequest): Promise<OperationRow> => {
  const row = await sql.row<OperationRow>(REQUEST, [
    request.environmentRow,
    request.operationId,
    request.verb,
    JSON.stringify(request.payload),
    request.actor,
    request.requestId,
    request.deadlineSeconds,
    OPERATION_OF[request.verb],
  ])
  if (row === undefined) throw new Error('An operation was not kept')
  return row
}

const CLAIM = `update intents as i set attempts = i.attempts + 1 where i.id = $1 and i.state = 'pending' returning ${INTENT}`
/**
 * Says that somebody is about to carry an intent. Commit it before the store is called: from then on nobody cancels it.
 * Undefined when it is not pending any more.
 */
export const claimIntent = (sql: Sql, id: number): Promise<IntentRow | undefined> => sql.row<IntentRow>(CLAIM, [id])

const CANCEL_UNTRIED = `update intents as i set state = 'cancelled' where i.environment_row = $1 and i.state = 'pending'
  and i.attempts = 0 and i.verb in ('create', 'suspend', 'resume', 'rotate') returning ${INTENT}`
/**
 * Cancels the requests of an environment that nobody has tried to carry. `update` intents stay: one may lift the
 * protection that the store would refuse a deletion for.
 */
export const cancelUntriedRequests = (sql: Sql, environmentRow: string): Promise<readonly IntentRow[]> =>
  sql.rows<IntentRow>(CANCEL_UNTRIED, [environmentRow])

const CANCEL_ALL = `update intents set state = 'cancelled' where environment_row = $1 and state = 'pending'`
const NOTE_CARRIED = `update intents set state = 'dispatched', dispatched_at = now()
  where environment_row = $1 and state = 'pending'
  and operation_id in (select id from operations where environment_row = $1 and state = 'succeeded')`
/**
 * Cancels whatever is still to be carried for an environment that is gone. What succeeded was carried, by a dispatcher
 * that died or lost its lease before it noted that.
 */
export const cancelPendingIntents = async (sql: Sql, environmentRow: string): Promise<void> => {
  await sql.rows(NOTE_CARRIED, [environmentRow])
  await sql.rows(CANCEL_ALL, [environmentRow])
}
