import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { askOperator } from './ask-operator.ts'
import type { Call, Reply } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'

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
  askOperator(deps, call, path, {
    verb: 'suspend',
    words: 'suspend',
    action: 'suspend_environment',
    isPossible: ({ phase }) => phase === 'ready' || phase === 'updating' || phase === 'failed_recoverable',
    expected: 'ready, updating or failed_recoverable',
    payload: {},
  })
