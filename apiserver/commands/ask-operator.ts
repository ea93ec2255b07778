import type { AuditAction } from '../../lib/model/audit.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { OperationRecord } from '../contract/operations.ts'
import type { LockedEnvironment } from '../store/environments.ts'
import { operationView } from '../views/operation-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { accessEnvironment, assertIdle, invalidPhase } from './environment-access.ts'
import { execute } from './execute.ts'
import { openOperation, type RequestToOpen } from './open-operation.ts'

/** A verb on an environment that is there and that nothing else is under way on. */
export interface Wish extends Omit<RequestToOpen, 'environmentRow'> {
  /** For people, as in "Cannot … main". */
  readonly words: string
  readonly action: AuditAction
  readonly isPossible: (environment: LockedEnvironment) => boolean
  /** The phases in which it is, for people. */
  readonly expected: string
}

/**
 * Opens the operation that a verb is, and answers its record.
 * @throws DomainError `environment_not_found`, `forbidden`, `operation_in_progress`, `invalid_phase`
 */
export const askOperator = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  { words, action, isPossible, expected, ...request }: Wish,
): Promise<Reply<202, OperationRecord>> =>
  execute(deps, call, async sql => {
    const environment = await accessEnvironment(sql, call, path)
    assertIdle(words, environment)
    const { id, phase, environmentId } = environment
    if (!isPossible(environment)) throw invalidPhase(words, environmentId, phase, expected)
    const operation = await openOperation(sql, deps, call, { environmentRow: id, ...request })
    return {
      status: 202,
      body: operationView(operation),
      wakes: id,
      audit: [callEvent(call, action, environmentResource(path), { operation_id: operation.id })],
    }
  })
