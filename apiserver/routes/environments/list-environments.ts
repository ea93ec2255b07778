import { projectNotFound } from '../../commands/environment-access.ts'
import type { Handlers } from '../../context.ts'
import { listEnvironments as list } from '../../store/environments.ts'
import { findProject } from '../../store/projects.ts'
import { environmentView } from '../../views/environment-view.ts'

export const listEnvironments: Handlers['listEnvironments'] = async ({ query }, { database }) => {
  const { organization_id: organizationId, project_id: projectId } = query
  const page = await list(database, organizationId, projectId, query)
  const isEmpty = page.items.length === 0 && projectId !== undefined
  if (isEmpty && (await findProject(database, organizationId, projectId)) === undefined)
    throw projectNotFound(projectId)
  return { status: 200, body: { environments: page.items.map(environmentView), next_cursor: page.nextCursor } }
}
