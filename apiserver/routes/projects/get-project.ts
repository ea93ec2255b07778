import { projectNotFound } from '../../commands/environment-access.ts'
import type { Handlers } from '../../context.ts'
import { findProject } from '../../store/projects.ts'
import { projectView } from '../../views/project-view.ts'

export const getProject: Handlers['getProject'] = async ({ params }, { database }) => {
  const row = await findProject(database, params.org, params.project)
  if (row === undefined) throw projectNotFound(params.project)
  return { status: 200, body: projectView(row) }
}
