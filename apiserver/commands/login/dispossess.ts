import { takeBackGrants } from '../../store/login/device-requests.ts'
import { dropMfaTokens } from '../../store/login/second-factors.ts'
import { endOtherSessions } from '../../store/login/sessions.ts'
import type { Sql } from '../../store/sql.ts'
import { revokeTokensOf } from '../../store/tokens.ts'

/** What an account lost, as events tell it: how many, since which ones the logs say by themselves. */
export interface Lost {
  readonly sessions_ended: number
  readonly tokens_revoked: number
}

/**
 * Takes from an account what lets whoever had it so far act as it: sessions, sign-ins that wait for a code, tokens, and what was
 * granted to devices. For accounts whose address nobody had proved: they could be anybody’s who claimed it. Memberships stay,
 * because organizations gave them to the address. Hold the account’s row: tokens are made and devices answered under it.
 */
export const dispossess = async (sql: Sql, userId: string): Promise<Lost> => {
  // Before the sessions: one that a second step begins at this moment is there by then.
  await dropMfaTokens(sql, userId)
  const sessions = await endOtherSessions(sql, userId, '')
  const tokens = await revokeTokensOf(sql, userId)
  await takeBackGrants(sql, userId)
  return { sessions_ended: sessions, tokens_revoked: tokens }
}
