import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { newId } from '../../lib/model/time-ordered-id.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { askOperator } from './ask-operator.ts'
import type { Call, Reply } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'

/**
 * Asks for new passwords. Only while Postgres serves: they are proven by a sign-in before anybody is told of them.
 * @throws DomainError `environment_not_found`, `forbidden`, `operation_in_progress`, `invalid_phase`
 */
export const rotateCredentials = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
): Promise<Reply<202, OperationRecord>> =>
  askOperator(deps, call, path, {
    verb: 'rotate',
    words: 'rotate the credentials of',
    action: 'rotate_credentials',
    isPossible: ({ phase }) => phase === 'ready',
    expected: 'ready',
    payload: { credentialsRotation: newId('rot') },
  })
