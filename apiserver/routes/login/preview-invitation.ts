import { offeredInvitation } from '../../commands/login/accept-invitation.ts'
import type { Handlers } from '../../context.ts'

export const previewInvitation: Handlers['previewInvitation'] = async ({ body }, { database }) => {
  const { organizationId, organizationName, role, email, accountId } = await offeredInvitation(database, body.token)
  return {
    status: 200,
    body: {
      organization_id: organizationId,
      organization_name: organizationName,
      role,
      email,
      account_exists: accountId !== null,
    },
  }
}
