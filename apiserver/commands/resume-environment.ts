import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { OperationRecord } from '../contract/operations.ts'
import type { LockedEnvironment } from '../store/environments.ts'
import { askOperator } from './ask-operator.ts'
import type { Call, Reply } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'

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
  askOperator(deps, call, path, {
    verb: 'resume',
    words: 'resume',
    action: 'resume_environment',
    isPossible: mayResume,
    expected: 'suspended or failed_recoverable',
    payload: {},
  })
