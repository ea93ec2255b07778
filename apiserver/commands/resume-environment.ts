import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { OperationRecord } from '../contract/operations.ts'
import type { LockedEnvironment } from '../store/environments.ts'
import { operationView } from '../views/operation-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { accessEnvironment, assertIdle, invalidPhase } from './environment-access.ts'
import { execute } from './execute.ts'
import { openOperation } from './open-operation.ts'

/**
 * Suspended, or failed and to be tried again at once. Also when a suspension that ended at its deadline is still wanted:
 * the phase has not changed yet, and without this nothing could call it off.
 */
const mayResume = ({ phase, observedSpec }: LockedEnvironment): boolean =>
  phase === 'suspended' || phase === 'failed_recoverable' || observedSpec?.suspended === true

/**
 * Asks for Postgres to be started.
 * @throws DomainError `environment_not_found`, `forbidden`, `operation_in_progress`, `invalid_phase`
 */
export const resumeEnvironment = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
): Promise<Reply<202, OperationRecord>> =>
  execute(deps, call, async sql => {
    const environment = await accessEnvironment(sql, call, path)
    assertIdle('resume', environment)
    const { id, phase, environmentId } = environment
    if (!mayResume(environment)) throw invalidPhase('resume', environmentId, phase, 'suspended or failed_recoverable')
    const operation = await openOperation(sql, deps, call, { environmentRow: id, verb: 'resume', payload: {} })
    return {
      status: 202,
      body: operationView(operation),
      wakes: id,
      audit: [callEvent(call, 'resume_environment', environmentResource(path), { operation_id: operation.id })],
    }
  })
