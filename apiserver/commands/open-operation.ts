import type { RequestVerb } from '../../lib/model/operation.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import { violatesUnique } from '../store/database-error.ts'
import { insertRequest } from '../store/intents.ts'
import type { OperationRow } from '../store/operations.ts'
import type { Sql } from '../store/sql.ts'
import type { Call } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'
import { operationInProgress } from './environment-access.ts'

/** What is asked of an environment. */
export interface RequestToOpen {
  readonly environmentRow: string
  readonly verb: RequestVerb
  /** In the resource's words: the whole spec for a create, what a rotation is asked for by, else nothing. */
  readonly payload: Readonly<Record<string, unknown>>
}

/**
 * Opens an operation with the intent that carries it.
 * @throws DomainError `operation_in_progress` when there is an open one
 */
export const openOperation = async (
  sql: Sql,
  { settings }: CommandDependencies,
  call: Call,
  { environmentRow, verb, payload }: RequestToOpen,
): Promise<OperationRow> => {
  try {
    return await insertRequest(sql, {
      operationId: newId('op'),
      environmentRow,
      verb,
      payload,
      actor: call.principal.subject,
      requestId: call.requestId,
      deadlineSeconds: settings.operationDeadlineSeconds[verb],
    })
  } catch (error) {
    throw violatesUnique(error, 'operations_one_open') ? operationInProgress() : error
  }
}
