/** Users: people with an account. */
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'

export interface UserRow {
  readonly userId: string
  /** Lower case; null for accounts that no mail reaches. */
  readonly email: string | null
  readonly name: string
  readonly isOperator: boolean
  readonly disabledAt: Date | null
  readonly createdAt: Date
  /** The organization that it belongs to, whose identity provider vouches for it; null: it is a person's own. */
  readonly ssoOrganizationId: string | null
}

const USER = columns('u', [
  'user_id',
  'email',
  'name',
  'is_operator',
  'disabled_at',
  'created_at',
  'sso_organization_id',
])

const FIND = `select ${USER} from users u where u.user_id = $1`
export const findUser = (sql: Sql, userId: string): Promise<UserRow | undefined> => sql.row<UserRow>(FIND, [userId])

const FIND_ID_BY_EMAIL = 'select user_id as "userId" from users where email = $1'
/** The id of the account with an address, in lower case. */
export const findUserIdByEmail = async (sql: Sql, email: string): Promise<string | undefined> =>
  (await sql.row<{ userId: string }>(FIND_ID_BY_EMAIL, [email]))?.userId

const FIND_BY_EMAIL = `select ${USER} from users u where u.email = $1 for no key update`
/** Locks the row: who holds it decides alone what becomes of the account. */
export const lockUserByEmail = (sql: Sql, email: string): Promise<UserRow | undefined> =>
  sql.row<UserRow>(FIND_BY_EMAIL, [email])

const LOCK_BY_ID = `select ${USER} from users u where u.user_id = $1 for no key update`
/** The account of an id, locked. */
export const lockUserById = (sql: Sql, userId: string): Promise<UserRow | undefined> =>
  sql.row<UserRow>(LOCK_BY_ID, [userId])

const FIND_BY_NAME = `select ${USER} from users u
  where u.email is null and u.issuer is null and u.sso_organization_id is null and u.name = $1 for no key update`
/** The one account that nothing but its name tells apart, locked. */
export const lockUserByName = (sql: Sql, name: string): Promise<UserRow | undefined> =>
  sql.row<UserRow>(FIND_BY_NAME, [name])

const INSERT = `insert into users as u (user_id, email, name, is_operator) values ($1, $2, $3, $4)
  on conflict do nothing returning ${USER}`
/** Undefined when the address is taken, or without an address the name. */
export const insertUser = (
  sql: Sql,
  user: Pick<UserRow, 'userId' | 'email' | 'name' | 'isOperator'>,
): Promise<UserRow | undefined> => sql.row<UserRow>(INSERT, [user.userId, user.email, user.name, user.isOperator])

const SET_DISABLED = 'update users set disabled_at = case when $2 then now() end where user_id = $1'
/** Disables an account, or enables it again. */
export const setUserDisabled = async (sql: Sql, userId: string, disabled: boolean): Promise<void> => {
  await sql.rows(SET_DISABLED, [userId, disabled])
}

const VERIFY = 'update users set email_verified_at = now() where user_id = $1 and email_verified_at is null returning 1'
/** Notes that the address is its user's, who reads its mail or was named by whoever runs the service; answers whether that is news. */
export const verifyEmail = async (sql: Sql, userId: string): Promise<boolean> =>
  (await sql.row(VERIFY, [userId])) !== undefined

const IS_VERIFIED = 'select email_verified_at is not null as verified from users where user_id = $1'
/** Whether it is known that the address is its user's. */
export const isEmailVerified = async (sql: Sql, userId: string): Promise<boolean> =>
  (await sql.row<{ verified: boolean }>(IS_VERIFIED, [userId]))?.verified === true

const LOCK = 'select now() as now from users where user_id = $1 for no key update'
/** Serializes what is counted per user; answers what time it is for the database, in this transaction. */
export const lockUser = async (sql: Sql, userId: string): Promise<Date> => {
  const row = await sql.row<{ now: Date }>(LOCK, [userId])
  if (row === undefined) throw new Error('A user with a credential is not there')
  return row.now
}
