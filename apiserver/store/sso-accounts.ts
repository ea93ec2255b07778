/** Accounts that an organization's identity provider vouches for: they belong to it, and are nobody anywhere else. */
import type { Sql } from './sql.ts'

/** Who somebody is to an organization's provider. */
export interface SsoIdentity {
  readonly organizationId: string
  readonly issuer: string
  readonly subject: string
}

const FIND = `select user_id as "userId" from users
  where sso_organization_id = $1 and sso_issuer = $2 and sso_subject = $3`
/** Undefined: nobody knows them yet. */
export const findSsoUserId = async (
  sql: Sql,
  { organizationId, issuer, subject }: SsoIdentity,
): Promise<string | undefined> => (await sql.row<{ userId: string }>(FIND, [organizationId, issuer, subject]))?.userId

const INSERT = `insert into users (user_id, name, sso_organization_id, sso_issuer, sso_subject) values ($1, $2, $3, $4, $5)
  on conflict (sso_organization_id, sso_issuer, sso_subject) where sso_organization_id is not null do nothing returning 1`
/** False: another call made it in this very moment. */
export const insertSsoUser = async (
  sql: Sql,
  { userId, name, organizationId, issuer, subject }: SsoIdentity & { readonly userId: string; readonly name: string },
): Promise<boolean> => (await sql.row(INSERT, [userId, name, organizationId, issuer, subject])) !== undefined

const RENAME = 'update users set name = $2 where user_id = $1 and name <> $2'
/** Notes what somebody is called now. */
export const renameUser = async (sql: Sql, userId: string, name: string): Promise<void> => {
  await sql.rows(RENAME, [userId, name])
}

// In one order, so that two of these do not wait for each other.
const LOCK = 'select 1 from users where sso_organization_id = $1 order by user_id for no key update'
const END_SESSIONS = `delete from sessions where organization_id = $1 and method = 'sso' returning 1`
const REVOKE = `update tokens set revoked_at = now() where revoked_at is null
  and user_id in (select user_id from users where sso_organization_id = $1) returning 1`
const TAKE_BACK = `update device_requests set state = 'denied', token_id = null, granted_scopes = null,
    granted_organization_id = null, token_expires_at = null
  where state = 'approved' and decided_by in (select user_id from users where sso_organization_id = $1)`
/**
 * Ends everything by which an organization's accounts of single sign-on act, and answers how much of it. Whoever makes a token
 * holds the user's row and then looks whether their own credential still is: so none is made past this.
 */
export const endSsoCredentials = async (
  sql: Sql,
  organizationId: string,
): Promise<{ readonly sessions: number; readonly tokens: number }> => {
  await sql.rows(LOCK, [organizationId])
  const sessions = (await sql.rows(END_SESSIONS, [organizationId])).length
  const tokens = (await sql.rows(REVOKE, [organizationId])).length
  await sql.rows(TAKE_BACK, [organizationId])
  return { sessions, tokens }
}

const END_MEMBER = `delete from sessions where organization_id = $1 and user_id = $2`
/** Ends a user's sessions that reach one organization alone. */
export const endSessionsBoundTo = async (sql: Sql, organizationId: string, userId: string): Promise<void> => {
  await sql.rows(END_MEMBER, [organizationId, userId])
}
