/** Links and codes for signing in by mail: one at a time for an address, of which digests are kept. */
import type { Sql } from '../sql.ts'

/** A link to keep. */
export interface NewMagicLink {
  readonly email: string
  readonly tokenDigest: Buffer
  readonly codeDigest: Buffer
  readonly validSeconds: number
}

const PUT = `insert into magic_links (email, token_digest, code_digest, expires_at)
  values ($1, $2, $3, now() + make_interval(secs => $4))
  on conflict (email) do update set token_digest = excluded.token_digest, code_digest = excluded.code_digest, guesses = 0,
    created_at = now(), expires_at = excluded.expires_at`
/** Replaces the one that the address has. */
export const putMagicLink = async (sql: Sql, link: NewMagicLink): Promise<void> => {
  await sql.rows(PUT, [link.email, link.tokenDigest, link.codeDigest, link.validSeconds])
}

const FIND = `select email, expires_at as "expiresAt" from magic_links where token_digest = $1 and expires_at > now()`
/** Whose link it is, and until when. Changes nothing. */
export const findMagicLink = (
  sql: Sql,
  tokenDigest: Buffer,
): Promise<{ readonly email: string; readonly expiresAt: Date } | undefined> => sql.row(FIND, [tokenDigest])

const SPEND = `delete from magic_links where token_digest = $1 and expires_at > now() returning email`
/** The address that a link proves; once. */
export const spendMagicLink = async (sql: Sql, tokenDigest: Buffer): Promise<string | undefined> =>
  (await sql.row<{ email: string }>(SPEND, [tokenDigest]))?.email

const GUESS = `update magic_links set guesses = guesses + 1
  where email = $1 and expires_at > now() and guesses < $2
  returning token_digest as "tokenDigest", code_digest as "codeDigest"`
/** Counts a guess of an address' code, before it is compared; undefined: there is none, or it was guessed at too often. */
export const guessMagicCode = (
  sql: Sql,
  email: string,
  mostGuesses: number,
): Promise<{ readonly tokenDigest: Buffer; readonly codeDigest: Buffer } | undefined> =>
  sql.row(GUESS, [email, mostGuesses])

const SWEEP = `delete from magic_links where email in (select email from magic_links where expires_at <= now()
  limit 1000 for update skip locked)`
/** Forgets those that nobody used. */
export const sweepMagicLinks = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
