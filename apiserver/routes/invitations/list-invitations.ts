import type { Handlers } from '../../context.ts'
import { listInvitations as list } from '../../store/login/invitations.ts'
import { invitationView } from '../../views/invitation-view.ts'

export const listInvitations: Handlers['listInvitations'] = async ({ params, query }, { database }) => {
  const page = await list(database, params.org, query)
  return { status: 200, body: { invitations: page.items.map(invitationView), next_cursor: page.nextCursor } }
}
