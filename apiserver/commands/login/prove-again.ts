/** Step-up: what is sensitive asks whoever is signed in to have proved lately who they are. */
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { freshenSession, isSessionFresh } from '../../store/login/sessions.ts'
import type { Sql } from '../../store/sql.ts'
import type { Call } from '../call.ts'
import { provePassword } from './check-password.ts'
import type { LoginDependencies } from './dependencies.ts'
import { sessionUser } from './end-sessions.ts'
import { passFactor } from './second-factor.ts'

/** How long a proof of any factor counts. */
export const FRESH_SECONDS = 300

/** What somebody gives to prove who they are. */
export interface Proof {
  readonly password?: string | undefined
  readonly totp_code?: string | undefined
}

/**
 * A transaction in which somebody proves who they are, or changes by what they do. Their session goes on under its next token: in
 * force with the commit, and told by the answer, also when the call is refused after it. An error that the work answers is
 * kept with what it counted, and thrown; then the token stays.
 */
export const steppingUp = async <Result>(
  { database }: Pick<LoginDependencies, 'database'>,
  call: Call,
  work: (sql: Sql) => Promise<Result | DomainError>,
): Promise<Result> => {
  const { result, headers } = await database.transaction(async sql => {
    const result = await work(sql)
    return { result, headers: result instanceof DomainError ? undefined : await call.principal.renewToken?.(sql) }
  })
  if (result instanceof DomainError) throw result
  if (headers !== undefined) call.tell?.(headers)
  return result
}

/**
 * Takes a proof where one is given, and notes it of the session that calls.
 * @throws DomainError `invalid_credentials`, `invalid_mfa_code`, `sign_in_rate_limited`, `login_busy`
 */
export const proveAgain = async (
  deps: LoginDependencies,
  call: Call,
  { password, totp_code }: Proof,
): Promise<void> => {
  if (password === undefined && totp_code === undefined) return
  if (password !== undefined) await provePassword(deps, call, password)
  await steppingUp(deps, call, async sql => {
    const kind =
      totp_code === undefined ? undefined : await passFactor(sql, deps, call, sessionUser(call), { totp_code })
    if (kind instanceof DomainError) return kind
    return freshenSession(sql, call.principal.credentialId)
  })
}

/** @throws DomainError `reauthentication_required` */
export const assertFresh = async (sql: Sql, { principal }: Call): Promise<void> => {
  if (await isSessionFresh(sql, principal.credentialId, FRESH_SECONDS)) return
  const [how, methods] =
    principal.boundTo === undefined
      ? ['send password or totp_code with it, or sign in again', ['password', 'totp_code']]
      : ['sign in again, with reauthenticate', ['sso']]
  throw new DomainError(
    'reauthentication_required',
    `This needs a proof of who you are that is younger than ${FRESH_SECONDS} s: ${how}`,
    { details: { methods } },
  )
}
