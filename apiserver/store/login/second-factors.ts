/** Second factors: an app's sealed secret, digests of recovery codes, and tokens between the two steps of a sign-in. */
import type { SealPlace } from '../../../lib/credentials/seal.ts'
import type { Sql } from '../sql.ts'

/** A secret of an app, with what time it is for the database. */
export interface FactorRow {
  readonly sealedSecret: string
  readonly version: number
  readonly enabledAt: Date | null
  /** It waits for its first code. */
  readonly pending: boolean
  /** Seconds since 1970. */
  readonly seconds: number
}

/** Where a secret lies. */
export const secretPlace = (userId: string, version: number): SealPlace => ({
  table: 'second_factors',
  column: 'sealed_secret',
  rowId: userId,
  version: BigInt(version),
})

const FIND = `select sealed_secret as "sealedSecret", version, enabled_at as "enabledAt",
    coalesce(pending_until > now(), false) as pending, extract(epoch from clock_timestamp())::float8 as seconds
  from second_factors where user_id = $1`
export const findFactor = (sql: Sql, userId: string): Promise<FactorRow | undefined> =>
  sql.row<FactorRow>(FIND, [userId])

const PUT = `insert into second_factors (user_id, sealed_secret, version, pending_until)
  values ($1, $2, $3, now() + make_interval(secs => $4))
  on conflict (user_id) do update set sealed_secret = $2, version = $3, totp_last_step = 0, pending_until = now() + make_interval(secs => $4)
  returning pending_until as "pendingUntil"`
/** Keeps a secret that waits for its first code, in place of another that waits. Hold the user's row. */
export const putPendingFactor = async (
  sql: Sql,
  userId: string,
  sealedSecret: string,
  version: number,
  lifeSeconds: number,
): Promise<Date> => {
  const row = await sql.row<{ pendingUntil: Date }>(PUT, [userId, sealedSecret, version, lifeSeconds])
  if (row === undefined) throw new Error('A second factor was not kept')
  return row.pendingUntil
}

const ENABLE = `update second_factors set enabled_at = now(), pending_until = null, totp_last_step = $3
  where user_id = $1 and version = $2 and pending_until > now() returning 1`
/** Takes the first code: from now on it is asked for. False: it is not waiting any more. */
export const enableFactor = async (sql: Sql, userId: string, version: number, step: number): Promise<boolean> =>
  (await sql.row(ENABLE, [userId, version, step])) !== undefined

const SPEND_STEP = `update second_factors set totp_last_step = $3
  where user_id = $1 and version = $2 and enabled_at is not null and totp_last_step < $3 returning 1`
/** Takes a code, once. */
export const spendStep = async (sql: Sql, userId: string, version: number, step: number): Promise<boolean> =>
  (await sql.row(SPEND_STEP, [userId, version, step])) !== undefined

const REMOVE = `with codes as (delete from recovery_codes where user_id = $1),
    tokens as (delete from mfa_tokens where user_id = $1)
  delete from second_factors where user_id = $1 returning enabled_at is not null as enabled`
/** Asks for no second factor any more, and answers whether one was asked for; one that waits for its first code goes too. */
export const removeFactor = async (sql: Sql, userId: string): Promise<boolean> =>
  (await sql.row<{ enabled: boolean }>(REMOVE, [userId]))?.enabled === true

const DROP_CODES = 'delete from recovery_codes where user_id = $1'
const INSERT_CODES = 'insert into recovery_codes (user_id, digest) select $1, unnest($2::bytea[])'
/** Puts codes in place of those that are left. */
export const replaceRecoveryCodes = async (sql: Sql, userId: string, digests: readonly Buffer[]): Promise<void> => {
  await sql.rows(DROP_CODES, [userId])
  await sql.rows(INSERT_CODES, [userId, digests])
}

const SPEND_CODE = 'delete from recovery_codes where user_id = $1 and digest = $2 returning 1'
/** Takes a recovery code, once. */
export const spendRecoveryCode = async (sql: Sql, userId: string, digest: Buffer): Promise<boolean> =>
  (await sql.row(SPEND_CODE, [userId, digest])) !== undefined

const COUNT_CODES = 'select count(*)::int as n from recovery_codes where user_id = $1'
export const countRecoveryCodes = async (sql: Sql, userId: string): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT_CODES, [userId]))?.n ?? 0

/** How the first step was passed. */
export type FirstStep = 'password' | 'email_link'

const INSERT_TOKEN = `insert into mfa_tokens (digest, user_id, method, expires_at)
  values ($1, $2, $3, now() + make_interval(secs => $4)) returning expires_at as "expiresAt"`
export const insertMfaToken = async (
  sql: Sql,
  token: { readonly digest: Buffer; readonly userId: string; readonly method: FirstStep; readonly lifeSeconds: number },
): Promise<Date> => {
  const { digest, userId, method, lifeSeconds } = token
  const row = await sql.row<{ expiresAt: Date }>(INSERT_TOKEN, [digest, userId, method, lifeSeconds])
  if (row === undefined) throw new Error('A token was not kept')
  return row.expiresAt
}

const LOCK_TOKENS = `select 1 from mfa_tokens where user_id = (select user_id from mfa_tokens where digest = $1) order by digest for update`
const TRY = `update mfa_tokens set tries = tries + 1 where digest = $1 and tries < $2 and expires_at > now()
  returning user_id as "userId", method`
/**
 * Counts a try of a token. Undefined: it is unknown, spent, too old, or was tried too often. All tokens of its account are locked
 * first, in one order: whoever passes drops them all, and two who passed would wait for each other's.
 */
export const tryMfaToken = async (
  sql: Sql,
  digest: Buffer,
  most: number,
): Promise<{ readonly userId: string; readonly method: FirstStep } | undefined> => {
  await sql.rows(LOCK_TOKENS, [digest])
  return sql.row(TRY, [digest, most])
}

const DROP_TOKENS = 'delete from mfa_tokens where user_id = $1'
/** Whoever waits between the two steps has to begin anew. */
export const dropMfaTokens = async (sql: Sql, userId: string): Promise<void> => {
  await sql.rows(DROP_TOKENS, [userId])
}

const SWEEP = `with tokens as (delete from mfa_tokens where ctid = any (array(
    select ctid from mfa_tokens where expires_at <= now() limit 1000 for update skip locked)))
  delete from second_factors where ctid = any (array(
    select ctid from second_factors where pending_until <= now() limit 1000 for update skip locked))`
/** Forgets tokens that expired, and secrets whose first code never came. */
export const sweepFactors = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
