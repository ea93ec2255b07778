import { DomainError } from '../../lib/errors/domain-error.ts'
import type { Sql } from '../store/sql.ts'
import { countActiveTokens } from '../store/tokens.ts'

/** Tokens that a user may have at once. */
const MAX_ACTIVE_TOKENS = 500

/** Whether a user may have one more. Hold the user's row. */
export const hasRoom = async (sql: Sql, userId: string): Promise<boolean> =>
  (await countActiveTokens(sql, userId)) < MAX_ACTIVE_TOKENS

/** Hold the user's row. @throws DomainError `quota_exceeded` */
export const assertRoom = async (sql: Sql, userId: string): Promise<void> => {
  const used = await countActiveTokens(sql, userId)
  if (used < MAX_ACTIVE_TOKENS) return
  throw new DomainError('quota_exceeded', `You have ${used} active tokens, ${MAX_ACTIVE_TOKENS} are allowed`, {
    details: { cap: 'tokens_per_user', limit: MAX_ACTIVE_TOKENS, used },
  })
}
