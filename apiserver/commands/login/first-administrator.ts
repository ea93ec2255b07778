/** What a starting server does about the first administrator. */
import { hash } from 'node:crypto'
import { newOneTimeToken } from '../../../lib/credentials/one-time-token.ts'
import { newId } from '../../../lib/model/time-ordered-id.ts'
import { insertAccountEvent } from '../../store/audit.ts'
import type { Database } from '../../store/database.ts'
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
import { insertUser, lockUserByEmail, type UserRow } from '../../store/users.ts'
import { replacePassword } from './new-password.ts'

/** Who is to be administrator, by the configuration. */
export interface AdministratorSettings {
  readonly email: string | undefined
  /** argon2id, as a PHC string. */
  readonly passwordHash: string | undefined
}

/** The account with an address, as an operator’s; made if need be. */
export const ensureOperator = async (sql: Sql, email: string, name = ''): Promise<UserRow> => {
  const made = await insertUser(sql, { userId: newId('usr'), email, name, isOperator: true })
  if (made !== undefined) return made
  const found = await lockUserByEmail(sql, email)
  if (found === undefined) throw new Error('An account is neither new nor there')
  return promoteUser(sql, found.userId)
}

/** Once for each change of the configuration: a password that was changed since by hand stays. */
const applyConfigured = async (sql: Sql, email: string, passwordHash: string): Promise<void> => {
  const digest = hash('sha256', `${email}\n${passwordHash}`, 'buffer')
  if ((await findConfigured(sql))?.equals(digest) === true) return
  const isFirst = !(await hasAdministrator(sql))
  const { userId } = await ensureOperator(sql, email)
  await replacePassword(sql, { userId, email }, passwordHash)
  await putConfigured(sql, digest, userId)
  await dropSetupToken(sql)
  await insertAccountEvent(sql, {
    type: isFirst ? 'setup_completed' : 'password_reset',
    userId,
    email,
    clientIp: null,
    metadata: { source: 'configuration' },
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
