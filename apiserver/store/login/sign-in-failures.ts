/**
 * Failed passwords of an address and the lock that follows, alike for addresses with and without an account. A password counts
 * in the statement that says whether its answer may be told, after it was compared and not before: however many are compared
 * at the same moment, on however many replicas, nobody learns anything of more wrong ones than lock, and right ones lock
 * nobody out. Of one whose process ended before that, nobody was told anything: it counts for nothing.
 */
import { createHash } from 'node:crypto'
import type { Sql } from '../sql.ts'

export interface LockoutSettings {
  /** Failures within the window that lock. */
  readonly maxFailures: number
  readonly windowSeconds: number
  readonly lockoutSeconds: number
}

/** What became of a password that was compared. */
export interface JudgedPassword {
  /** It is right, and nothing keeps that from being told. */
  readonly passes: boolean
  /** It is the failure that locks. */
  readonly locks: boolean
}

const keyOf = (email: string): Buffer => createHash('sha256').update(email).digest()

const COUNT = `select (select count(*)::int from unnest(f.failed) h where h > now() - make_interval(secs => $2)) as n
  from sign_in_failures f where f.account_key = $1`
/** Failures of an address, in lower case, in the window. */
export const countFailures = async (sql: Sql, email: string, { windowSeconds }: LockoutSettings): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT, [keyOf(email), windowSeconds]))?.n ?? 0

const RECENT = `(select coalesce(array_agg(h order by h), '{}') from unnest(f.failed) h where h > now() - make_interval(secs => $3))`
/** Nothing more counts: what is locked is not locked for longer by guessing on. */
const STAYS = 'f.locked_until > now() or $5'
const JUDGE = `insert into sign_in_failures as f (account_key, failed, locked_at, locked_until, expires_at)
  values ($1, case when $5::boolean then '{}' else array[now()] end, case when $2 <= 1 and not $5 then now() end,
    case when $2 <= 1 and not $5 then now() + make_interval(secs => $4) end, now() + make_interval(secs => $3 + $4))
  on conflict (account_key) do update set
    failed = case when ${STAYS} then f.failed else ${RECENT} || now() end,
    locked_at = case when ${STAYS} then f.locked_at when cardinality(${RECENT}) + 1 >= $2 then now() end,
    locked_until = case when ${STAYS} then f.locked_until
      when cardinality(${RECENT}) + 1 >= $2 then now() + make_interval(secs => $4) end,
    expires_at = now() + make_interval(secs => $3 + $4)
  returning $5 and coalesce(locked_until <= now(), true) as passes, not $5 and coalesce(locked_at = now(), false) as locks`
/**
 * Judges a password of an address, in lower case, that was compared and is right or wrong: one after another, since the row
 * stays locked until the transaction ends. One statement for all, so that a right one costs behind a lock what a wrong one does.
 */
export const judgePassword = async (
  sql: Sql,
  email: string,
  isRight: boolean,
  { maxFailures, windowSeconds, lockoutSeconds }: LockoutSettings,
): Promise<JudgedPassword> => {
  const values = [keyOf(email), maxFailures, windowSeconds, lockoutSeconds, isRight]
  const row = await sql.row<JudgedPassword>(JUDGE, values)
  if (row === undefined) throw new Error('A password was not judged')
  return row
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
