import { randomInt } from 'node:crypto'
import { codeDigest } from '../../../lib/credentials/code-digest.ts'
import { newOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { postLetter } from '../../mail/post-letter.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { putMagicLink } from '../../store/login/magic-links.ts'
import { findSignInAccount } from '../../store/login/passwords.ts'
import type { OpenCall, Reply } from '../call.ts'
import { askForLetter } from './ask-for-letter.ts'
import { visitMetadata } from './begin-session.ts'
import type { LoginDependencies } from './dependencies.ts'

const VALID_SECONDS = 900
const CODES = 1_000_000

/**
 * Has a sign-in link written, if somebody is to get one. Whoever has the address: the same statements, the same answer.
 * @throws DomainError `mail_not_configured`, `mail_rate_limited`
 */
export const requestMagicLink = (
  deps: LoginDependencies,
  call: OpenCall,
  email: string,
): Promise<Reply<202, { readonly status: 'accepted' }>> =>
  askForLetter(deps, call, 'magic_link', email, async (sql, mailbox) => {
    const { codeKey, publicSignup } = deps.settings
    const account = await findSignInAccount(sql, email)
    const { token, digest } = newOneTimeToken('mgl')
    const code = String(randomInt(CODES)).padStart(6, '0')
    await putMagicLink(sql, {
      email,
      tokenDigest: digest,
      codeDigest: codeDigest(codeKey, email, digest, code),
      validSeconds: VALID_SECONDS,
    })
    // An administrator's link would open nothing: what is sent says so.
    await postLetter(sql, mailbox, {
      kind: account?.isOperator === true ? 'magic_link_notice' : 'magic_link',
      about: email,
      recipient: account?.email ?? email,
      parameters: {},
      secret: { token, code },
      validSeconds: VALID_SECONDS,
      wanted: account === undefined ? publicSignup : account.disabledAt === null,
    })
    await insertAccountEvent(sql, {
      type: 'magic_link_requested',
      userId: account?.userId ?? null,
      email,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call),
    })
  })
