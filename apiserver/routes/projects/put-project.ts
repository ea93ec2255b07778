import { putProject as put } from '../../commands/put-project.ts'
import type { Handlers } from '../../context.ts'

export const putProject: Handlers['putProject'] = ({ params, body, call }, context) =>
  put(context, call, { organizationId: params.org, projectId: params.project, body })
