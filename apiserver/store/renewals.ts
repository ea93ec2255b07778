/**
 * Renewals: written before the resource store is patched, settled after.
 * pending -> applied | abandoned. An abandoned one whose patch turns out to have arrived becomes applied after all.
 */
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'

export interface RenewalRow {
  readonly id: number
  readonly environmentRow: string
  readonly ttlHours: number
  readonly expiresAt: Date
  readonly actor: string
  readonly requestId: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly state: 'pending' | 'applied' | 'abandoned'
  readonly createdAt: Date
}

const RENEWAL = columns('r', [
  'id',
  'environment_row',
  'ttl_hours',
  'expires_at',
  'actor',
  'request_id',
  'metadata',
  'state',
  'created_at',
])

const INSERT = `insert into renewals as r (environment_row, ttl_hours, expires_at, actor, request_id, metadata)
  values ($1, $2::int, now() + make_interval(hours => $2::int), $3, $4, $5::jsonb) returning ${RENEWAL}`
/** Notes a renewal that is about to be written through. Its expiry counts from now. */
export const insertRenewal = async (
  sql: Sql,
  renewal: Pick<RenewalRow, 'environmentRow' | 'ttlHours' | 'actor' | 'requestId' | 'metadata'>,
): Promise<RenewalRow> => {
  const { environmentRow, ttlHours, actor, requestId, metadata } = renewal
  const row = await sql.row<RenewalRow>(INSERT, [environmentRow, ttlHours, actor, requestId, JSON.stringify(metadata)])
  if (row === undefined) throw new Error('A renewal was not kept')
  return row
}

const APPLY = `update renewals as r set state = 'applied' where r.id = $1 and r.state <> 'applied' returning ${RENEWAL}`
/** Undefined when somebody else has settled it so already: then the audit event is theirs. */
export const applyRenewal = (sql: Sql, id: number): Promise<RenewalRow | undefined> => sql.row<RenewalRow>(APPLY, [id])

const ABANDON = `update renewals set state = 'abandoned' where id = $1 and state = 'pending'`
export const abandonRenewal = async (sql: Sql, id: number): Promise<void> => {
  await sql.rows(ABANDON, [id])
}

const LIST_PENDING = `select ${RENEWAL} from renewals r
  where r.environment_row = $1 and r.state = 'pending' and r.id < $2 order by r.id`
/** Renewals of an environment before this one that nobody has settled. */
export const listPendingRenewals = (
  sql: Sql,
  environmentRow: string,
  beforeId: number,
): Promise<readonly RenewalRow[]> => sql.rows<RenewalRow>(LIST_PENDING, [environmentRow, beforeId])

const LIST_STALE = `select ${RENEWAL} from renewals r where r.state = 'pending'
  and r.created_at < now() - make_interval(secs => $1::double precision) order by r.id limit 100`
/** Renewals that have been pending for so many seconds: whoever wrote them is gone. */
export const listStaleRenewals = (sql: Sql, olderThanSeconds: number): Promise<readonly RenewalRow[]> =>
  sql.rows<RenewalRow>(LIST_STALE, [olderThanSeconds])
