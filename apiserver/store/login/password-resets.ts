/** Links with which somebody sets a new password: one for each account at most, as a digest. */
import type { Sql } from '../sql.ts'

/** A link that is still good, with whose it is. */
export interface ResetRow {
  readonly userId: string
  readonly email: string | null
  readonly expiresAt: Date
}

/** A link to be issued. */
export interface NewReset {
  readonly userId: string
  readonly digest: Buffer
  readonly tokenPrefix: string
  /** null: it is sent by mail. */
  readonly issuedBy: string | null
  readonly lifeSeconds: number
}

const PUT = `insert into password_resets (user_id, digest, token_prefix, issued_by, expires_at)
  values ($1, $2, $3, $4, now() + make_interval(secs => $5))
  on conflict (user_id) do update set digest = $2, token_prefix = $3, issued_by = $4, created_at = now(),
    expires_at = now() + make_interval(secs => $5)
  returning expires_at as "expiresAt"`
/** Issues a link in place of the account's earlier one; answers until when it is good. */
export const putReset = async (sql: Sql, reset: NewReset): Promise<Date> => {
  const { userId, digest, tokenPrefix, issuedBy, lifeSeconds } = reset
  const row = await sql.row<{ expiresAt: Date }>(PUT, [userId, digest, tokenPrefix, issuedBy, lifeSeconds])
  if (row === undefined) throw new Error('A reset link was not kept')
  return row.expiresAt
}

const FIND = `select r.user_id as "userId", u.email, r.expires_at as "expiresAt"
  from password_resets r join users u using (user_id)
  where r.digest = $1 and r.expires_at > now() and u.disabled_at is null`
/** Undefined: unknown, spent, replaced, expired, or of a disabled account. */
export const findReset = (sql: Sql, digest: Buffer): Promise<ResetRow | undefined> => sql.row<ResetRow>(FIND, [digest])

const SPEND = `delete from password_resets r using users u
  where u.user_id = r.user_id and r.digest = $1 and r.expires_at > now() and u.disabled_at is null
  returning r.user_id as "userId", r.issued_by as "issuedBy"`
/** Spends a link, once: whoever comes second finds none. */
export const spendReset = (
  sql: Sql,
  digest: Buffer,
): Promise<{ readonly userId: string; readonly issuedBy: string | null } | undefined> => sql.row(SPEND, [digest])

const DROP = 'delete from password_resets where user_id = $1'
/** Voids the link of an account. */
export const dropReset = async (sql: Sql, userId: string): Promise<void> => {
  await sql.rows(DROP, [userId])
}

const SWEEP = `delete from password_resets where ctid = any (array(
  select ctid from password_resets where expires_at <= now() limit 1000 for update skip locked))`
/** Forgets links that expired. */
export const sweepResets = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
