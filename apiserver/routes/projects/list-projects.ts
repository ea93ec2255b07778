import type { Handlers } from '../../context.ts'
import { listProjects as list } from '../../store/projects.ts'
import { projectView } from '../../views/project-view.ts'

export const listProjects: Handlers['listProjects'] = async ({ params, query }, { database }) => {
  const page = await list(database, params.org, query)
  return { status: 200, body: { projects: page.items.map(projectView), next_cursor: page.nextCursor } }
}
