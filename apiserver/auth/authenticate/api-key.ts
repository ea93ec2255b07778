/** API keys of organizations, `svck_…`: they speak for their organization, within their levels, and for no user. */
import { tokenKindOf } from '../../../lib/credentials/token.ts'
import { LEVELS } from '../../../lib/model/scope.ts'
import type { Principal } from '../../commands/call.ts'
import { findApiKeyCredential } from '../../store/credentials.ts'
import type { Sql } from '../../store/sql.ts'
import type { LastUsed } from '../last-used.ts'
import type { Authenticated, Authenticator } from './authenticator.ts'

export const apiKeys = (sql: Sql, lastUsed: LastUsed): Authenticator => ({
  accepts: token => tokenKindOf(token) === 'api_key',
  find: async ({ digest }, organizationId): Promise<Authenticated | undefined> => {
    const key = await findApiKeyCredential(sql, digest)
    if (key === undefined) return undefined
    if (key.stale) lastUsed.mark('api_keys', key.id)
    const principal: Principal = {
      kind: 'api_key',
      subject: `apikey:${key.id}`,
      userId: undefined,
      credentialId: key.id,
      isOperator: false,
      // The most that a level reaches; the scopes say how much of it. Elsewhere it is a stranger.
      role: organizationId === key.organizationId ? 'admin' : undefined,
      scopes: LEVELS.filter(level => key.scopes.includes(level)).map(level => ({
        organizationId: key.organizationId,
        level,
      })),
    }
    return { principal }
  },
})
