import { createApiKey as create } from '../../commands/create-api-key.ts'
import type { Handlers } from '../../context.ts'

export const createApiKey: Handlers['createApiKey'] = ({ params, body, call }, context) =>
  create(context, call, { organizationId: params.org, ...body })
