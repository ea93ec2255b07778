import { codeDigest, sameDigest } from '../../../lib/credentials/code-digest.ts'
import { isOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { MagicLinkVerifyBody } from '../../contract/login/magic-links.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt, forgetAttempts } from '../../store/login/attempts.ts'
import { guessMagicCode, spendMagicLink } from '../../store/login/magic-links.ts'
import { findAccount, type SignInAccount } from '../../store/login/passwords.ts'
import type { Sql } from '../../store/sql.ts'
import { lockUserByEmail } from '../../store/users.ts'
import type { OpenCall, Reply } from '../call.ts'
import { beginSession, visitMetadata } from './begin-session.ts'
import { SIGN_IN_ATTEMPTS, tooManySignIns } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { makeAccount } from './make-account.ts'
import { proveAddress } from './prove-address.ts'
import { askFactor } from './second-factor.ts'

const MOST_GUESSES = 5
/** Of an address' codes, however many are asked for: without this, asking on would mean guessing on. Links go on working. */
const CODES_A_DAY: AttemptLimit = { bucket: 'email-code', most: 20, windowSeconds: 86_400 }

/** What a link gets that is unknown, spent, replaced or too old, and a wrong code: one error for all. */
export const invalidMagicLink = (): DomainError =>
  new DomainError('invalid_magic_link', 'The link or the code is not valid: wrong, used, replaced or too old')

const spendCode = async (
  sql: Sql,
  { settings }: LoginDependencies,
  email: string,
  code: string,
): Promise<string | undefined> => {
  // Counted before anything is compared, whether there is a code or not.
  const today = await countAttempt(sql, CODES_A_DAY, email)
  const kept = await guessMagicCode(sql, email, MOST_GUESSES)
  const given = codeDigest(settings.codeKey, email, kept?.tokenDigest ?? Buffer.alloc(32), code)
  if (!sameDigest(given, kept?.codeDigest ?? Buffer.alloc(32)) || kept === undefined || !today.allowed) return undefined
  await forgetAttempts(sql, CODES_A_DAY.bucket, email)
  return spendMagicLink(sql, kept.tokenDigest)
}

/** The address that is proved; undefined: none. What proved it is spent with that. */
const spend = (sql: Sql, deps: LoginDependencies, body: MagicLinkVerifyBody): Promise<string | undefined> => {
  if ('code' in body) return spendCode(sql, deps, body.email, body.code)
  return isOneTimeToken('mgl', body.token) ? spendMagicLink(sql, tokenDigest(body.token)) : Promise.resolve(undefined)
}

/** Whose address it is, locked; undefined: nobody may sign in with it like this. */
const accountOf = async (
  sql: Sql,
  { settings }: LoginDependencies,
  call: OpenCall,
  email: string,
): Promise<SignInAccount | undefined> => {
  const found =
    (await lockUserByEmail(sql, email)) ?? (settings.publicSignup ? await makeAccount(sql, call, { email }) : undefined)
  if (found === undefined || found.disabledAt !== null || found.isOperator) return undefined
  return findAccount(sql, found.userId)
}

/**
 * Signs in with what a letter told. Whatever is wrong, the answer is the same.
 * @throws DomainError `invalid_magic_link`, `mfa_required`, `sign_in_rate_limited`
 */
export const verifyMagicLink = async (
  deps: LoginDependencies,
  call: OpenCall,
  body: MagicLinkVerifyBody,
): Promise<Reply<200, SignedIn>> => {
  const typed = 'email' in body ? body.email : undefined
  // Not thrown inside: what was counted and spent has to be kept.
  const outcome = await deps.database.transaction(async sql => {
    const address = await countAttempt(sql, SIGN_IN_ATTEMPTS, call.clientKey)
    if (!address.allowed) return tooManySignIns(address.retryAfterSeconds)
    const email = await spend(sql, deps, body)
    const account = email === undefined ? undefined : await accountOf(sql, deps, call, email)
    const visit = {
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call, { method: 'email_link' }),
    }
    if (account === undefined) {
      await insertAccountEvent(sql, { type: 'sign_in_failed', userId: null, email: email ?? typed, ...visit })
      return invalidMagicLink()
    }
    await insertAccountEvent(sql, { type: 'magic_link_used', userId: account.userId, email, ...visit })
    const factor = await askFactor(sql, deps, call, account.userId, 'email_link')
    // Whoever reads the mail alone takes no password away from whoever has the second factor.
    if (factor instanceof DomainError) return factor
    await proveAddress(sql, call, account.userId)
    return beginSession(sql, deps.settings, call, account, 'email_link')
  })
  if (outcome instanceof DomainError) throw outcome
  return { status: 200, body: outcome }
}
