import { updateEnvironment as update } from '../../commands/update-environment.ts'
import type { Handlers } from '../../context.ts'
import { environmentPath } from './environment-path.ts'

export const updateEnvironment: Handlers['updateEnvironment'] = ({ params, body, call }, context) =>
  update(context, call, environmentPath(params), body)
