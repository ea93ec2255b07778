import { putOrganization as put } from '../../commands/put-organization.ts'
import type { Handlers } from '../../context.ts'

export const putOrganization: Handlers['putOrganization'] = ({ params, body, call }, context) =>
  put(context, call, { organizationId: params.org, name: body.name })
