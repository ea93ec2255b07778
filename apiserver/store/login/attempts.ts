/**
 * How often something was tried: counted in the database, so that replicas count together, by its clock, before the attempt
 * is judged, so that attempts at the same moment cannot all find room.
 */
import { createHash } from 'node:crypto'
import type { Sql } from '../sql.ts'

/** At most so many in a sliding window. */
export interface AttemptLimit {
  /** What is limited: a word of ours. */
  readonly bucket: string
  readonly most: number
  readonly windowSeconds: number
}

/** How an attempt was counted. */
export interface CountedAttempt {
  readonly allowed: boolean
  /** Attempts in the window, this one among them if it was allowed. */
  readonly count: number
  /** Seconds until there is room again; 0 when it was allowed. */
  readonly retryAfterSeconds: number
}

const keyOf = (who: string): Buffer => createHash('sha256').update(who).digest()

const RECENT = `(select coalesce(array_agg(h order by h), '{}') from unnest(a.hits) h where h > now() - make_interval(secs => $4))`
const TAKE = `insert into attempts as a (bucket, key, hits, expires_at)
  values ($1, $2, array[now()], now() + make_interval(secs => $4))
  on conflict (bucket, key) do update set
    hits = case when cardinality(${RECENT}) < $3 then ${RECENT} || now() else ${RECENT} end,
    expires_at = now() + make_interval(secs => $4)
  returning hits[cardinality(hits)] = now() as allowed, cardinality(hits) as count,
    least(ceil(extract(epoch from hits[1] + make_interval(secs => $4) - now()))::int, $4::int) as "retryAfterSeconds"`
/** Counts an attempt of somebody; one beyond the limit is not counted. */
export const countAttempt = async (
  sql: Sql,
  { bucket, most, windowSeconds }: AttemptLimit,
  who: string,
): Promise<CountedAttempt> => {
  const row = await sql.row<CountedAttempt>(TAKE, [bucket, keyOf(who), most, windowSeconds])
  if (row === undefined) throw new Error('An attempt was not counted')
  return row.allowed ? { ...row, retryAfterSeconds: 0 } : row
}

const TAKE_BACK = `update attempts set hits = hits[1:cardinality(hits) - 1]
  where bucket = $1 and key = $2 and hits[cardinality(hits)] = now()`
/** Takes back what was counted in this transaction: it turned out to be none of those that are limited. */
export const takeBackAttempt = async (sql: Sql, bucket: string, who: string): Promise<void> => {
  await sql.rows(TAKE_BACK, [bucket, keyOf(who)])
}

const GIVE_BACK = 'update attempts set hits = hits[1:cardinality(hits) - 1] where bucket = $1 and key = $2'
/** Takes back the latest of somebody's attempts, whichever transaction counted it: nobody looked at one of them. */
export const giveBackAttempt = async (sql: Sql, bucket: string, who: string): Promise<void> => {
  await sql.rows(GIVE_BACK, [bucket, keyOf(who)])
}

const FORGET = 'delete from attempts where bucket = $1 and key = $2'
/** Forgets what was counted of somebody: one of their attempts was right, or they begin anew. */
export const forgetAttempts = async (sql: Sql, bucket: string, who: string): Promise<void> => {
  await sql.rows(FORGET, [bucket, keyOf(who)])
}

const TURN = `insert into attempts as a (bucket, key, hits, expires_at)
  values ($1, $2, array[now()], now() + make_interval(secs => $3))
  on conflict (bucket, key) do update set
    hits = array[greatest(now(), a.hits[cardinality(a.hits)] + make_interval(secs => $3))],
    expires_at = greatest(now(), a.hits[cardinality(a.hits)] + make_interval(secs => $3)) + make_interval(secs => $3)
  returning hits[1] as at`
/** Takes somebody's next turn, where turns are so many seconds apart: now, or when those before have had theirs. */
export const takeTurn = async (sql: Sql, bucket: string, who: string, secondsApart: number): Promise<Date> => {
  const row = await sql.row<{ at: Date }>(TURN, [bucket, keyOf(who), secondsApart])
  if (row === undefined) throw new Error('A turn was not taken')
  return row.at
}

const SWEEP = `delete from attempts where ctid = any (array(
  select ctid from attempts where expires_at <= now() limit 5000 for update skip locked))`
/** Forgets what no window reaches any more. */
export const sweepAttempts = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
