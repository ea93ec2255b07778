/**
 * Failed passwords of an address and the lock that follows, alike for addresses with and without an account. An attempt
 * counts as failed before it is judged and is taken back when it succeeds: attempts at the same moment count each.
 */
import { createHash } from 'node:crypto'
import type { Sql } from '../sql.ts'

export interface LockoutSettings {
  /** Failures within the window that lock. */
  readonly maxFailures: number
  readonly windowSeconds: number
  readonly lockoutSeconds: number
}

/** An attempt that counts as failed until it is taken back. */
export interface ReservedAttempt {
  /** It was locked before this attempt. */
  readonly locked: boolean
  /** This attempt locks it, unless it is taken back. */
  readonly locks: boolean
  /** Failures in the window, this one among them. */
  readonly failures: number
  /** Names this attempt, to take it back. */
  readonly at: string
}

const keyOf = (email: string): Buffer => createHash('sha256').update(email).digest()

const RECENT = `(select coalesce(array_agg(h order by h), '{}') from unnest(f.failed) h where h > now() - make_interval(secs => $3))`
const LOCKED = 'f.locked_until > now()'
const RESERVE = `insert into sign_in_failures as f (account_key, failed, locked_at, locked_until, expires_at)
  values ($1, array[now()], case when $2 <= 1 then now() end, case when $2 <= 1 then now() + make_interval(secs => $4) end,
    now() + make_interval(secs => $3 + $4))
  on conflict (account_key) do update set
    failed = case when ${LOCKED} then f.failed else ${RECENT} || now() end,
    locked_at = case when ${LOCKED} then f.locked_at when cardinality(${RECENT}) + 1 >= $2 then now() end,
    locked_until = case when ${LOCKED} then f.locked_until
      when cardinality(${RECENT}) + 1 >= $2 then now() + make_interval(secs => $4) end,
    expires_at = now() + make_interval(secs => $3 + $4)
  returning locked_at is not null and locked_at < now() as locked, locked_at is not null and locked_at = now() as locks,
    cardinality(failed) as failures, now()::text as at`
/** Counts a failure of an address, in lower case. A locked one is not counted, so that guessing does not prolong the lock. */
export const reserveFailure = async (
  sql: Sql,
  email: string,
  { maxFailures, windowSeconds, lockoutSeconds }: LockoutSettings,
): Promise<ReservedAttempt> => {
  const row = await sql.row<ReservedAttempt>(RESERVE, [keyOf(email), maxFailures, windowSeconds, lockoutSeconds])
  if (row === undefined) throw new Error('An attempt was not counted')
  return row
}

const TAKE_BACK = `update sign_in_failures set failed = array_remove(failed, $2::timestamptz),
    locked_until = case when locked_at = $2::timestamptz then null else locked_until end,
    locked_at = case when locked_at = $2::timestamptz then null else locked_at end
  where account_key = $1`
/** The attempt was no failure; those before it stand. */
export const takeBackFailure = async (sql: Sql, email: string, attempt: ReservedAttempt): Promise<void> => {
  await sql.rows(TAKE_BACK, [keyOf(email), attempt.at])
}

const CLEAR = 'delete from sign_in_failures where account_key = $1'
/** Forgets all failures of an address, and a lock. */
export const clearFailures = async (sql: Sql, email: string): Promise<void> => {
  await sql.rows(CLEAR, [keyOf(email)])
}

const SWEEP = `delete from sign_in_failures where ctid = any (array(
  select ctid from sign_in_failures where expires_at <= now() limit 5000 for update skip locked))`
/** Forgets what counts no more. */
export const sweepFailures = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
