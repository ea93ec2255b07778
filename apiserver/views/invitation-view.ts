import type { InvitationRecord } from '../contract/invitations.ts'
import type { InvitationRow } from '../store/login/invitations.ts'

export const invitationView = (row: InvitationRow): InvitationRecord => ({
  invitation_id: row.id,
  organization_id: row.organizationId,
  email: row.email,
  role: row.role,
  invited_by: `user:${row.invitedBy}`,
  created_at: row.createdAt.toISOString(),
  expires_at: row.expiresAt.toISOString(),
})
