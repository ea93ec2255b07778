/** The first administrator: whether there is one, the token that makes one, and the one of the configuration. */
import type { Sql } from '../sql.ts'

/** Any number that no other lock of this database has. */
const SETUP_LOCK = 7_361_001

const LOCK = 'select pg_advisory_xact_lock($1)'
/** One at a time, of all replicas, until the end of the transaction. */
export const lockSetup = async (sql: Sql): Promise<void> => {
  await sql.rows(LOCK, [SETUP_LOCK])
}

const HAS_ADMINISTRATOR = `select exists (select 1 from users u join passwords p using (user_id)
  where u.is_operator and u.disabled_at is null) as there`
/** Whether an operator can sign in with a password; one without, as the single box makes, is none. */
export const hasAdministrator = async (sql: Sql): Promise<boolean> =>
  (await sql.row<{ there: boolean }>(HAS_ADMINISTRATOR))?.there === true

const PUT_TOKEN = `insert into setup_tokens (digest, email) values ($1, $2)
  on conflict (one_row) do update set digest = $1, email = $2, created_at = now()`
export const putSetupToken = async (sql: Sql, digest: Buffer, email: string | null): Promise<void> => {
  await sql.rows(PUT_TOKEN, [digest, email])
}

const FIND_TOKEN = 'select email from setup_tokens where digest = $1'
export const findSetupToken = (sql: Sql, digest: Buffer): Promise<{ readonly email: string | null } | undefined> =>
  sql.row(FIND_TOKEN, [digest])

const DROP_TOKEN = 'delete from setup_tokens'
export const dropSetupToken = async (sql: Sql): Promise<void> => {
  await sql.rows(DROP_TOKEN)
}

const PROMOTE = 'update users set is_operator = true, disabled_at = null where user_id = $1'
/** Makes an account an operator’s that may sign in. */
export const promoteUser = async (sql: Sql, userId: string): Promise<void> => {
  await sql.rows(PROMOTE, [userId])
}

const FIND_CONFIGURED = 'select digest from configured_administrator'
/** What was put in force last. */
export const findConfigured = async (sql: Sql): Promise<Buffer | undefined> =>
  (await sql.row<{ digest: Buffer }>(FIND_CONFIGURED))?.digest

const PUT_CONFIGURED = `insert into configured_administrator (digest, user_id) values ($1, $2)
  on conflict (one_row) do update set digest = $1, user_id = $2, applied_at = now()`
export const putConfigured = async (sql: Sql, digest: Buffer, userId: string): Promise<void> => {
  await sql.rows(PUT_CONFIGURED, [digest, userId])
}
