import { DomainError } from '../../lib/errors/domain-error.ts'
import { countEnvironments } from '../store/environments.ts'
import { deleteProject as forgetProject, lockProject } from '../store/projects.ts'
import type { Call, Reply } from './call.ts'
import { callEvent } from './call-events.ts'
import type { CommandDependencies } from './dependencies.ts'
import { projectNotFound } from './environment-access.ts'
import { execute } from './execute.ts'

export interface DeleteProjectInput {
  readonly organizationId: string
  readonly projectId: string
}

/**
 * Deletes a project that has no environments, or only deleted ones. Its operations and audit events stay readable.
 * @throws DomainError `project_not_found`, `project_has_environments`
 */
export const deleteProject = (
  deps: CommandDependencies,
  call: Call,
  { organizationId, projectId }: DeleteProjectInput,
): Promise<Reply<204, undefined>> =>
  execute(deps, call, async sql => {
    // Whoever creates an environment shares the project: this lock waits for them, and they for it.
    if ((await lockProject(sql, organizationId, projectId)) === undefined) throw projectNotFound(projectId)
    const { inProject } = await countEnvironments(sql, organizationId, projectId)
    if (inProject > 0)
      throw new DomainError(
        'project_has_environments',
        `Cannot delete project "${projectId}": it has ${inProject} environments, delete them first`,
        { details: { environments: inProject } },
      )
    await forgetProject(sql, organizationId, projectId)
    return {
      status: 204,
      body: undefined,
      audit: [callEvent(call, 'delete_project', { organizationId, resourceKind: 'project', resourceId: projectId })],
    }
  })
