/** Passwords, as argon2id hashes, and the accounts that sign in with them. */
import { columns } from '../columns.ts'
import type { Sql } from '../sql.ts'

/** An account as sign-in sees it. */
export interface SignInAccount {
  readonly userId: string
  readonly email: string | null
  readonly name: string
  readonly isOperator: boolean
  readonly disabledAt: Date | null
  /** null: it has no password, and cannot sign in with one. */
  readonly hash: string | null
  /** When it was set, whatever became of its hash since. */
  readonly passwordChangedAt: Date | null
  /** A second factor is asked for. */
  readonly mfaEnabled: boolean
}

const ACCOUNT = `${columns('u', ['user_id', 'email', 'name', 'is_operator', 'disabled_at'])}, p.hash,
  p.changed_at as "passwordChangedAt",
  exists (select 1 from second_factors f where f.user_id = u.user_id and f.enabled_at is not null) as "mfaEnabled"`

const FIND_BY_EMAIL = `select ${ACCOUNT} from users u left join passwords p on p.user_id = u.user_id where u.email = $1`
/** The account with an address, in lower case. */
export const findSignInAccount = (sql: Sql, email: string): Promise<SignInAccount | undefined> =>
  sql.row<SignInAccount>(FIND_BY_EMAIL, [email])

const FIND = `select ${ACCOUNT} from users u left join passwords p on p.user_id = u.user_id where u.user_id = $1`
export const findAccount = (sql: Sql, userId: string): Promise<SignInAccount | undefined> =>
  sql.row<SignInAccount>(FIND, [userId])

const REMOVE = 'delete from passwords where user_id = $1 returning 1'
/** Answers whether there was one. */
export const removePassword = async (sql: Sql, userId: string): Promise<boolean> =>
  (await sql.row(REMOVE, [userId])) !== undefined

const REPLACE = 'update passwords set hash = $3 where user_id = $1 and hash = $2'
/** Keeps the same password with other parameters, unless it was changed meanwhile. */
export const replaceHash = async (sql: Sql, userId: string, before: string, hash: string): Promise<void> => {
  await sql.rows(REPLACE, [userId, before, hash])
}

const HOLD = `select 1 from passwords where user_id = $1 and changed_at = $2 for share`
/**
 * Whether an account still has the password that was just checked. Nobody changes it until this transaction ends: a session
 * that begins in it is there for whoever ends all of them with the password.
 */
export const holdPassword = async (sql: Sql, userId: string, changedAt: Date): Promise<boolean> =>
  (await sql.row(HOLD, [userId, changedAt])) !== undefined

const HOLD_ALONE = `select 1 from passwords where user_id = $1 and changed_at = $2 for update`
/** The same for whoever is about to change it: two of them do not wait for each other. */
export const holdPasswordAlone = async (sql: Sql, userId: string, changedAt: Date): Promise<boolean> =>
  (await sql.row(HOLD_ALONE, [userId, changedAt])) !== undefined

const LOCK = 'select 1 from passwords where user_id = $1 for update'
/** Waits for whoever changes an account's password, and keeps others from it until this transaction ends. */
export const lockPassword = async (sql: Sql, userId: string): Promise<void> => {
  await sql.rows(LOCK, [userId])
}

const SET = `insert into passwords (user_id, hash) values ($1, $2)
  on conflict (user_id) do update set hash = $2, changed_at = greatest(now(), passwords.changed_at + interval '1 ms')`
/** Sets a password, of which this is the hash. */
export const setPassword = async (sql: Sql, userId: string, hash: string): Promise<void> => {
  await sql.rows(SET, [userId, hash])
}
