import { putSso as put } from '../../commands/sso/put-sso.ts'
import type { Handlers } from '../../context.ts'

export const putSso: Handlers['putSso'] = ({ params, body, call }, context) =>
  put(context, call, { organizationId: params.org, ...body })
