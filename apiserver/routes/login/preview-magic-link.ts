import { isOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { invalidMagicLink } from '../../commands/login/verify-magic-link.ts'
import type { Handlers } from '../../context.ts'
import { findMagicLink } from '../../store/login/magic-links.ts'
import { findSignInAccount } from '../../store/login/passwords.ts'
import { emailHint } from '../../views/email-hint.ts'

export const previewMagicLink: Handlers['previewMagicLink'] = async ({ body }, { login }) => {
  const { database, settings } = login
  const link = isOneTimeToken('mgl', body.token) ? await findMagicLink(database, tokenDigest(body.token)) : undefined
  if (link === undefined) throw invalidMagicLink()
  const account = await findSignInAccount(database, link.email)
  const mayUse = account === undefined ? settings.publicSignup : account.disabledAt === null && !account.isOperator
  if (!mayUse) throw invalidMagicLink()
  return {
    status: 200,
    body: {
      email_hint: emailHint(link.email),
      expires_at: link.expiresAt.toISOString(),
      creates_account: account === undefined,
    },
  }
}
