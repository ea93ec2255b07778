import type { PersonRecord, SessionRecord } from '../contract/login/people.ts'
import type { SignInAccount } from '../store/login/passwords.ts'
import type { SessionLife, SessionRow } from '../store/login/sessions.ts'

/** When a session ends if it is not used again. */
const endOf = ({ createdAt, lastUsedAt, endsAt }: SessionRow, { idle, absolute }: SessionLife): Date =>
  new Date(
    Math.min(
      lastUsedAt.getTime() + idle * 1000,
      createdAt.getTime() + absolute * 1000,
      endsAt?.getTime() ?? Number.POSITIVE_INFINITY,
    ),
  )

/** A session as its user sees it; `currentId` is the one that calls. */
export const sessionView = (row: SessionRow, life: SessionLife, currentId: string): SessionRecord => ({
  session_id: row.id,
  token_prefix: row.tokenPrefix,
  current: row.id === currentId,
  method: row.method,
  organization_id: row.organizationId,
  created_at: row.createdAt.toISOString(),
  last_seen_at: row.lastUsedAt.toISOString(),
  expires_at: endOf(row, life).toISOString(),
  client_ip: row.clientIp,
  user_agent: row.userAgent,
})

/** Whoever signed in. */
export const personView = (account: SignInAccount): PersonRecord => ({
  user_id: account.userId,
  email: account.email,
  name: account.name,
  is_operator: account.isOperator,
  mfa_enabled: account.mfaEnabled,
})
