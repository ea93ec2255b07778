import { DomainError } from '../../lib/errors/domain-error.ts'
import { insertAccountEvent } from '../store/audit.ts'
import type { Database } from '../store/database.ts'
import { endOtherSessions } from '../store/login/sessions.ts'
import { lockUserByEmail, lockUserById, setUserDisabled } from '../store/users.ts'

export interface DisableUserInput {
  /** A mail address, or `user:<id>`: accounts of identity providers have no address. */
  readonly who: string
  /** false: the account is enabled again. */
  readonly disabled: boolean
}

export interface DisabledUser {
  readonly userId: string
  /** false: it was so already. */
  readonly changed: boolean
  /** Sessions that ended. */
  readonly sessionsEnded: number
}

/**
 * Disables an account, or enables it again, for whoever holds the machine: no HTTP route leads here. Disabled, it signs in by no
 * way and none of its credentials is taken, from the next request on. Its sessions are over for good; its tokens work again
 * when it is enabled.
 * @throws DomainError `user_not_found`
 */
export const disableUser = (database: Database, { who, disabled }: DisableUserInput): Promise<DisabledUser> =>
  database.transaction(async sql => {
    const user = who.startsWith('user:')
      ? await lockUserById(sql, who.slice('user:'.length))
      : await lockUserByEmail(sql, who.toLowerCase())
    if (user === undefined) throw new DomainError('user_not_found', 'There is no account with this address or id')
    const { userId, email } = user
    if ((user.disabledAt !== null) === disabled) return { userId, changed: false, sessionsEnded: 0 }
    await setUserDisabled(sql, userId, disabled)
    // When it is enabled too: a sign-in that was under way when it was disabled may have begun one since.
    const sessionsEnded = await endOtherSessions(sql, userId, '')
    await insertAccountEvent(sql, {
      type: disabled ? 'user_disabled' : 'user_enabled',
      userId,
      email: email ?? undefined,
      clientIp: null,
      userAgent: undefined,
      metadata: { credential_kind: 'local', sessions_ended: sessionsEnded },
    })
    return { userId, changed: true, sessionsEnded }
  })

/** What is told to people, in one line. */
export const disabledLine = (
  { who, disabled }: DisableUserInput,
  { userId, changed, sessionsEnded }: DisabledUser,
): string => {
  const state = disabled ? 'disabled' : 'enabled'
  const name = who === `user:${userId}` ? who : `user:${userId} (${who})`
  return changed ? `${name} is ${state}; ${sessionsEnded} sessions ended` : `${name} was ${state} already`
}
