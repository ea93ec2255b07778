import { deleteEnvironment as remove } from '../../commands/delete-environment.ts'
import type { Handlers } from '../../context.ts'
import { environmentPath } from './environment-path.ts'

export const deleteEnvironment: Handlers['deleteEnvironment'] = ({ params, call }, context) =>
  remove(context, call, environmentPath(params))
