import { randomUUID } from 'node:crypto'
import { DomainError } from '../../lib/errors/domain-error.ts'
import type { EnvironmentPath } from '../../lib/model/identifiers.ts'
import { authorizeProduction, organizationNotFound, requireRole } from '../auth/authorize.ts'
import type { CreateEnvironmentBody } from '../contract/environments.ts'
import type { OperationRecord } from '../contract/operations.ts'
import { violatesUnique } from '../store/database-error.ts'
import {
  countEnvironments,
  type EnvironmentRow,
  findEnvironment,
  findProduction,
  insertEnvironment,
  type NewEnvironment,
} from '../store/environments.ts'
import { lockOrganization } from '../store/organizations.ts'
import { shareProject } from '../store/projects.ts'
import { type Sql, together } from '../store/sql.ts'
import { operationView } from '../views/operation-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent, environmentResource } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { projectNotFound } from './environment-access.ts'
import { execute } from './execute.ts'
import { openOperation } from './open-operation.ts'
import { planEnvironment } from './plan-environment.ts'

/**
 * Begins an environment. An id whose environment is deleted may be used again: that is a new life, which never meets the
 * data of the one before.
 * @throws DomainError `project_not_found`, `forbidden`, `insufficient_scope`, `environment_exists`, `quota_exceeded`, `data_mode_unavailable`,
 * `environment_not_found` (the source), `ttl_not_allowed`, `invalid_ttl`
 */
export const createEnvironment = (
  deps: CommandDependencies,
  call: Call,
  body: CreateEnvironmentBody,
): Promise<Reply<202, OperationRecord>> =>
  execute(deps, call, async sql => {
    const { organization_id: organizationId, project_id: projectId, environment_id: environmentId } = body
    const path: EnvironmentPath = { organizationId, projectId, environmentId }
    const [project, current] = await together(shareProject(sql, organizationId, projectId), findEnvironment(sql, path))
    if (project === undefined) throw projectNotFound(projectId)
    authorizeProduction(call, { kind: body.kind, protectProduction: project.protectProduction })
    const planned = planEnvironment(body, project, deps.settings, project.now)
    if (current !== undefined && current.phase !== 'deleted') throw environmentExists(environmentId)
    await assertStartsEmpty(sql, call, body)
    await assertRoom(sql, deps, path)

    const id = randomUUID()
    const [environment, operation] = await together(
      insertOrRefuse(sql, planned.row, id),
      openOperation(sql, deps, call, { environmentRow: id, verb: 'create', payload: planned.spec }),
    )
    const { kind, dataMode, ttlHours, deletionProtection, deletionPolicy } = environment
    return {
      status: 202,
      body: operationView(operation),
      wakes: id,
      audit: [
        callEvent(call, 'create_environment', environmentResource(path), {
          operation_id: operation.id,
          kind,
          data_mode: dataMode,
          ttl_hours: ttlHours,
          deletion_protection: deletionProtection,
          deletion_policy: deletionPolicy,
        }),
      ],
    }
  })

const environmentExists = (environmentId: string): DomainError =>
  new DomainError('environment_exists', `There is an environment "${environmentId}" in this project already`)

/** Another call may have been faster: the index decides. */
const insertOrRefuse = async (sql: Sql, row: NewEnvironment, id: string): Promise<EnvironmentRow> => {
  try {
    return await insertEnvironment(sql, row, id)
  } catch (error) {
    throw violatesUnique(error, 'environments_current') ? environmentExists(row.environmentId) : error
  }
}

/** As long as nothing can be cloned, an environment with a source is refused, rather than given without its data. */
const assertStartsEmpty = async (sql: Sql, call: Call, body: CreateEnvironmentBody): Promise<void> => {
  if (body.source_environment_id === null) return
  const { organization_id: organizationId, project_id: projectId, source_environment_id: named } = body
  const source = named ?? (await findProduction(sql, organizationId, projectId))
  if (source === undefined) return
  // Its data would be read: a scope has to reach that too.
  requireRole({ principal: call.principal, target: { organizationId, projectId, environmentId: source } }, 'viewer')
  if (named !== undefined) {
    const found = await findEnvironment(sql, { organizationId, projectId, environmentId: named })
    if (found === undefined || found.phase === 'deleted')
      throw new DomainError('environment_not_found', `There is no environment "${named}" in this project to clone from`)
  }
  throw new DomainError(
    'data_mode_unavailable',
    `Environments cannot be cloned yet; give source_environment_id as null to start empty instead of from "${source}"`,
    { details: { source_environment_id: source } },
  )
}

const assertRoom = async (sql: Sql, { settings }: CommandDependencies, path: EnvironmentPath): Promise<void> => {
  const { environmentsPerOrganization, environmentsPerProject } = settings.plan.caps
  if (environmentsPerOrganization === undefined && environmentsPerProject === undefined) return
  // The organization's lock makes counting and adding one step; without caps creations do not wait for each other.
  if ((await lockOrganization(sql, path.organizationId)) === undefined) throw organizationNotFound()
  const { inProject, inOrganization } = await countEnvironments(sql, path.organizationId, path.projectId)
  assertBelow('environments_per_project', inProject, environmentsPerProject)
  assertBelow('environments_per_organization', inOrganization, environmentsPerOrganization)
}

const assertBelow = (cap: string, used: number, limit: number | undefined): void => {
  if (limit === undefined || used < limit) return
  throw new DomainError('quota_exceeded', `The plan allows ${limit} environments here, there are ${used}`, {
    details: { cap, limit, used },
  })
}
