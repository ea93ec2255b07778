/** Who a credential speaks for, and when it was last used: what every request asks. */
import type { Role } from '../../lib/model/credential.ts'
import type { Sql } from './sql.ts'

/** A token that is good right now, with whom it speaks for and their role in one organization. */
export interface TokenCredential {
  readonly id: string
  readonly kind: 'personal' | 'agent'
  readonly userId: string
  /** What audit events name the user by; null: `user:<id>`. */
  readonly actor: string | null
  readonly isOperator: boolean
  readonly role: Role | null
  /** Of agents. */
  readonly scopes: readonly string[] | null
  /** The one organization that it is bound to; null: to none. */
  readonly boundTo: string | null
  /** `last_used_at` is older than a minute: worth a `touch` after the answer. */
  readonly stale: boolean
}

const STALE = (alias: string): string =>
  `${alias}.last_used_at is null or ${alias}.last_used_at < now() - interval '60 s'`

// A token that is bound to another organization than the one in question finds no membership there, nor one of an account that
// belongs to another.
const FIND_TOKEN = `select t.id, t.kind, t.user_id as "userId", u.actor, u.is_operator as "isOperator", m.role, t.scopes,
    t.organization_id as "boundTo", ${STALE('t')} as stale
  from tokens t join users u on u.user_id = t.user_id
    left join memberships m on m.user_id = t.user_id and m.organization_id = $2
      and (t.organization_id is null or t.organization_id = $2) and (u.sso_organization_id is null or u.sso_organization_id = $2)
  where t.digest = $1 and t.revoked_at is null and (t.expires_at is null or t.expires_at > now()) and u.disabled_at is null`
/**
 * Looks a token up by its digest, with the role of its user in an organization, in one statement and on the database's
 * clock. Undefined: unknown, expired, revoked or of a disabled user. Never cached: a revocation holds at once.
 */
export const findTokenCredential = (
  sql: Sql,
  digest: Buffer,
  organizationId: string | undefined,
): Promise<TokenCredential | undefined> => sql.row<TokenCredential>(FIND_TOKEN, [digest, organizationId ?? null])

/** An organization's API key that is good right now. */
export interface ApiKeyCredential {
  readonly id: string
  readonly organizationId: string
  readonly scopes: readonly string[]
  readonly stale: boolean
}

const FIND_KEY = `select k.id, k.organization_id as "organizationId", k.scopes, ${STALE('k')} as stale
  from api_keys k where k.digest = $1 and k.revoked_at is null`
/** Looks an API key up by its digest. Undefined: unknown or revoked. Never cached. */
export const findApiKeyCredential = (sql: Sql, digest: Buffer): Promise<ApiKeyCredential | undefined> =>
  sql.row<ApiKeyCredential>(FIND_KEY, [digest])

/** The tables whose rows say when they were last used. */
export type UsedTable = 'tokens' | 'api_keys' | 'sessions'

const touch = (table: UsedTable, condition: string): string => `update ${table} set last_used_at = now() where id in (
  select id from ${table} where id = any($1) and ${condition} for no key update skip locked)`
const A_MINUTE_AGO = `(last_used_at is null or last_used_at < now() - interval '60 s')`
const TOUCH: Readonly<Record<UsedTable, string>> = {
  tokens: touch('tokens', A_MINUTE_AGO),
  api_keys: touch('api_keys', A_MINUTE_AGO),
  // Whether it is time depends on how long an idle session lives, which the reader judged.
  sessions: touch('sessions', `last_used_at < now() - interval '1 s'`),
}
/** Notes that credentials were used; gives way where somebody else is noting the same. */
export const touchUsed = async (sql: Sql, table: UsedTable, ids: readonly string[]): Promise<void> => {
  await sql.rows(TOUCH[table], [ids])
}
