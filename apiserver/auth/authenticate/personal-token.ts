/** Personal access tokens, `svc_pat_…`: a user with their whole role. */
import { isPersonalToken, tokenDigest } from '../../../lib/credentials/token.ts'
import type { Role } from '../../../lib/model/credential.ts'
import type { Principal } from '../../commands/call.ts'
import type { Sql } from '../../store/sql.ts'
import type { LastUsed } from '../last-used.ts'
import type { Authenticator } from './authenticator.ts'

const FIND = `
  select t.id as "credentialId", t.user_id as "userId", u.is_operator as "isOperator", m.role,
         t.last_used_at is null or t.last_used_at < now() - interval '60 seconds' as stale
    from tokens t
    join users u on u.user_id = t.user_id and u.disabled_at is null
    left join memberships m on m.user_id = t.user_id and m.organization_id = $2
   where t.digest = $1 and t.kind = 'personal' and t.revoked_at is null
     and (t.expires_at is null or t.expires_at > now())`

interface Row {
  readonly credentialId: string
  readonly userId: string
  readonly isOperator: boolean
  readonly role: Role | null
  readonly stale: boolean
}

export const personalTokens = (sql: Sql, lastUsed: LastUsed): Authenticator => ({
  accepts: isPersonalToken,
  find: async (token, organizationId): Promise<Principal | undefined> => {
    const row = await sql.row<Row>(FIND, [tokenDigest(token), organizationId ?? null])
    if (row === undefined) return undefined
    if (row.stale) lastUsed.mark(row.credentialId)
    return {
      kind: 'personal',
      subject: `user:${row.userId}`,
      userId: row.userId,
      credentialId: row.credentialId,
      isOperator: row.isOperator,
      role: row.role ?? undefined,
    }
  },
})
