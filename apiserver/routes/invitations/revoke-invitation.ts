import { revokeInvitation as revoke } from '../../commands/revoke-invitation.ts'
import type { Handlers } from '../../context.ts'

export const revokeInvitation: Handlers['revokeInvitation'] = ({ params, call }, context) =>
  revoke(context, call, { organizationId: params.org, id: params.invitation })
