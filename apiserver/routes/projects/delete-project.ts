import { deleteProject as remove } from '../../commands/delete-project.ts'
import type { Handlers } from '../../context.ts'

export const deleteProject: Handlers['deleteProject'] = ({ params, call }, context) =>
  remove(context, call, { organizationId: params.org, projectId: params.project })
