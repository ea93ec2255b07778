import { contextWords, type PasswordFault, passwordFault } from '../../../lib/credentials/password-rules.ts'
import { DomainError } from '../../../lib/errors/domain-error.ts'
import { dropReset } from '../../store/login/password-resets.ts'
import { setPassword } from '../../store/login/passwords.ts'
import { dropMfaTokens } from '../../store/login/second-factors.ts'
import { endOtherSessions } from '../../store/login/sessions.ts'
import { clearFailures } from '../../store/login/sign-in-failures.ts'
import { listOrganizations } from '../../store/organizations.ts'
import type { Sql } from '../../store/sql.ts'
import type { LoginDependencies } from './dependencies.ts'

/** What is wrong with a password, as the end of a sentence about it. */
export const PASSWORD_FAULTS: Readonly<Record<PasswordFault, string>> = {
  too_short: 'must have at least 12 characters',
  too_long: 'must have at most 1,024 characters',
  invalid_text: 'must not contain NUL or unpaired surrogates',
  common_password: 'is among the passwords that are guessed first',
  contains_context: 'is little more than the address, an organization or this product',
}

/** More organizations than these are not looked at. */
const MOST = 200

/** Whose password it is to be. */
export interface PasswordOwner {
  /** undefined: the account is made with it. */
  readonly userId: string | undefined
  readonly email: string | null
}

/**
 * The hash of a password that may be one; `field` is where the body holds it.
 * @throws DomainError `password_not_allowed`, `login_busy`
 */
export const hashNewPassword = async (
  { database, hasher }: LoginDependencies,
  { userId, email }: PasswordOwner,
  password: string,
  field: string,
): Promise<string> => {
  const { items } =
    userId === undefined ? { items: [] } : await listOrganizations(database, userId, undefined, { limit: MOST })
  const names = items.flatMap(({ organizationId, name }) => [organizationId, name])
  const fault = passwordFault(password, contextWords(email, names))
  if (fault === undefined) return hasher.hash(password)
  const message = PASSWORD_FAULTS[fault]
  throw new DomainError('password_not_allowed', `The password ${message}`, {
    errors: [{ in: 'body', pointer: `#/${field}`, code: fault, message }],
  })
}

/**
 * Puts a password in force: sessions that began with another one end, but for one that may go on, with a lock and a link
 * that would set yet another.
 */
export const replacePassword = async (
  sql: Sql,
  { userId, email }: { readonly userId: string; readonly email: string | null },
  hash: string,
  keptSession = '',
): Promise<void> => {
  await setPassword(sql, userId, hash)
  // Before the sessions: one that a second step begins at this moment is there by then.
  await dropMfaTokens(sql, userId)
  await endOtherSessions(sql, userId, keptSession)
  await dropReset(sql, userId)
  if (email !== null) await clearFailures(sql, email)
}
