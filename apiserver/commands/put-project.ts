import { projectNamespace } from '../../crds/metadata.ts'
import { DomainError } from '../../lib/errors/domain-error.ts'
import { organizationNotFound, requireRole } from '../auth/authorize.ts'
import type { ProjectRecord, PutProjectBody } from '../contract/projects.ts'
import { lockOrganization } from '../store/organizations.ts'
import { countProjects, insertProject, lockProject, type ProjectRow, updateProject } from '../store/projects.ts'
import type { Sql } from '../store/sql.ts'
import { projectView } from '../views/project-view.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { execute } from './execute.ts'

export interface PutProjectInput {
  readonly organizationId: string
  readonly projectId: string
  readonly body: PutProjectBody
}

/**
 * Creates or updates a project. Whether production is protected, only an admin may change.
 * @throws DomainError `forbidden`, `quota_exceeded`
 */
export const putProject = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, projectId, body }: PutProjectInput,
): Promise<Reply<200, ProjectRecord>> =>
  execute(deps, call, async sql => {
    let before: ProjectRow | undefined
    let project: ProjectRow | undefined
    // Before it is there, there is nothing to lock: whoever is overtaken by another first call judges what that one left.
    while (project === undefined) {
      before = await lockProject(sql, organizationId, projectId)
      const protectedBefore = before?.protectProduction ?? false
      const protectProduction = body.protect_production ?? protectedBefore
      if (protectProduction !== protectedBefore) requireRole(call, 'admin')
      if (before === undefined) await assertRoomForProject(sql, deps, organizationId)
      project = await (before === undefined ? insertProject : updateProject)(sql, {
        organizationId,
        projectId,
        region: body.region,
        postgresMajor: body.postgres_major,
        protectProduction,
        namespace: projectNamespace(organizationId, projectId),
      })
    }
    return {
      status: 200,
      body: projectView(project),
      audit: [
        callEvent(
          call,
          'put_project',
          { organizationId, resourceKind: 'project', resourceId: projectId },
          {
            region: project.region,
            postgres_major: project.postgresMajor,
            protect_production: project.protectProduction,
            created: before === undefined,
          },
        ),
      ],
    }
  })

const assertRoomForProject = async (
  sql: Sql,
  { settings }: CommandDependencies,
  organizationId: string,
): Promise<void> => {
  const cap = settings.plan.caps.projectsPerOrganization
  if (cap === undefined) return
  // The organization's lock makes counting and adding one step.
  if ((await lockOrganization(sql, organizationId)) === undefined) throw organizationNotFound()
  const used = await countProjects(sql, organizationId)
  if (used >= cap)
    throw new DomainError('quota_exceeded', `The organization has ${used} projects, the plan allows ${cap}`, {
      details: { cap: 'projects_per_organization', limit: cap, used },
    })
}
