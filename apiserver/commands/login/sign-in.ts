import { isCurrent } from '../../../lib/credentials/argon2-hash.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import type { SignInBody } from '../../contract/login/sessions.ts'
import { type AttemptLimit, countAttempt } from '../../store/attempts.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { findSignInAccount, replaceHash, type SignInAccount } from '../../store/passwords.ts'
import { clearFailures, type ReservedAttempt, reserveFailure, takeBackFailure } from '../../store/sign-in-failures.ts'
import { together } from '../../store/sql.ts'
import type { OpenCall, Reply } from '../call.ts'
import { beginSession, visitMetadata } from './begin-session.ts'
import type { LoginDependencies } from './dependencies.ts'

/** Sign-in attempts of one client address. */
export const SIGN_IN_ATTEMPTS: AttemptLimit = { bucket: 'sign-in', most: 20, windowSeconds: 300 }

/** What a wrong password gets, and an unknown, a locked and a disabled account: one error for all. */
export const invalidCredentials = (): DomainError =>
  new DomainError('invalid_credentials', 'The address or the password is wrong')

export const tooManySignIns = (retryAfterSeconds: number): DomainError =>
  new DomainError('sign_in_rate_limited', `Too many sign-in attempts, wait ${retryAfterSeconds} s`, {
    retryAfterSeconds,
  })

interface Counted {
  readonly account: SignInAccount | undefined
  readonly attempt: ReservedAttempt
  /** Attempts of the client's address and failures of the account lately. */
  readonly failures: number
}

/** Counts the attempt as failed before anything is compared, whether there is an account or not. */
const countFirst = (deps: LoginDependencies, call: OpenCall, email: string): Promise<Counted | DomainError> =>
  deps.database.transaction(async sql => {
    const address = await countAttempt(sql, SIGN_IN_ATTEMPTS, call.clientKey)
    // Not thrown: what was counted has to be kept.
    if (!address.allowed) return tooManySignIns(address.retryAfterSeconds)
    const [attempt, account] = await together(
      reserveFailure(sql, email, deps.settings.lockout),
      findSignInAccount(sql, email),
    )
    return { account, attempt, failures: address.count - 1 + attempt.failures - 1 }
  })

const refuse = async (
  deps: LoginDependencies,
  call: OpenCall,
  email: string,
  { account, attempt }: Counted,
): Promise<never> => {
  await deps.database.transaction(async sql => {
    // One event either way: the one that locks says that too.
    await insertAccountEvent(sql, {
      type: attempt.locks ? 'locked' : 'sign_in_failed',
      userId: account?.userId ?? null,
      email,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call),
    })
  })
  throw invalidCredentials()
}

/** A password that nobody had time to look at is no failure. */
const compare = async (
  deps: LoginDependencies,
  email: string,
  password: string,
  { account, attempt, failures }: Counted,
): Promise<boolean> => {
  try {
    return await deps.hasher.fits(password, account?.hash ?? undefined, failures)
  } catch (error) {
    await deps.database.transaction(sql => takeBackFailure(sql, email, attempt))
    throw error
  }
}

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
 * @throws DomainError `invalid_credentials`, `sign_in_rate_limited`, `login_busy`
 */
export const signIn = async (
  deps: LoginDependencies,
  call: OpenCall,
  { email, password }: SignInBody,
): Promise<Reply<200, SignedIn>> => {
  const counted = await countFirst(deps, call, email)
  if (counted instanceof DomainError) throw counted
  const { account, attempt } = counted
  const hash = account?.hash ?? undefined
  const fits = await compare(deps, email, password, counted)
  if (!fits || account === undefined || hash === undefined || account.disabledAt !== null || attempt.locked)
    return refuse(deps, call, email, counted)
  const body = await deps.database.transaction(async sql => {
    await clearFailures(sql, email)
    return beginSession(sql, deps.settings, call, account, 'password')
  })
  void keepCurrent(deps, account.userId, password, hash)
  return { status: 200, body }
}
