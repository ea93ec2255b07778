import { isCurrent } from '../../../lib/credentials/argon2-hash.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import type { SignInBody } from '../../contract/login/sessions.ts'
import { holdPassword, replaceHash } from '../../store/login/passwords.ts'
import { clearFailures } from '../../store/login/sign-in-failures.ts'
import type { OpenCall, Reply } from '../call.ts'
import { beginSession } from './begin-session.ts'
import { checkPassword, invalidCredentials } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { askFactor } from './second-factor.ts'

/** A hash of other parameters than today's is made anew, now that the password is at hand; never in the way of the sign-in. */
const keepCurrent = async (deps: LoginDependencies, userId: string, password: string, hash: string): Promise<void> => {
  if (isCurrent(hash)) return
  try {
    const made = await deps.hasher.hash(password)
    await deps.database.transaction(sql => replaceHash(sql, userId, hash, made))
  } catch (error) {
    deps.log.warn({ err: error, user_id: userId }, 'A password hash could not be renewed')
  }
}

/**
 * Signs in with a password. Whatever is wrong, the answer, the work and the number of statements are the same.
 * @throws DomainError `invalid_credentials`, `mfa_required`, `invalid_mfa_code`, `sign_in_rate_limited`, `login_busy`
 */
export const signIn = async (
  deps: LoginDependencies,
  call: OpenCall,
  { email, password, ...proof }: SignInBody,
): Promise<Reply<200, SignedIn>> => {
  const account = await checkPassword(deps, call, email, password)
  const body = await deps.database.transaction(async sql => {
    // Changed between the check and now: this one is the old password.
    if (!(await holdPassword(sql, account.userId, account.passwordChangedAt))) throw invalidCredentials()
    const factor = await askFactor(sql, deps, call, account.userId, 'password', proof)
    // The password was right, but what went wrong before it stands.
    if (factor instanceof DomainError) return factor
    await clearFailures(sql, email)
    return beginSession(sql, deps.settings, call, account, 'password', { factor })
  })
  if (body instanceof DomainError) throw body
  void keepCurrent(deps, account.userId, password, account.hash)
  return { status: 200, body }
}
