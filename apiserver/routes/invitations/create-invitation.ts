import { createInvitation as create } from '../../commands/create-invitation.ts'
import type { Handlers } from '../../context.ts'

export const createInvitation: Handlers['createInvitation'] = ({ params, body, call }, context) =>
  create(context, call, { organizationId: params.org, ...body })
