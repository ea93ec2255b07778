import { isOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { SignInMfaBody } from '../../contract/login/mfa.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import { countAttempt, takeBackAttempt } from '../../store/login/attempts.ts'
import { findAccount } from '../../store/login/passwords.ts'
import { countRecoveryCodes, dropMfaTokens, tryMfaToken } from '../../store/login/second-factors.ts'
import { clearFailures } from '../../store/login/sign-in-failures.ts'
import type { OpenCall, Reply } from '../call.ts'
import { beginSession } from './begin-session.ts'
import { SIGN_IN_ATTEMPTS, tooManySignIns } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { proveAddress } from './prove-address.ts'
import { passFactor } from './second-factor.ts'

const MOST_TRIES = 5

const overToken = (): DomainError =>
  new DomainError('invalid_token', 'The token of the second step is over: sign in from the beginning')

export type SignedInWithFactor = SignedIn & { readonly recovery_codes_remaining: number }

/**
 * The second step of a sign-in. Whoever has a token passed the first, which was the attempt of their client address: a right code
 * is none more, and may come when the address has no attempt left; a wrong one counts, and so does a token that is none.
 * @throws DomainError `invalid_token`, `invalid_mfa_code`, `sign_in_rate_limited`
 */
export const signInMfa = async (
  deps: LoginDependencies,
  call: OpenCall,
  { mfa_token: token, ...proof }: SignInMfaBody,
): Promise<Reply<200, SignedInWithFactor>> => {
  const { database, settings } = deps
  // Not thrown inside: what was counted has to be kept.
  const outcome = await database.transaction(async sql => {
    const address = await countAttempt(sql, SIGN_IN_ATTEMPTS, call.clientKey)
    const known = isOneTimeToken('mfa', token) ? await tryMfaToken(sql, tokenDigest(token), MOST_TRIES) : undefined
    const account = known && (await findAccount(sql, known.userId))
    if (known === undefined || account === undefined || account.disabledAt !== null)
      return address.allowed ? overToken() : tooManySignIns(address.retryAfterSeconds)
    const passed = await passFactor(sql, deps, call, known.userId, proof)
    if (passed instanceof DomainError) return passed
    await takeBackAttempt(sql, SIGN_IN_ATTEMPTS.bucket, call.clientKey)
    // All that wait: whoever got here has no use for them.
    await dropMfaTokens(sql, known.userId)
    if (account.email !== null) await clearFailures(sql, account.email)
    if (known.method === 'email_link') await proveAddress(sql, call, known.userId, { hasFactor: true })
    const remaining = await countRecoveryCodes(sql, known.userId)
    return {
      ...(await beginSession(sql, settings, call, account, known.method, { factor: passed })),
      recovery_codes_remaining: remaining,
    }
  })
  if (outcome instanceof DomainError) throw outcome
  return { status: 200, body: outcome }
}
