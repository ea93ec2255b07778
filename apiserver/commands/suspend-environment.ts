import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { operationView } from '../views/operation-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { accessEnvironment, assertIdle, invalidPhase } from './environment-access.ts'
import { execute } from './execute.ts'
import { openOperation } from './open-operation.ts'

/**
 * Asks for Postgres to be stopped and the data kept: from ready, and from updating or failed_recoverable too, so that
 * what cannot start can at least be laid still.
 * @throws DomainError `environment_not_found`, `forbidden`, `operation_in_progress`, `invalid_phase`
 */
export const suspendEnvironment = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
): Promise<Reply<202, OperationRecord>> =>
  execute(deps, call, async sql => {
    const environment = await accessEnvironment(sql, call, path)
    assertIdle('suspend', environment)
    const { id, phase, environmentId } = environment
    if (phase !== 'ready' && phase !== 'updating' && phase !== 'failed_recoverable')
      throw invalidPhase('suspend', environmentId, phase, 'ready, updating or failed_recoverable')
    const operation = await openOperation(sql, deps, call, { environmentRow: id, verb: 'suspend', payload: {} })
    return {
      status: 202,
      body: operationView(operation),
      wakes: id,
      audit: [callEvent(call, 'suspend_environment', environmentResource(path), { operation_id: operation.id })],
    }
  })
