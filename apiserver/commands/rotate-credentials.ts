import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { operationView } from '../views/operation-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { accessEnvironment, assertIdle, invalidPhase } from './environment-access.ts'
import { execute } from './execute.ts'
import { openOperation } from './open-operation.ts'

/**
 * Asks for new passwords. Only while Postgres serves: they are proven by a sign-in before anybody is told of them.
 * @throws DomainError `environment_not_found`, `forbidden`, `operation_in_progress`, `invalid_phase`
 */
export const rotateCredentials = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
): Promise<Reply<202, OperationRecord>> =>
  execute(deps, call, async sql => {
    const environment = await accessEnvironment(sql, call, path)
    assertIdle('rotate the credentials of', environment)
    const { id, phase, environmentId } = environment
    if (phase !== 'ready') throw invalidPhase('rotate the credentials of', environmentId, phase, 'ready')
    const payload = { credentialsRotation: newId('rot') }
    const operation = await openOperation(sql, deps, call, { environmentRow: id, verb: 'rotate', payload })
    return {
      status: 202,
      body: operationView(operation),
      wakes: id,
      audit: [callEvent(call, 'rotate_credentials', environmentResource(path), { operation_id: operation.id })],
    }
  })
