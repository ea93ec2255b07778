import { rotateCredentials as rotate } from '../../commands/rotate-credentials.ts'
import type { Handlers } from '../../context.ts'
import { environmentPath } from './environment-path.ts'

export const rotateCredentials: Handlers['rotateCredentials'] = ({ params, call }, context) =>
  rotate(context, call, environmentPath(params))
