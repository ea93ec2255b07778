/** What a starting server does about the first administrator. */
import { hash } from 'node:crypto'
import { newOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { newId } from '../../../lib/model/time-ordered-id.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import type { Database } from '../../store/database.ts'
import { removeFactor } from '../../store/login/second-factors.ts'
import {
  dropSetupToken,
  findConfigured,
  hasAdministrator,
  lockSetup,
  promoteUser,
  putConfigured,
  putSetupToken,
} from '../../store/login/setup.ts'
import type { Sql } from '../../store/sql.ts'
import { insertUser, lockUserByEmail, verifyEmail } from '../../store/users.ts'
import { dispossess, type Lost } from './dispossess.ts'
import { replacePassword } from './new-password.ts'

/** Who is to be administrator, by the configuration. */
export interface AdministratorSettings {
  readonly email: string | undefined
  /** argon2id, as a PHC string. */
  readonly passwordHash: string | undefined
}

/** An operator’s account, and what it lost where somebody had it before of whom nobody knows whether the address is theirs. */
export interface EnsuredOperator {
  readonly userId: string
  readonly lost: (Lost & { readonly mfa_removed: boolean }) | undefined
}

/**
 * The account with an address, as an operator’s; made if need be. Whoever runs the service names the address, which proves it
 * as well as a letter does: whoever had an account with it that was never proved keeps nothing of it, the second factor neither,
 * or they would operate the service with what they hold. Give it its password in the same transaction.
 */
export const ensureOperator = async (sql: Sql, email: string, name = ''): Promise<EnsuredOperator> => {
  const made = await insertUser(sql, { userId: newId('usr'), email, name, isOperator: true })
  const user = made ?? (await lockUserByEmail(sql, email))
  if (user === undefined) throw new Error('An account is neither new nor there')
  const { userId } = user
  const isProved = !(await verifyEmail(sql, userId))
  if (made !== undefined) return { userId, lost: undefined }
  await promoteUser(sql, userId)
  if (isProved) return { userId, lost: undefined }
  const hadFactor = await removeFactor(sql, userId)
  return { userId, lost: { ...(await dispossess(sql, userId)), mfa_removed: hadFactor } }
}

/** Once for each change of the configuration: a password that was changed since by hand stays. */
const applyConfigured = async (sql: Sql, email: string, passwordHash: string): Promise<void> => {
  const digest = hash('sha256', `${email}\n${passwordHash}`, 'buffer')
  if ((await findConfigured(sql))?.equals(digest) === true) return
  const isFirst = !(await hasAdministrator(sql))
  const { userId, lost } = await ensureOperator(sql, email)
  await replacePassword(sql, { userId, email }, passwordHash)
  await putConfigured(sql, digest, userId)
  await dropSetupToken(sql)
  await insertAccountEvent(sql, {
    type: isFirst ? 'setup_completed' : 'password_reset',
    userId,
    email,
    clientIp: null,
    userAgent: undefined,
    metadata: { source: 'configuration', ...lost },
  })
}

/**
 * Puts the configured administrator in force, where there is one; else answers a new token with which the first one is made,
 * while there is none. The token of an earlier start is void then.
 */
export const prepareFirstAdministrator = (
  database: Database,
  { email, passwordHash }: AdministratorSettings,
): Promise<string | undefined> =>
  database.transaction(async sql => {
    await lockSetup(sql)
    if (email !== undefined && passwordHash !== undefined) {
      await applyConfigured(sql, email, passwordHash)
      return undefined
    }
    if (await hasAdministrator(sql)) return undefined
    const { token, digest } = newOneTimeToken('setup')
    await putSetupToken(sql, digest, email ?? null)
    return token
  })
