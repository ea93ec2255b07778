import { DomainError } from '../../lib/errors/domain-error.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import type { EnvironmentRecord } from '../contract/environments.ts'
import type { Call, Reply } from './call.ts'
import type { CommandDependencies } from './dependencies.ts'
import { type AccessedEnvironment, assertAlive, operationInProgress } from './environment-access.ts'
import { writeThrough } from './write-through.ts'

const HOUR_MS = 3_600_000

/**
 * Gives a preview `ttlHours` from now, without recreating it. One whose time is over can be renewed only while its
 * deletion protection keeps it.
 * @throws DomainError `environment_not_found`, `forbidden`, `not_a_preview`, `environment_expired`, `operation_in_progress`
 * while it is being deleted, `invalid_phase` when it is, `store_unavailable`
 */
export const renewEnvironment = (
  deps: CommandDependencies,
  call: Call,
  path: EnvironmentPath,
  ttlHours: number,
): Promise<Reply<200, EnvironmentRecord>> =>
  writeThrough(deps, call, path, environment => {
    assertRenewable(environment)
    const expiresAt = new Date(environment.now.getTime() + ttlHours * HOUR_MS).toISOString()
    return {
      spec: { ttlHours, expiresAt },
      action: 'renew_environment',
      parameters: { ttl_hours: ttlHours, expires_at: expiresAt },
    }
  })

const assertRenewable = (environment: AccessedEnvironment): void => {
  const { open, environmentId, kind, expiresAt, now, deletionProtection } = environment
  if (kind !== 'preview')
    throw new DomainError('not_a_preview', `Cannot renew "${environmentId}": it is ${kind}, only previews expire`)
  if (open?.kind === 'delete_environment') throw operationInProgress(open)
  assertAlive('renew', environment)
  if (expiresAt !== null && expiresAt <= now && !deletionProtection)
    throw new DomainError(
      'environment_expired',
      `Cannot renew "${environmentId}": it has expired and is about to be deleted; only deletion protection still keeps it`,
    )
}
