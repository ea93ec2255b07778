import { renewEnvironment as renew } from '../../commands/renew-environment.ts'
import type { Handlers } from '../../context.ts'
import { environmentPath } from './environment-path.ts'

export const renewEnvironment: Handlers['renewEnvironment'] = ({ params, body, call }, context) =>
  renew(context, call, environmentPath(params), body.ttl_hours)
