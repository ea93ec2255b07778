/** Account tokens: only a SHA-256 digest and a display prefix of each are kept. */
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import type { Sql } from './sql.ts'

export interface TokenRow {
  readonly id: string
  readonly userId: string
  readonly kind: 'personal' | 'agent'
  readonly name: string
  readonly tokenPrefix: string
  readonly scopes: readonly string[] | null
  readonly organizationId: string | null
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
  readonly expiresAt: Date | null
  readonly revokedAt: Date | null
}

const TOKEN = columns('t', [
  'id',
  'user_id',
  'kind',
  'name',
  'token_prefix',
  'scopes',
  'organization_id',
  'created_at',
  'last_used_at',
  'expires_at',
  'revoked_at',
])

/** A token to keep. */
export interface NewTokenRow {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly digest: Buffer
  readonly tokenPrefix: string
  /** undefined: never. */
  readonly expiresAt: Date | undefined
  /** Of an agent's token: what it is limited to; undefined: it is a personal one. */
  readonly scopes?: readonly string[] | undefined
  /** The one organization that it reaches; undefined: all of its user's. */
  readonly organizationId?: string | undefined
}

const INSERT = `insert into tokens as t (id, user_id, kind, name, digest, token_prefix, expires_at, scopes, organization_id)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning ${TOKEN}`
/** Keeps a token. */
export const insertToken = async (sql: Sql, token: NewTokenRow): Promise<TokenRow> => {
  const { id, userId, name, digest, tokenPrefix, expiresAt, scopes, organizationId } = token
  const kind = scopes === undefined ? 'personal' : 'agent'
  const row = await sql.row<TokenRow>(INSERT, [
    id,
    userId,
    kind,
    name,
    digest,
    tokenPrefix,
    expiresAt,
    scopes,
    organizationId,
  ])
  if (row === undefined) throw new Error('A token was not kept')
  return row
}

const COUNT_ACTIVE = `select count(*) as n from tokens
  where user_id = $1 and revoked_at is null and (expires_at is null or expires_at > now())`
export const countActiveTokens = async (sql: Sql, userId: string): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT_ACTIVE, [userId]))?.n ?? 0

const EXPIRY = 'select expires_at as "expiresAt" from tokens where id = $1'
/** When a token ends; null: never. Undefined: there is no such token. */
export const findTokenExpiry = (sql: Sql, tokenId: string): Promise<{ readonly expiresAt: Date | null } | undefined> =>
  sql.row(EXPIRY, [tokenId])

const FIND = `select ${TOKEN} from tokens t where t.id = $1 and t.user_id = $2`
export const findToken = (sql: Sql, userId: string, tokenId: string): Promise<TokenRow | undefined> =>
  sql.row<TokenRow>(FIND, [tokenId, userId])

const LOCK = `select ${TOKEN} from tokens t where t.id = $1 and t.user_id = $2 for no key update`
export const lockToken = (sql: Sql, userId: string, tokenId: string): Promise<TokenRow | undefined> =>
  sql.row<TokenRow>(LOCK, [tokenId, userId])

const HOLD = 'select 1 from tokens where id = $1 and revoked_at is null for share'
/** Whether a token still is in force; nobody ends it until this transaction ends. */
export const holdToken = async (sql: Sql, tokenId: string): Promise<boolean> =>
  (await sql.row(HOLD, [tokenId])) !== undefined

const REVOKE = `update tokens as t set revoked_at = now() where t.id = $1 and t.revoked_at is null returning ${TOKEN}`
export const revokeToken = (sql: Sql, tokenId: string): Promise<TokenRow | undefined> =>
  sql.row<TokenRow>(REVOKE, [tokenId])

const REVOKE_BOUND = `update tokens set revoked_at = now()
  where user_id = $1 and organization_id = $2 and revoked_at is null returning 1`
/** Ends the tokens of a user that are bound to an organization; answers how many. */
export const revokeBoundTokens = async (sql: Sql, userId: string, organizationId: string): Promise<number> =>
  (await sql.rows(REVOKE_BOUND, [userId, organizationId])).length

const REVOKE_NAMED = `update tokens as t set revoked_at = now()
  where t.user_id = $1 and t.name = $2 and t.kind = 'personal' and t.revoked_at is null returning ${TOKEN}`
/** Ends a user's personal tokens of a name, and answers those that were not ended yet. */
export const revokeTokensNamed = (sql: Sql, userId: string, name: string): Promise<readonly TokenRow[]> =>
  sql.rows<TokenRow>(REVOKE_NAMED, [userId, name])

const REVOKE_ALL = 'update tokens set revoked_at = now() where user_id = $1 and revoked_at is null returning 1'
/** Ends all of a user's tokens; answers how many. */
export const revokeTokensOf = async (sql: Sql, userId: string): Promise<number> =>
  (await sql.rows(REVOKE_ALL, [userId])).length

const ENDED_LONG_AGO = `least(t.revoked_at, t.expires_at) <= now() - interval '30 days'`
const LIST = `select ${TOKEN} from tokens t
  where t.user_id = $1 and (${ENDED_LONG_AGO}) is not true
    and ($2::timestamptz is null or (t.created_at, t.id) < ($2, $3))
  order by t.created_at desc, t.id desc limit $4`
/** A user's tokens, newest first; those that were revoked or expired stay for 30 days. */
export const listTokens = async (sql: Sql, userId: string, request: PageRequest): Promise<Page<TokenRow>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<TokenRow>(LIST, [userId, after?.createdAt, after?.id, request.limit + 1])
  return toPage(rows, request.limit, row => row)
}

// Few at once: each may take 200 requests with it.
const SWEEP = `delete from tokens where id in (select t.id from tokens t where ${ENDED_LONG_AGO}
  limit 200 for update skip locked)`
/** Forgets tokens that ended 30 days ago, with what they were used for; the logs go on telling of them. */
export const sweepTokens = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
