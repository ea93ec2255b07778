/** Sessions of the login, `svc_ses_…`: a user with their whole role, for a while. Their tokens are replaced on the way. */
import { isSessionToken, nextSessionToken } from '../../../lib/credentials/session-token.ts'
import type { Log } from '../../../runtime/log/log.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import type { Database } from '../../store/database.ts'
import {
  endSession,
  findSessionCredential,
  rotateSession,
  type SessionCredential,
  type SessionLife,
} from '../../store/login/sessions.ts'
import type { Sql } from '../../store/sql.ts'
import type { LastUsed } from '../last-used.ts'
import type { Authenticated, Authenticator, CallOrigin } from './authenticator.ts'

/** What sessions are told. */
export interface SessionSettings extends SessionLife {
  /** Derives the tokens that follow others: the same on every replica. 32 bytes. */
  readonly rotationKey: Buffer
}

const authenticatedAs = (session: SessionCredential): Authenticated['principal'] => ({
  kind: 'session',
  subject: `user:${session.userId}`,
  userId: session.userId,
  credentialId: session.id,
  isOperator: session.organizationId === null && session.isOperator,
  role: session.role ?? undefined,
  boundTo: session.organizationId ?? undefined,
  scopes: undefined,
})

/**
 * Somebody holds a token that was replaced long ago: its holder or whoever took it from them. Nobody can tell which, so
 * the session ends for both.
 */
const endReused = async (
  database: Database,
  { id, userId }: SessionCredential,
  { requestId, clientIp, userAgent }: CallOrigin,
): Promise<void> => {
  await database.transaction(async sql => {
    if ((await endSession(sql, userId, id)) === undefined) return
    const metadata = { session_id: id, credential_kind: 'session', credential_id: id, request_id: requestId }
    await insertAccountEvent(sql, { type: 'session_reuse', userId, clientIp, userAgent, metadata })
  })
}

export const sessions = (
  database: Database,
  lastUsed: LastUsed,
  settings: SessionSettings,
  log: Log,
): Authenticator => ({
  accepts: isSessionToken,
  find: async ({ token, digest }, organizationId, origin): Promise<Authenticated | undefined> => {
    const session = await findSessionCredential(database, digest, organizationId, settings)
    if (session === undefined) return undefined
    if (session.reused) {
      log.warn(
        { session_id: session.id, user_id: session.userId, request_id: origin.requestId },
        'A replaced session token was used: the session ends',
      )
      await endReused(database, session, origin)
      return undefined
    }
    if (session.stale) lastUsed.mark('sessions', session.id)
    // Whoever holds the old one, for whichever reason, is told the same next one.
    const next = nextSessionToken(settings.rotationKey, token, session.generation)
    const headers = { 'Svc-Session-Token': next.token, 'Svc-Session-Expires-At': session.expiresAt.toISOString() }
    const rotate = (sql: Sql): Promise<void> => rotateSession(sql, session.id, session.generation, next)
    const renewToken = async (sql: Sql): Promise<typeof headers> => {
      await rotate(sql) // once only: after the rotation of a token that is due it changes nothing
      return headers
    }
    const principal = { ...authenticatedAs(session), renewToken }
    if (!session.due && !session.replaced) return { principal }
    if (!session.replaced) await database.transaction(rotate)
    return { principal, headers }
  },
})
