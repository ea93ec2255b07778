import { isOneTimeToken, newOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type {
  CompleteResetBody,
  IssuedReset,
  IssueResetBody,
  ResetPreview,
} from '../../contract/login/password-resets.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt } from '../../store/login/attempts.ts'
import { findReset, putReset, type ResetRow, spendReset } from '../../store/login/password-resets.ts'
import { findAccount, findSignInAccount, lockPassword } from '../../store/login/passwords.ts'
import type { Sql } from '../../store/sql.ts'
import { isEmailVerified, lockUser } from '../../store/users.ts'
import { emailHint } from '../../views/email-hint.ts'
import type { Call, OpenCall, Reply } from '../call.ts'
import { visitMetadata } from './begin-session.ts'
import { provePassword, tooManySignIns } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { dispossess, type Lost } from './dispossess.ts'
import { hashNewPassword, replacePassword } from './new-password.ts'
import { proveAddress } from './prove-address.ts'

const ISSUED_SECONDS = 24 * 3600

/** Looks at links from one client address: 256 bits are not guessed, but each look costs a statement. */
const RESET_ATTEMPTS: AttemptLimit = { bucket: 'reset', most: 20, windowSeconds: 300 }

const invalidToken = (): DomainError =>
  new DomainError('invalid_reset_token', 'The link is not valid: it was used, replaced, or is too old. Ask for another')

/** Where a link leads. The token stands in the path, which no server writes down that answers with a page of ours. */
export const resetUrl = (deps: LoginDependencies, token: string): string =>
  deps.settings.links.page(`/reset-password/${token}`)

/** Enough of an address to be recognized by whose it is. */
const hintOf = (email: string | null): string | null => (email === null ? null : emailHint(email))

/**
 * Issues a link for somebody who cannot sign in, by an operator who proves their own password.
 * @throws DomainError `invalid_credentials`, `own_account`, `user_not_found`, `sign_in_rate_limited`, `login_busy`
 */
export const issueReset = async (
  deps: LoginDependencies,
  call: Call,
  { email, admin_password: password }: IssueResetBody,
): Promise<Reply<201, IssuedReset>> => {
  const administrator = await provePassword(deps, call, password)
  if (administrator.email === email)
    throw new DomainError('own_account', 'Change your own password instead: a link for yourself would prove nothing')
  const { token, prefix, digest } = newOneTimeToken('rst')
  const expiresAt = await deps.database.transaction(async sql => {
    const account = await findSignInAccount(sql, email)
    if (account === undefined || account.disabledAt !== null)
      throw new DomainError('user_not_found', 'There is no account with this address that could sign in')
    const { userId } = account
    const issuedBy = administrator.userId
    const until = await putReset(sql, { userId, digest, tokenPrefix: prefix, issuedBy, lifeSeconds: ISSUED_SECONDS })
    await insertAccountEvent(sql, {
      type: 'password_reset_requested',
      userId,
      email,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call, { issued_by: issuedBy, token_prefix: prefix }),
    })
    return until
  })
  return {
    status: 201,
    body: { reset_url: resetUrl(deps, token), token_prefix: prefix, expires_at: expiresAt.toISOString() },
  }
}

const look = async (deps: LoginDependencies, call: OpenCall, token: string): Promise<ResetRow> => {
  const address = await deps.database.transaction(sql => countAttempt(sql, RESET_ATTEMPTS, call.clientKey))
  if (!address.allowed) throw tooManySignIns(address.retryAfterSeconds)
  const reset = isOneTimeToken('rst', token) ? await findReset(deps.database, tokenDigest(token)) : undefined
  if (reset === undefined) throw invalidToken()
  return reset
}

/**
 * Says whose password a link sets; spends nothing.
 * @throws DomainError `invalid_reset_token`, `sign_in_rate_limited`
 */
export const previewReset = async (
  deps: LoginDependencies,
  call: OpenCall,
  token: string,
): Promise<Reply<200, ResetPreview>> => {
  const { email, expiresAt } = await look(deps, call, token)
  return { status: 200, body: { email_hint: hintOf(email), expires_at: expiresAt.toISOString() } }
}

/**
 * Takes the tokens of whoever set the password of an account before its address was proved: whoever has the link may be another.
 * A link that was sent by mail proves the address, and the password is its reader's; but a second factor stays asked for whoever
 * has the link, and until it was given the address counts as nobody's.
 */
const endEarlierHold = async (
  sql: Sql,
  call: OpenCall,
  { userId, issuedBy }: { readonly userId: string; readonly issuedBy: string | null },
): Promise<Lost | undefined> => {
  const account = await findAccount(sql, userId)
  if (issuedBy === null && account?.mfaEnabled === false) {
    await proveAddress(sql, call, userId)
    return undefined
  }
  return account?.hash == null || (await isEmailVerified(sql, userId)) ? undefined : dispossess(sql, userId)
}

/**
 * Sets a password with a link, which is spent with it. Every session of the account ends, and none begins: a second factor
 * stays asked for. Where the address was never proved, tokens end too.
 * @throws DomainError `invalid_reset_token`, `password_not_allowed`, `sign_in_rate_limited`, `login_busy`
 */
export const completeReset = async (
  deps: LoginDependencies,
  call: OpenCall,
  { token, new_password: password }: CompleteResetBody,
): Promise<Reply<204, undefined>> => {
  const reset = await look(deps, call, token)
  const hash = await hashNewPassword(deps, reset, password, 'new_password')
  await deps.database.transaction(async sql => {
    await lockUser(sql, reset.userId)
    // Before the link: a change of the password voids links when it has the password.
    await lockPassword(sql, reset.userId)
    const spent = await spendReset(sql, tokenDigest(token))
    if (spent === undefined) throw invalidToken()
    const lost = await endEarlierHold(sql, call, spent)
    await replacePassword(sql, reset, hash)
    await insertAccountEvent(sql, {
      type: 'password_reset',
      userId: spent.userId,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call, { ...(spent.issuedBy !== null && { issued_by: spent.issuedBy }), ...lost }),
    })
  })
  return { status: 204 }
}
