import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { requireRole } from '../auth/authorize.ts'
import { deletionPolicyOf } from '../contract/deletion-policy.ts'
import type { EnvironmentRecord, UpdateEnvironmentBody } from '../contract/environments.ts'
import type { Call, Reply } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'
import { assertAlive, operationInProgress } from './environment-access.ts'
import { writeThrough } from './write-through.ts'

/**
 * Changes the rules of an environment's deletion; from the answer on they hold for everybody, the expiry sweep and
 * kubectl included. It needs no operation, so it may be called while one is under way, except a deletion.
 * @throws DomainError `environment_not_found`, `forbidden` (production needs an admin), `operation_in_progress`,
 * `invalid_phase`, `store_unavailable`
 */
export const updateEnvironment = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  body: UpdateEnvironmentBody,
): Promise<Reply<200, EnvironmentRecord>> =>
  writeThrough(deps, call, path, environment => {
    if (environment.kind === 'production') requireRole(call, 'admin')
    if (environment.open?.kind === 'delete_environment') throw operationInProgress(environment.open)
    assertAlive('update', environment)
    const { deletion_protection: deletionProtection, deletion_policy: policy } = body
    return {
      // Also what the row says already: the resource may say something else by now.
      spec: {
        ...(deletionProtection === undefined ? {} : { deletionProtection }),
        ...(policy === undefined ? {} : { deletionPolicy: deletionPolicyOf(policy) }),
      },
      action: 'update_environment',
      parameters: { ...body },
    }
  })
