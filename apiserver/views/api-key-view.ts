import type { ApiKeyRecord } from '../contract/api-keys.ts'
import type { ApiKeyRow } from '../store/api-keys.ts'
import { epochSeconds, epochSecondsOrNull } from './epoch-seconds.ts'

/** An API key without its secret. */
export const apiKeyView = (row: ApiKeyRow): ApiKeyRecord => ({
  api_key_id: row.id,
  organization_id: row.organizationId,
  name: row.name,
  scopes: [...row.scopes],
  key_prefix: row.keyPrefix,
  created_by: `user:${row.createdBy}`,
  created_at_epoch_seconds: epochSeconds(row.createdAt),
  last_used_epoch_seconds: epochSecondsOrNull(row.lastUsedAt),
  revoked_at_epoch_seconds: epochSecondsOrNull(row.revokedAt),
})
