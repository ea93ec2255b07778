/** Who a token speaks for, and when it was last used: what every request asks. */
import type { Role } from '../../lib/model/credential.ts'
import type { Sql } from './sql.ts'

/** A token that is good right now, with whom it speaks for and their role in one organization. */
export interface Credential {
  readonly id: string
  readonly kind: 'personal' | 'agent'
  readonly userId: string
  readonly isOperator: boolean
  readonly role: Role | null
  /** `last_used_at` is older than a minute: worth a `touchTokens` after the answer. */
  readonly stale: boolean
}

const FIND_CREDENTIAL = `select t.id, t.kind, t.user_id as "userId", u.is_operator as "isOperator", m.role,
    t.last_used_at is null or t.last_used_at < now() - interval '60 s' as stale
  from tokens t join users u on u.user_id = t.user_id
    left join memberships m on m.user_id = t.user_id and m.organization_id = $2
  where t.digest = $1 and t.revoked_at is null and (t.expires_at is null or t.expires_at > now()) and u.disabled_at is null`
/**
 * Looks a token up by its digest, with the role of its user in an organization, in one statement and on the database's
 * clock. Undefined: unknown, expired, revoked or of a disabled user. Never cached: a revocation holds at once.
 */
export const findCredential = (
  sql: Sql,
  digest: Buffer,
  organizationId: string | undefined,
): Promise<Credential | undefined> => sql.row<Credential>(FIND_CREDENTIAL, [digest, organizationId ?? null])

const TOUCH = `update tokens set last_used_at = now() where id in (
  select id from tokens where id = any($1) and (last_used_at is null or last_used_at < now() - interval '60 s')
  for no key update skip locked)`
/** Notes that tokens were used; gives way where somebody else is noting the same. */
export const touchTokens = async (sql: Sql, tokenIds: readonly string[]): Promise<void> => {
  await sql.rows(TOUCH, [tokenIds])
}
