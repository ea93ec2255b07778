import { suspendEnvironment as suspend } from '../../commands/suspend-environment.ts'
import type { Handlers } from '../../context.ts'
import { environmentPath } from './environment-path.ts'

export const suspendEnvironment: Handlers['suspendEnvironment'] = ({ params, call }, context) =>
  suspend(context, call, environmentPath(params))
