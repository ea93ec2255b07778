/** The end of an environment's row, once its resource is gone: the row, what was under way, operation and audit event. */
import { TTL_ACTOR } from '../../lib/model/audit.ts'
import { ENVIRONMENT_GONE } from '../../lib/model/operation.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import type { Log } from '../../runtime/log/log.ts'
import { clientActor, recordExternalChange } from '../commands/record-external-change.ts'
import { isOperationOf } from '../store/environment-folds.ts'
import { type EnvironmentRow, markDeleted } from '../store/environments.ts'
import { cancelPendingIntents } from '../store/intents.ts'
import { findOpenOperation, insertDoneOperation, moveOperation } from '../store/operations.ts'
import { recordRequestDispatched } from '../store/pending-intents.ts'
import type { Sql } from '../store/sql.ts'

/** What is known of a deletion. `cause` as a DeletionRecord says it. */
export interface Deletion {
  readonly uid: string
  readonly cause: string
  /** For `external`: the client that asked, where known. */
  readonly manager: string | undefined
  readonly deletedAt: Date
  /** What became of the data; undefined when nobody left word. */
  readonly data: DeletedData | undefined
}

export interface DeletedData {
  readonly retained: boolean
  readonly retainedAt?: string | undefined
  readonly retainedUntil?: string | undefined
}

/** The generation under which deletions are recorded: no resource has it, and an environment is deleted once. */
export const DELETION_GENERATION = 0

/** The result of an operation that deleted an environment: where its data is, if it was kept. */
const resultOf = (environmentId: string, data: DeletedData | undefined): Readonly<Record<string, unknown>> => ({
  environment_id: environmentId,
  phase: 'deleted',
  ...(data === undefined ? {} : { retained: data.retained }),
  ...(data?.retainedAt === undefined ? {} : { retained_at: data.retainedAt }),
  ...(data?.retainedUntil === undefined ? {} : { retained_until: data.retainedUntil }),
})

/** Which operation of this environment asked for the deletion, if any did. */
const requestOf = async (sql: Sql, row: EnvironmentRow, cause: string): Promise<string | undefined> => {
  const id = cause.startsWith('request:') ? cause.slice('request:'.length) : undefined
  return id !== undefined && (await isOperationOf(sql, id, row.id)) ? id : undefined
}

/**
 * Ends a row that is locked and not `deleted`. The command that asked for a deletion wrote its audit event; a deletion
 * that none asked for gets an operation and an event here.
 * @returns whether nobody had asked the API for it
 */
export const finishDeletion = async (sql: Sql, row: EnvironmentRow, deletion: Deletion, log: Log): Promise<boolean> => {
  const { uid, data } = deletion
  const result = resultOf(row.environmentId, data)
  await markDeleted(sql, row.id, deletion.deletedAt)
  const request = await requestOf(sql, row, deletion.cause)
  // The dispatcher may have died between the deletion and its note of it.
  if (request !== undefined) await recordRequestDispatched(sql, request)
  await cancelPendingIntents(sql, row.id)
  const open = await findOpenOperation(sql, row.id)
  if (open?.kind === 'delete_environment') await moveOperation(sql, open.id, { state: 'succeeded', result })
  else if (open !== undefined) await moveOperation(sql, open.id, { state: 'failed', error: ENVIRONMENT_GONE })
  if (open !== undefined)
    log.info({ operationId: open.id, uid, cause: deletion.cause }, 'Operation ended by a deletion')
  if (request !== undefined) return false
  const actor = deletion.cause === 'ttl' ? TTL_ACTOR : clientActor(deletion.manager)
  const operation = await insertDoneOperation(sql, {
    id: newId('op'),
    kind: 'delete_environment',
    environmentRow: row.id,
    actor,
    requestId: `deletion:${uid}`,
    result,
  })
  return recordExternalChange(sql, {
    path: row,
    uid,
    generation: DELETION_GENERATION,
    actor,
    action: 'delete_environment',
    metadata: { operation_id: operation.id, ...result },
  })
}
