/** Accounts that an identity provider knows, by their issuer and subject there. */
import type { Role } from '../../lib/model/credential.ts'
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'
import type { UserRow } from './users.ts'

/** Who somebody is to a provider. */
export interface IssuedSubject {
  readonly issuer: string
  readonly subject: string
}

/** An account, with its role in one organization. */
export interface IdentityCredential {
  readonly userId: string
  readonly actor: string | null
  readonly isOperator: boolean
  readonly disabledAt: Date | null
  readonly role: Role | null
}

const FIND = `select u.user_id as "userId", u.actor, u.is_operator as "isOperator", u.disabled_at as "disabledAt", m.role
  from users u left join memberships m on m.user_id = u.user_id and m.organization_id = $3
  where u.issuer = $1 and u.subject = $2`
/** One statement. Undefined: nobody knows them yet. */
export const findIdentityCredential = (
  sql: Sql,
  { issuer, subject }: IssuedSubject,
  organizationId: string | undefined,
): Promise<IdentityCredential | undefined> =>
  sql.row<IdentityCredential>(FIND, [issuer, subject, organizationId ?? null])

const FIND_ID = 'select user_id as "userId" from users where issuer = $1 and subject = $2'
/** The account of a subject; undefined: there is none yet. */
export const findUserIdByIdentity = async (sql: Sql, { issuer, subject }: IssuedSubject): Promise<string | undefined> =>
  (await sql.row<{ userId: string }>(FIND_ID, [issuer, subject]))?.userId

const INSERT = `insert into users as u (user_id, name, issuer, subject, actor) values ($1, $2, $3, $4, $5)
  on conflict (issuer, subject) where issuer is not null do nothing
  returning ${columns('u', ['user_id', 'email', 'name', 'is_operator', 'disabled_at', 'created_at', 'sso_organization_id'])}`
/** Undefined: another call made it in this very moment. `actor` is what audit events name it by; null: `user:<id>`. */
export const insertIdentity = (
  sql: Sql,
  account: IssuedSubject & { readonly userId: string; readonly name: string; readonly actor: string | null },
): Promise<UserRow | undefined> =>
  sql.row<UserRow>(INSERT, [account.userId, account.name, account.issuer, account.subject, account.actor])
