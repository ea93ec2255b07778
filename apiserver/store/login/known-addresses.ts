/**
 * From which client addresses somebody signed in lately, as digests. It opens nothing: whoever comes from there does not wait
 * behind strangers when many passwords are guessed.
 */
import { createHash } from 'node:crypto'
import type { Sql } from '../sql.ts'

const KEPT_SECONDS = 30 * 24 * 3600

// NUL is in neither of them.
const keyOf = (email: string, clientKey: string): Buffer =>
  createHash('sha256').update(`${email}\0${clientKey}`).digest()

const REMEMBER = `insert into attempts (bucket, key, hits, expires_at)
  values ('known-address', $1, array[now()], now() + make_interval(secs => $2))
  on conflict (bucket, key) do update set hits = excluded.hits, expires_at = excluded.expires_at`
/** Somebody signed in with their mail address, in lower case, from a client address. */
export const rememberAddress = async (sql: Sql, email: string, clientKey: string): Promise<void> => {
  await sql.rows(REMEMBER, [keyOf(email, clientKey), KEPT_SECONDS])
}

const KNOWS = `select 1 from attempts where bucket = 'known-address' and key = $1 and expires_at > now()
  and not exists (select 1 from users where email = $2 and email_verified_at > hits[1])`
/** Whether somebody did within thirty days, and not before the mail address was proved: that may have been another. */
export const knowsAddress = async (sql: Sql, email: string, clientKey: string): Promise<boolean> =>
  (await sql.row(KNOWS, [keyOf(email, clientKey), email])) !== undefined
