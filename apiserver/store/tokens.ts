/** Account tokens: only a SHA-256 digest and a display prefix of each are kept. */
import type { Role } from '../../lib/model/credential.ts'
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

/** A token that is good right now, with whom it speaks for and their role in one organization. */
export interface Credential {
  readonly id: string
  readonly kind: 'personal' | 'agent'
  readonly userId: string
  readonly isOperator: boolean
  readonly role: Role | null
  /** `last_used_at` is older than a minute: worth a `touchTokens` after the answer. */
  readonly stale: boolean
}

const FIND_CREDENTIAL = `select t.id, t.kind, t.user_id as "userId", u.is_operator as "isOperator", m.role,
    t.last_used_at is null or t.last_used_at < now() - interval '60 s' as stale
  from tokens t join users u on u.user_id = t.user_id
    left join memberships m on m.user_id = t.user_id and m.organization_id = $2
  where t.digest = $1 and t.revoked_at is null and (t.expires_at is null or t.expires_at > now()) and u.disabled_at is null`
/**
 * Looks a token up by its digest, with the role of its user in an organization, in one statement and on the database's
 * clock. Undefined: unknown, expired, revoked or of a disabled user. Never cached: a revocation holds at once.
 */
export const findCredential = (
  sql: Sql,
  digest: Buffer,
  organizationId: string | undefined,
): Promise<Credential | undefined> => sql.row<Credential>(FIND_CREDENTIAL, [digest, organizationId ?? null])

const TOUCH = `update tokens set last_used_at = now() where id in (
  select id from tokens where id = any($1) and (last_used_at is null or last_used_at < now() - interval '60 s')
  for no key update skip locked)`
/** Notes that tokens were used; gives way where somebody else is noting the same. */
export const touchTokens = async (sql: Sql, tokenIds: readonly string[]): Promise<void> => {
  await sql.rows(TOUCH, [tokenIds])
}

/** A token to keep. */
export interface NewTokenRow {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly digest: Buffer
  readonly tokenPrefix: string
  /** Seconds from now; undefined: never. */
  readonly lifetimeSeconds: number | undefined
}

const INSERT = `insert into tokens as t (id, user_id, kind, name, digest, token_prefix, expires_at)
  values ($1, $2, 'personal', $3, $4, $5, now() + make_interval(secs => $6::double precision)) returning ${TOKEN}`
/** Keeps a personal token. */
export const insertToken = async (sql: Sql, token: NewTokenRow): Promise<TokenRow> => {
  const { id, userId, name, digest, tokenPrefix, lifetimeSeconds } = token
  const row = await sql.row<TokenRow>(INSERT, [id, userId, name, digest, tokenPrefix, lifetimeSeconds ?? null])
  if (row === undefined) throw new Error('A token was not kept')
  return row
}

const COUNT_ACTIVE = `select count(*) as n from tokens
  where user_id = $1 and revoked_at is null and (expires_at is null or expires_at > now())`
export const countActiveTokens = async (sql: Sql, userId: string): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT_ACTIVE, [userId]))?.n ?? 0

const EXPIRY = `select expires_at as "expiresAt", now() as now from tokens where id = $1`
/** When a token ends, and what time it is for the database. */
export const findTokenExpiry = (
  sql: Sql,
  tokenId: string,
): Promise<{ readonly expiresAt: Date | null; readonly now: Date } | undefined> => sql.row(EXPIRY, [tokenId])

const LOCK = `select ${TOKEN} from tokens t where t.id = $1 and t.user_id = $2 for no key update`
export const lockToken = (sql: Sql, userId: string, tokenId: string): Promise<TokenRow | undefined> =>
  sql.row<TokenRow>(LOCK, [tokenId, userId])

const REVOKE = `update tokens as t set revoked_at = now() where t.id = $1 and t.revoked_at is null returning ${TOKEN}`
export const revokeToken = (sql: Sql, tokenId: string): Promise<TokenRow | undefined> =>
  sql.row<TokenRow>(REVOKE, [tokenId])

const REVOKE_BOUND = `update tokens set revoked_at = now()
  where user_id = $1 and organization_id = $2 and kind = 'agent' and revoked_at is null`
/** Ends the agent tokens of a user that are bound to an organization. */
export const revokeBoundTokens = async (sql: Sql, userId: string, organizationId: string): Promise<void> => {
  await sql.rows(REVOKE_BOUND, [userId, organizationId])
}

const LIST = `select ${TOKEN} from tokens t
  where t.user_id = $1 and (t.revoked_at is null or t.revoked_at > now() - interval '30 days')
    and ($2::timestamptz is null or (t.created_at, t.id) < ($2, $3))
  order by t.created_at desc, t.id desc limit $4`
/** A user's tokens, newest first; revoked ones stay for 30 days. */
export const listTokens = async (sql: Sql, userId: string, request: PageRequest): Promise<Page<TokenRow>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<TokenRow>(LIST, [userId, after?.createdAt, after?.id, request.limit + 1])
  return toPage(rows, request.limit, row => row)
}
