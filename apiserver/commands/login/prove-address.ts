import { insertAccountEvent } from '../../store/audit.ts'
import { removePassword } from '../../store/login/passwords.ts'
import { removeFactor } from '../../store/login/second-factors.ts'
import type { Sql } from '../../store/sql.ts'
import { verifyEmail } from '../../store/users.ts'
import type { OpenCall } from '../call.ts'
import { visitMetadata } from './begin-session.ts'
import { dispossess, type Lost } from './dispossess.ts'

const NOTHING: Lost = { sessions_ended: 0, tokens_revoked: 0 }

/**
 * Somebody proved that they read an account's mail. The first time, a password that is there was set by whoever claimed the
 * address before, which may be another: it goes, and so does all that could be theirs. Unless the account's second factor was
 * given too: then it is the same person. An account without a password was never claimed: its tokens are of whoever runs the
 * service. Not for an account whose second factor was not given: mail alone takes nothing from whoever has that.
 */
export const proveAddress = async (
  sql: Sql,
  call: OpenCall,
  userId: string,
  { hasFactor = false }: { readonly hasFactor?: boolean } = {},
): Promise<void> => {
  if (!(await verifyEmail(sql, userId))) return
  const hadPassword = !hasFactor && (await removePassword(sql, userId))
  // An app that waits for its first code.
  if (hadPassword) await removeFactor(sql, userId)
  const lost = hadPassword ? await dispossess(sql, userId) : NOTHING
  await insertAccountEvent(sql, {
    type: 'email_verified',
    userId,
    clientIp: call.clientIp,
    userAgent: call.userAgent,
    metadata: visitMetadata(call, { password_removed: hadPassword, ...lost }),
  })
}
