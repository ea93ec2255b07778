import type { TokenRecord } from '../contract/account-tokens.ts'
import type { TokenRow } from '../store/tokens.ts'

const seconds = (time: Date): number => Math.floor(time.getTime() / 1000)
const secondsOrNull = (time: Date | null): number | null => (time === null ? null : seconds(time))

/** A token without its secret. */
export const tokenView = (row: TokenRow): TokenRecord => ({
  id: row.id,
  name: row.name,
  token_prefix: row.tokenPrefix,
  kind: row.kind,
  scopes: [...(row.scopes ?? [])],
  organization_id: row.organizationId,
  created_at: seconds(row.createdAt),
  last_used_at: secondsOrNull(row.lastUsedAt),
  expires_at: secondsOrNull(row.expiresAt),
  revoked_at: secondsOrNull(row.revokedAt),
})
