import { DomainError } from '../../../lib/errors/domain-error.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt } from '../../store/login/attempts.ts'
import { findAccount, findSignInAccount, type SignInAccount } from '../../store/login/passwords.ts'
import { type ReservedAttempt, reserveFailure, takeBackFailure } from '../../store/login/sign-in-failures.ts'
import { together } from '../../store/sql.ts'
import type { Call, OpenCall } from '../call.ts'
import { visitMetadata } from './begin-session.ts'
import type { LoginDependencies } from './dependencies.ts'
import { sessionUser } from './end-sessions.ts'

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

/** An account whose password was given. Its attempt still counts as failed: take it back, or clear all. */
export interface CheckedAccount {
  readonly account: SignInAccount & { readonly hash: string; readonly passwordChangedAt: Date }
  readonly attempt: ReservedAttempt
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

/**
 * Checks a password. Whatever is wrong, the answer, the work and the number of statements are the same.
 * @throws DomainError `invalid_credentials`, `sign_in_rate_limited`, `login_busy`
 */
export const checkPassword = async (
  deps: LoginDependencies,
  call: OpenCall,
  email: string,
  password: string,
): Promise<CheckedAccount> => {
  const counted = await countFirst(deps, call, email)
  if (counted instanceof DomainError) throw counted
  const { account, attempt } = counted
  const fits = await compare(deps, email, password, counted)
  if (!fits || account?.hash == null || account.passwordChangedAt === null) return refuse(deps, call, email, counted)
  if (account.disabledAt !== null || attempt.locked) return refuse(deps, call, email, counted)
  const { hash, passwordChangedAt } = account
  return { account: { ...account, hash, passwordChangedAt }, attempt }
}

/**
 * Asks whoever is signed in for their password again: a wrong one counts like a failed sign-in.
 * @throws DomainError `invalid_credentials`, `sign_in_rate_limited`, `login_busy`
 */
export const provePassword = async (
  deps: LoginDependencies,
  call: Call,
  password: string,
): Promise<CheckedAccount['account']> => {
  const own = await findAccount(deps.database, sessionUser(call))
  // Without an address there is no password either.
  if (own?.email == null) throw invalidCredentials()
  const { email } = own
  const { account, attempt } = await checkPassword(deps, call, email, password)
  await deps.database.transaction(sql => takeBackFailure(sql, email, attempt))
  return account
}
