import { newOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { postLetter } from '../../mail/post-letter.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { dropReset, putReset } from '../../store/login/password-resets.ts'
import { findSignInAccount } from '../../store/login/passwords.ts'
import type { OpenCall, Reply } from '../call.ts'
import { askForLetter } from './ask-for-letter.ts'
import { visitMetadata } from './begin-session.ts'
import type { LoginDependencies } from './dependencies.ts'

const VALID_SECONDS = 3600
const NOBODY = ''

/**
 * Has a link for a new password written, if there is an account that could sign in. Whoever has the address: as many
 * statements, the same answer.
 * @throws DomainError `mail_not_configured`, `mail_rate_limited`
 */
export const requestPasswordReset = (
  deps: LoginDependencies,
  call: OpenCall,
  email: string,
): Promise<Reply<202, { readonly status: 'accepted' }>> =>
  askForLetter(deps, call, 'password_reset', email, async (sql, mailbox) => {
    const found = await findSignInAccount(sql, email)
    const account = found?.disabledAt === null ? found : undefined
    const { token, prefix, digest } = newOneTimeToken('rst')
    if (account === undefined) await dropReset(sql, NOBODY)
    else {
      const { userId } = account
      await putReset(sql, { userId, digest, tokenPrefix: prefix, issuedBy: null, lifeSeconds: VALID_SECONDS })
    }
    await postLetter(sql, mailbox, {
      kind: 'password_reset',
      about: email,
      recipient: account?.email ?? email,
      parameters: {},
      secret: { token },
      validSeconds: VALID_SECONDS,
      wanted: account !== undefined,
    })
    await insertAccountEvent(sql, {
      type: 'password_reset_requested',
      userId: account?.userId ?? null,
      email,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call, { by: 'mail' }),
    })
  })
