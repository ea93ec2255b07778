/** API keys of organizations: only a SHA-256 digest and a display prefix of each are kept. */
import type { Level } from '../../lib/model/scope.ts'
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import type { Sql } from './sql.ts'

export interface ApiKeyRow {
  readonly id: string
  readonly organizationId: string
  readonly name: string
  readonly scopes: readonly Level[]
  readonly keyPrefix: string
  readonly createdBy: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
  readonly revokedAt: Date | null
}

const KEY = columns('k', [
  'id',
  'organization_id',
  'name',
  'scopes',
  'key_prefix',
  'created_by',
  'created_at',
  'last_used_at',
  'revoked_at',
])

/** A key to keep. */
export type NewApiKeyRow = Pick<ApiKeyRow, 'id' | 'organizationId' | 'name' | 'scopes' | 'keyPrefix' | 'createdBy'> & {
  readonly digest: Buffer
}

const INSERT = `insert into api_keys as k (id, organization_id, name, scopes, digest, key_prefix, created_by)
  values ($1, $2, $3, $4, $5, $6, $7) returning ${KEY}`
export const insertApiKey = async (sql: Sql, key: NewApiKeyRow): Promise<ApiKeyRow> => {
  const { id, organizationId, name, scopes, digest, keyPrefix, createdBy } = key
  const row = await sql.row<ApiKeyRow>(INSERT, [id, organizationId, name, scopes, digest, keyPrefix, createdBy])
  if (row === undefined) throw new Error('An API key was not kept')
  return row
}

const COUNT = 'select count(*) as n from api_keys where organization_id = $1 and revoked_at is null'
/** Hold the organization's lock, or the answer is old at once. */
export const countApiKeys = async (sql: Sql, organizationId: string): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT, [organizationId]))?.n ?? 0

const LOCK = `select ${KEY} from api_keys k where k.id = $1 and k.organization_id = $2 for no key update`
export const lockApiKey = (sql: Sql, organizationId: string, id: string): Promise<ApiKeyRow | undefined> =>
  sql.row<ApiKeyRow>(LOCK, [id, organizationId])

const REVOKE = `update api_keys as k set revoked_at = now() where k.id = $1 and k.revoked_at is null returning ${KEY}`
/** Undefined: it was revoked before. */
export const revokeApiKey = (sql: Sql, id: string): Promise<ApiKeyRow | undefined> => sql.row<ApiKeyRow>(REVOKE, [id])

const LIST = `select ${KEY} from api_keys k where k.organization_id = $1 and k.revoked_at is null
    and ($2::timestamptz is null or (k.created_at, k.id) > ($2, $3))
  order by k.created_at, k.id limit $4`
/** The keys that work, oldest first. */
export const listApiKeys = async (sql: Sql, organizationId: string, request: PageRequest): Promise<Page<ApiKeyRow>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<ApiKeyRow>(LIST, [organizationId, after?.createdAt, after?.id, request.limit + 1])
  return toPage(rows, request.limit, row => row)
}

const SWEEP = `delete from api_keys where id in (select id from api_keys where revoked_at <= now() - interval '30 days'
  limit 1000 for update skip locked)`
/** Forgets keys that were revoked 30 days ago; the audit log goes on telling of them. */
export const sweepApiKeys = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
