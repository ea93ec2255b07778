import { newSessionToken } from '../../../lib/credentials/session-token.ts'
import { newId } from '../../../lib/model/time-ordered-id.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { rememberAddress } from '../../store/login/known-addresses.ts'
import type { SignInAccount } from '../../store/login/passwords.ts'
import { dropOldestSessions, insertSession, type SessionMethod } from '../../store/login/sessions.ts'
import type { Sql } from '../../store/sql.ts'
import { personView, sessionView } from '../../views/session-view.ts'
import type { OpenCall, Principal } from '../call.ts'
import type { LoginSettings } from './dependencies.ts'

/** Sessions that a user may have at once; the one used longest ago makes room. */
const MAX_SESSIONS = 50

/** What every event of the login says of its call, and of the credential that made it where there was one. */
export const visitMetadata = (
  {
    requestId,
    caller,
    principal = caller,
  }: Pick<OpenCall, 'requestId' | 'caller'> & { readonly principal?: Principal },
  more: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> => ({
  ...more,
  ...(principal && { credential_kind: principal.kind, credential_id: principal.credentialId }),
  request_id: requestId,
})

/** What more there is to a session that begins. */
export interface BeginOptions {
  /** Of single sign-on: it reaches this organization alone. */
  readonly organizationId?: string | null
  /** The second factor that was given. */
  readonly factor?: 'totp' | 'recovery_code' | undefined
  /** When it ends at the latest; undefined: as all do. */
  readonly endsAt?: Date | undefined
  /** When they proved who they are; undefined: now. */
  readonly authenticatedAt?: Date | undefined
}

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
  { organizationId = null, factor, endsAt, authenticatedAt }: BeginOptions = {},
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
    endsAt,
    authenticatedAt,
  })
  await dropOldestSessions(sql, userId, MAX_SESSIONS)
  if (account.email !== null) await rememberAddress(sql, account.email, call.clientKey)
  const event = { userId, clientIp: call.clientIp, userAgent: call.userAgent }
  if (factor === 'recovery_code')
    await insertAccountEvent(sql, {
      ...event,
      type: 'recovery_code_used',
      metadata: visitMetadata(call, { session_id: session.id }),
    })
  await insertAccountEvent(sql, {
    ...event,
    type: 'sign_in',
    email: account.email ?? undefined,
    metadata: visitMetadata(call, {
      session_id: session.id,
      method,
      ...(factor && { factor }),
      ...(organizationId !== null && { organization_id: organizationId }),
    }),
  })
  return {
    token,
    token_prefix: prefix,
    session: sessionView(session, sessions, session.id),
    user: personView(account),
  }
}
