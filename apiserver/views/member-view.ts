import type { MemberRecord } from '../contract/members.ts'
import type { MemberRow } from '../store/memberships.ts'

export const memberView = (row: MemberRow): MemberRecord => ({
  organization_id: row.organizationId,
  user_id: row.userId,
  subject: row.actor ?? `user:${row.userId}`,
  email: row.email,
  name: row.name,
  sso_subject: row.ssoSubject,
  role: row.role,
  created_at: row.createdAt.toISOString(),
})
