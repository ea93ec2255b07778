import { newSessionToken } from '../../../lib/credentials/session-token.ts'
import { newId } from '../../../lib/model/time-ordered-id.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import type { SignInAccount } from '../../store/passwords.ts'
import { dropOldestSessions, insertSession, type SessionMethod } from '../../store/sessions.ts'
import type { Sql } from '../../store/sql.ts'
import { personView, sessionView } from '../../views/session-view.ts'
import type { OpenCall } from '../call.ts'
import type { LoginSettings } from './dependencies.ts'

/** Sessions that a user may have at once; the one used longest ago makes room. */
const MAX_SESSIONS = 50

/** What every event of the login says of its call. */
export const visitMetadata = (
  call: OpenCall,
  more: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> => ({ ...more, request_id: call.requestId })

/**
 * Begins a session of somebody who proved who they are, always with a token of its own: none that a caller brought goes on.
 * The transaction is that in which the proof was spent.
 */
export const beginSession = async (
  sql: Sql,
  { sessions }: LoginSettings,
  call: OpenCall,
  account: SignInAccount,
  method: SessionMethod,
  organizationId: string | null = null,
): Promise<SignedIn> => {
  const { token, prefix, digest } = newSessionToken()
  const { userId } = account
  const session = await insertSession(sql, {
    id: newId('ses'),
    userId,
    method,
    organizationId,
    tokenPrefix: prefix,
    clientIp: call.clientIp,
    userAgent: call.userAgent ?? null,
    digest,
  })
  await dropOldestSessions(sql, userId, MAX_SESSIONS)
  await insertAccountEvent(sql, {
    type: 'sign_in',
    userId,
    email: account.email ?? undefined,
    clientIp: call.clientIp,
    userAgent: call.userAgent,
    metadata: visitMetadata(call, { session_id: session.id, method }),
  })
  return {
    token,
    token_prefix: prefix,
    session: sessionView(session, sessions, session.id),
    user: personView(account),
  }
}
