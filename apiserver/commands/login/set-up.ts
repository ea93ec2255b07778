import { isOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { tokenDigest } from '../../../lib/credentials/token.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import type { SignedIn } from '../../contract/login/people.ts'
import type { SetUpBody } from '../../contract/login/setup.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import { type AttemptLimit, countAttempt } from '../../store/login/attempts.ts'
import { findAccount } from '../../store/login/passwords.ts'
import { dropSetupToken, findSetupToken, hasAdministrator, lockSetup } from '../../store/login/setup.ts'
import type { Sql } from '../../store/sql.ts'
import type { OpenCall, Reply } from '../call.ts'
import { beginSession, visitMetadata } from './begin-session.ts'
import { tooManySignIns } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { ensureOperator } from './first-administrator.ts'
import { hashNewPassword, replacePassword } from './new-password.ts'

/** Setups from one client address. */
const SETUP_ATTEMPTS: AttemptLimit = { bucket: 'setup', most: 10, windowSeconds: 300 }

/** @throws DomainError `setup_complete`, `invalid_setup_token`: also for an address that the token is not for */
const judge = async (sql: Sql, { setup_token: token, email }: SetUpBody): Promise<void> => {
  if (await hasAdministrator(sql)) throw new DomainError('setup_complete', 'There is an administrator: sign in instead')
  const known = isOneTimeToken('setup', token) ? await findSetupToken(sql, tokenDigest(token)) : undefined
  if (known === undefined || (known.email !== null && known.email !== email))
    throw new DomainError(
      'invalid_setup_token',
      'The setup token is not valid: the server’s log says the one of its last start',
    )
}

/** Whether the first administrator is still to be made. */
export const readSetup = async ({
  database,
}: LoginDependencies): Promise<Reply<200, { readonly setup_required: boolean }>> => ({
  status: 200,
  body: { setup_required: !(await hasAdministrator(database)) },
})

/**
 * Makes the first administrator, with the token that the server said at its start, and signs them in. Of those who come at
 * once one does.
 * @throws DomainError `setup_complete`, `invalid_setup_token`, `password_not_allowed`, `sign_in_rate_limited`, `login_busy`
 */
export const setUp = async (
  deps: LoginDependencies,
  call: OpenCall,
  body: SetUpBody,
): Promise<Reply<201, SignedIn>> => {
  const { database, settings } = deps
  const address = await database.transaction(sql => countAttempt(sql, SETUP_ATTEMPTS, call.clientKey))
  if (!address.allowed) throw tooManySignIns(address.retryAfterSeconds)
  await judge(database, body)
  const { email, password, name } = body
  const hash = await hashNewPassword(deps, { userId: undefined, email }, password, 'password')
  const signedIn = await database.transaction(async sql => {
    await lockSetup(sql)
    await judge(sql, body)
    const { userId, lost } = await ensureOperator(sql, email, name)
    await replacePassword(sql, { userId, email }, hash)
    await dropSetupToken(sql)
    const account = await findAccount(sql, userId)
    if (account === undefined) throw new Error('An account that was just made is not there')
    const begun = await beginSession(sql, settings, call, account, 'setup')
    await insertAccountEvent(sql, {
      type: 'setup_completed',
      userId,
      email,
      clientIp: call.clientIp,
      userAgent: call.userAgent,
      metadata: visitMetadata(call, lost && { ...lost }),
    })
    return begun
  })
  return { status: 201, body: signedIn }
}
