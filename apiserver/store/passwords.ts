/** Passwords, as argon2id hashes, and the accounts that sign in with them. */
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'

/** An account as sign-in sees it. */
export interface SignInAccount {
  readonly userId: string
  readonly email: string | null
  readonly name: string
  readonly isOperator: boolean
  readonly disabledAt: Date | null
  /** null: it has no password, and cannot sign in with one. */
  readonly hash: string | null
}

const ACCOUNT = `${columns('u', ['user_id', 'email', 'name', 'is_operator', 'disabled_at'])}, p.hash`

const FIND_BY_EMAIL = `select ${ACCOUNT} from users u left join passwords p on p.user_id = u.user_id where u.email = $1`
/** The account with an address, in lower case. */
export const findSignInAccount = (sql: Sql, email: string): Promise<SignInAccount | undefined> =>
  sql.row<SignInAccount>(FIND_BY_EMAIL, [email])

const FIND = `select ${ACCOUNT} from users u left join passwords p on p.user_id = u.user_id where u.user_id = $1`
export const findAccount = (sql: Sql, userId: string): Promise<SignInAccount | undefined> =>
  sql.row<SignInAccount>(FIND, [userId])

const REPLACE = 'update passwords set hash = $3 where user_id = $1 and hash = $2'
/** Keeps the same password with other parameters, unless it was changed meanwhile. */
export const replaceHash = async (sql: Sql, userId: string, before: string, hash: string): Promise<void> => {
  await sql.rows(REPLACE, [userId, before, hash])
}
