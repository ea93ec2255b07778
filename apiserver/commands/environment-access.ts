/** The way every command reaches an environment: found or said what is missing, allowed, locked, with what is open on it. */
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { Phase } from '../../lib/model/environment.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { authorizeProduction } from '../auth/authorize.ts'
import { type LockedEnvironment, lockEnvironment } from '../store/environments.ts'
import { findOpenOperationAt, type OperationRow } from '../store/operations.ts'
import { findProject } from '../store/projects.ts'
import { type Sql, together } from '../store/sql.ts'
import type { Call } from './call.ts'

export const projectNotFound = (projectId: string): DomainError =>
  new DomainError('project_not_found', `There is no project "${projectId}" in this organization`)

/** What is missing of a path whose environment was not found: the parent first. */
export const environmentMissing = async (sql: Sql, path: EnvironmentPath): Promise<DomainError> =>
  (await findProject(sql, path.organizationId, path.projectId)) === undefined
    ? projectNotFound(path.projectId)
    : new DomainError('environment_not_found', `There is no environment "${path.environmentId}" in this project`)

/** An environment that its command alone may change until it ends. */
export interface AccessedEnvironment extends LockedEnvironment {
  /** The operation under way, read after the lock was had. */
  readonly open: OperationRow | undefined
}

/**
 * Locks an environment for a caller who may change it.
 * @throws DomainError `project_not_found`, `environment_not_found`, `forbidden`
 */
export const accessEnvironment = async (sql: Sql, call: Call, path: EnvironmentPath): Promise<AccessedEnvironment> => {
  const [environment, open] = await together(lockEnvironment(sql, path), findOpenOperationAt(sql, path))
  if (environment === undefined) throw await environmentMissing(sql, path)
  authorizeProduction(call, environment)
  return { ...environment, open }
}

export const operationInProgress = (open?: Pick<OperationRow, 'id' | 'kind'>): DomainError =>
  open === undefined
    ? new DomainError('operation_in_progress', 'The environment is being deleted')
    : new DomainError('operation_in_progress', `Another operation is under way: ${open.kind} ${open.id}`, {
        details: { operation_id: open.id },
      })

/** What a verb cannot be done in; `expected` says what it could be done in. */
export const invalidPhase = (verb: string, environmentId: string, phase: Phase, expected?: string): DomainError =>
  new DomainError(
    'invalid_phase',
    `Cannot ${verb} "${environmentId}": it is ${phase}${expected === undefined ? '' : `, expected ${expected}`}`,
    { details: { phase } },
  )

/**
 * Lets pass what nothing else is under way on and what is neither deleted nor being deleted.
 * @throws DomainError `operation_in_progress`, `invalid_phase`
 */
export const assertIdle = (verb: string, environment: AccessedEnvironment): void => {
  if (environment.open !== undefined) throw operationInProgress(environment.open)
  assertAlive(verb, environment)
}

/** @throws DomainError `operation_in_progress` while it is being deleted from outside, `invalid_phase` when it is deleted */
export const assertAlive = (verb: string, { phase, environmentId }: AccessedEnvironment): void => {
  if (phase === 'deleting') throw operationInProgress()
  if (phase === 'deleted') throw invalidPhase(verb, environmentId, phase)
}
