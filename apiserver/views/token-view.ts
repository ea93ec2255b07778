import type { TokenRecord } from '../contract/account-tokens.ts'
import type { TokenRow } from '../store/tokens.ts'
import { epochSeconds, epochSecondsOrNull } from './epoch-seconds.ts'

/** A token without its secret. */
export const tokenView = (row: TokenRow): TokenRecord => ({
  id: row.id,
  name: row.name,
  token_prefix: row.tokenPrefix,
  kind: row.kind,
  scopes: [...(row.scopes ?? [])],
  organization_id: row.organizationId,
  created_at: epochSeconds(row.createdAt),
  last_used_at: epochSecondsOrNull(row.lastUsedAt),
  expires_at: epochSecondsOrNull(row.expiresAt),
  revoked_at: epochSecondsOrNull(row.revokedAt),
})
