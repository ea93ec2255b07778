import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { TriesBefore } from '../../auth/passwords/recent-tries.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt, giveBackAttempt } from '../../store/login/attempts.ts'
import { knowsAddress } from '../../store/login/known-addresses.ts'
import { findAccount, findSignInAccount, type SignInAccount } from '../../store/login/passwords.ts'
import { countFailures, judgePassword } from '../../store/login/sign-in-failures.ts'
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
  /**
   * Who is served first: 0 where the account signed in from before, else what its client address and it failed lately and one
   * more; half of that less for who was turned away and came again as told.
   */
  readonly rank: number
}

/** An account whose password was given. */
export type CheckedAccount = SignInAccount & { readonly hash: string; readonly passwordChangedAt: Date }

/** Nobody goes before whoever signed in from their client address before. */
const KNOWN_RANK = 0
/** An address from which somebody signed in before may try so often until it is a stranger's. */
const KNOWN_TRIES = 5
/** More failures of an account say no more of who tries: it is locked by then. */
const MOST_ACCOUNT_TRIES = 10

/** Of two who tried equally often, the one who was turned away and came again as told goes first. */
const rankOf = (tries: number, { isAgain }: TriesBefore): number => (isAgain ? tries - 0.5 : tries)

/** How often its client address and its account were tried, this time among them. */
const triesOf = ({ ofAddress, ofAccount }: TriesBefore): number =>
  ofAddress + Math.min(ofAccount, MOST_ACCOUNT_TRIES) + 1

/**
 * Turns a password away that nobody will have time to look at before it writes anything: in a flood most are. Of the first tries
 * of a client address it costs one read, where being known would let it in; of others nothing. It is counted in memory alone, as
 * it is no failure; and once, if it comes again as it was told, or whoever asks patiently would fall behind those who guess.
 * @throws DomainError `login_busy`
 */
const enterQueue = async (
  { database, hasher, tries }: LoginDependencies,
  { clientKey }: OpenCall,
  email: string,
): Promise<TriesBefore> => {
  const before = tries.enter(clientKey, email)
  if (!hasher.isFullFor(rankOf(triesOf(before), before))) return before
  const helpsIfKnown = before.ofAddress < KNOWN_TRIES && !hasher.isFullFor(KNOWN_RANK)
  if (helpsIfKnown && (await knowsAddress(database, email, clientKey))) return before
  tries.turnAway(clientKey, email)
  throw hasher.turnAway()
}

/** Counts the attempt of its client address before anything is compared, whether there is an account or not. */
const countFirst = (
  deps: LoginDependencies,
  call: OpenCall,
  email: string,
  before: TriesBefore,
): Promise<Counted | DomainError> =>
  deps.database.transaction(async sql => {
    const address = await countAttempt(sql, SIGN_IN_ATTEMPTS, call.clientKey)
    // Not thrown: what was counted has to be kept.
    if (!address.allowed) return tooManySignIns(address.retryAfterSeconds)
    const [failures, account, isKnown] = await together(
      countFailures(sql, email, deps.settings.lockout),
      findSignInAccount(sql, email),
      knowsAddress(sql, email, call.clientKey),
    )
    const counted = Math.max(address.count + failures, triesOf(before))
    return { account, rank: isKnown ? KNOWN_RANK : rankOf(counted, before) }
  })

/** A password that nobody had time to look at is no attempt of its address. */
const compare = async (
  deps: LoginDependencies,
  { clientKey }: OpenCall,
  email: string,
  password: string,
  { account, rank }: Counted,
): Promise<boolean> => {
  try {
    return await deps.hasher.fits(password, account?.hash ?? undefined, rank)
  } catch (error) {
    deps.tries.turnAway(clientKey, email)
    await deps.database.transaction(sql => giveBackAttempt(sql, SIGN_IN_ATTEMPTS.bucket, clientKey))
    throw error
  }
}

/**
 * Whether what was compared may be told, in a transaction of its own: what a sign-in does next waits for others who change the
 * account, and they for its failures.
 */
const judge = (
  deps: LoginDependencies,
  call: OpenCall,
  email: string,
  account: SignInAccount | undefined,
  isRight: boolean,
): Promise<boolean> =>
  deps.database.transaction(async sql => {
    const { passes, locks } = await judgePassword(sql, email, isRight, deps.settings.lockout)
    if (passes) return true
    // One event either way: the one that locks says that too.
    await insertAccountEvent(sql, {
      type: locks ? 'locked' : 'sign_in_failed',
      userId: account?.userId ?? null,
      email,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call),
    })
    return false
  })

/** What it takes to sign in with a password that fits. */
const maySignIn = (account: SignInAccount | undefined): account is CheckedAccount =>
  account?.hash != null && account.passwordChangedAt !== null && account.disabledAt === null

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
  const counted = await countFirst(deps, call, email, await enterQueue(deps, call, email))
  if (counted instanceof DomainError) throw counted
  const { account } = counted
  const fits = await compare(deps, call, email, password, counted)
  const passes = await judge(deps, call, email, account, fits && maySignIn(account))
  if (!passes || !maySignIn(account)) throw invalidCredentials()
  deps.tries.takeBack(call.clientKey, email)
  return account
}

/**
 * Asks whoever is signed in for their password again: a wrong one counts like a failed sign-in.
 * @throws DomainError `invalid_credentials`, `sign_in_rate_limited`, `login_busy`
 */
export const provePassword = async (deps: LoginDependencies, call: Call, password: string): Promise<CheckedAccount> => {
  const own = await findAccount(deps.database, sessionUser(call))
  // Without an address there is no password either.
  if (own?.email == null) throw invalidCredentials()
  return checkPassword(deps, call, own.email, password)
}
