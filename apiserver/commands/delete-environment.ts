import { DomainError } from '../../lib/errors/domain-error.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { SUPERSEDED } from '../../lib/model/operation.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { markDeleted } from '../store/environments.ts'
import { cancelPendingIntents, cancelUntriedRequests } from '../store/intents.ts'
import { failOpenOperation, insertDoneOperation, type OperationRow } from '../store/operations.ts'
import { type Sql, together } from '../store/sql.ts'
import { operationView } from '../views/operation-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { type AccessedEnvironment, accessEnvironment, assertAlive, operationInProgress } from './environment-access.ts'
import { execute } from './execute.ts'
import { openOperation } from './open-operation.ts'

/**
 * Asks for the end of an environment, from any phase. What else is under way for it ends as superseded in the same
 * transaction; only a deletion, a migration or an import that runs keeps it waiting.
 * @throws DomainError `environment_not_found`, `forbidden`, `deletion_protected`, `operation_in_progress`, `invalid_phase`
 */
export const deleteEnvironment = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
): Promise<Reply<202, OperationRecord>> =>
  execute(deps, call, async sql => {
    const environment = await accessEnvironment(sql, call, path)
    const { id, environmentId, deletionPolicy } = environment
    assertAlive('delete', environment)
    assertDeletable(environment)
    const [superseded, cancelled] = await together(
      failOpenOperation(sql, id, SUPERSEDED),
      cancelUntriedRequests(sql, id),
    )
    const neverMade = environment.uid === null && cancelled.some(intent => intent.verb === 'create')
    const operation = neverMade
      ? await endUnmade(sql, call, environment)
      : await openOperation(sql, deps, call, { environmentRow: id, verb: 'delete', payload: {} })
    return {
      status: 202,
      body: operationView(operation),
      ...(neverMade ? {} : { wakes: id }),
      audit: [
        callEvent(call, 'delete_environment', environmentResource(path), {
          operation_id: operation.id,
          environment_id: environmentId,
          deletion_policy: deletionPolicy,
          ...(superseded === undefined ? {} : { superseded_operation_id: superseded.id }),
        }),
      ],
    }
  })

/** @throws DomainError `operation_in_progress`, `deletion_protected` */
const assertDeletable = ({ open, environmentId, deletionProtection }: AccessedEnvironment): void => {
  if (open?.kind === 'delete_environment' || open?.kind === 'run_migrations' || open?.kind === 'import')
    throw operationInProgress(open)
  if (deletionProtection)
    throw new DomainError(
      'deletion_protected',
      `Cannot delete "${environmentId}": it is protected, set deletion_protection to false first`,
    )
}

/** The create was carried nowhere and never will be: there is nothing to delete, so this is over at once. */
const endUnmade = async (sql: Sql, call: Call, environment: AccessedEnvironment): Promise<OperationRow> => {
  await cancelPendingIntents(sql, environment.id)
  const operation = await insertDoneOperation(sql, {
    id: newId('op'),
    environmentRow: environment.id,
    kind: 'delete_environment',
    actor: call.principal.subject,
    requestId: call.requestId,
    result: { environment_id: environment.environmentId, phase: 'deleted' },
  })
  await markDeleted(sql, environment.id, environment.now)
  return operation
}
