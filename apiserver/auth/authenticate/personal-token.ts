/** Personal access tokens, `svc_pat_…`: a user with their whole role. */
import { isPersonalToken } from '../../../lib/credentials/token.ts'
import type { Principal } from '../../commands/call.ts'
import { findCredential } from '../../store/credentials.ts'
import type { Sql } from '../../store/sql.ts'
import type { LastUsed } from '../last-used.ts'
import type { Authenticator } from './authenticator.ts'

export const personalTokens = (sql: Sql, lastUsed: LastUsed): Authenticator => ({
  accepts: isPersonalToken,
  find: async (digest, organizationId): Promise<Principal | undefined> => {
    const credential = await findCredential(sql, digest, organizationId)
    if (credential?.kind !== 'personal') return undefined
    if (credential.stale) lastUsed.mark(credential.id)
    return {
      kind: 'personal',
      subject: `user:${credential.userId}`,
      userId: credential.userId,
      credentialId: credential.id,
      isOperator: credential.isOperator,
      role: credential.role ?? undefined,
    }
  },
})
