import { insertAccountEvent } from '../../store/audit.ts'
import { takeBackGrants } from '../../store/login/device-requests.ts'
import { removePassword } from '../../store/login/passwords.ts'
import { endOtherSessions } from '../../store/login/sessions.ts'
import type { Sql } from '../../store/sql.ts'
import { revokeTokensOf } from '../../store/tokens.ts'
import { verifyEmail } from '../../store/users.ts'
import type { OpenCall } from '../call.ts'
import { visitMetadata } from './begin-session.ts'

/**
 * Somebody proved that they read an account's mail. The first time, a password that is there was set by whoever claimed the
 * address before, which may be another: it goes, and so do the sessions and tokens that could be theirs. Unless the account's
 * second factor was given too: then it is the same person.
 */
export const proveAddress = async (
  sql: Sql,
  call: OpenCall,
  userId: string,
  { hasFactor = false }: { readonly hasFactor?: boolean } = {},
): Promise<void> => {
  if (!(await verifyEmail(sql, userId))) return
  const hadPassword = !hasFactor && (await removePassword(sql, userId))
  const sessions = hadPassword ? await endOtherSessions(sql, userId, '') : 0
  const tokens = hadPassword ? await revokeTokensOf(sql, userId) : 0
  if (hadPassword) await takeBackGrants(sql, userId)
  await insertAccountEvent(sql, {
    type: 'email_verified',
    userId,
    clientIp: call.clientIp,
    userAgent: call.userAgent,
    metadata: visitMetadata(call, { password_removed: hadPassword, sessions_ended: sessions, tokens_revoked: tokens }),
  })
}
