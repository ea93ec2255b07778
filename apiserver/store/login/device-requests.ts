/** Requests of the device flow (RFC 8628): of both of their codes digests alone are kept. */
import { columns } from '../columns.ts'
import type { Sql } from '../sql.ts'

export type DeviceState = 'pending' | 'approved' | 'denied' | 'redeemed'

/** What a client asks for. */
export interface DeviceRequest {
  readonly clientName: string
  readonly clientIp: string
  readonly scopes: readonly string[]
  readonly organizationId: string | null
  /** Seconds that the token is to live at most; null: for ever. */
  readonly lifeSeconds: number | null
}

/** A request to keep. */
export interface NewDeviceRequest extends DeviceRequest {
  readonly deviceDigest: Buffer
  readonly userCodeDigest: Buffer
  readonly clientKey: string
  readonly validSeconds: number
  readonly intervalSeconds: number
}

export interface DeviceRequestRow extends DeviceRequest {
  readonly deviceDigest: Buffer
  readonly state: DeviceState
  readonly expiresAt: Date
  /** By the database's clock. */
  readonly expired: boolean
  readonly decidedBy: string | null
  readonly tokenId: string | null
  readonly grantedScopes: readonly string[] | null
  readonly grantedOrganizationId: string | null
  /** null: never, where something was granted. */
  readonly tokenExpiresAt: Date | null
}

const REQUEST = `${columns('d', [
  'device_digest',
  'client_name',
  'client_ip',
  'scopes',
  'organization_id',
  'life_seconds',
  'state',
  'expires_at',
  'decided_by',
  'token_id',
  'granted_scopes',
  'granted_organization_id',
  'token_expires_at',
])}, d.expires_at <= now() as expired`

const INSERT = `insert into device_requests
    (device_digest, user_code_digest, client_name, client_ip, client_key, scopes, organization_id, life_seconds, interval_seconds, expires_at)
  values ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + make_interval(secs => $10))
  on conflict (user_code_digest) do nothing returning 1`
/** False: another request has this user code. */
export const insertDeviceRequest = async (sql: Sql, request: NewDeviceRequest): Promise<boolean> =>
  (await sql.row(INSERT, [
    request.deviceDigest,
    request.userCodeDigest,
    request.clientName,
    request.clientIp,
    request.clientKey,
    request.scopes,
    request.organizationId,
    request.lifeSeconds,
    request.intervalSeconds,
    request.validSeconds,
  ])) !== undefined

const COUNT_PENDING = `select count(*)::int as n from device_requests
  where client_key = $1 and state = 'pending' and expires_at > now()`
/** How many requests of an address wait for somebody. */
export const countPendingRequests = async (sql: Sql, clientKey: string): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT_PENDING, [clientKey]))?.n ?? 0

const FIND = `select ${REQUEST} from device_requests d where d.user_code_digest = $1 and d.expires_at > now()`
/** The request of a user code that has not run out. Changes nothing. */
export const findDeviceRequest = (sql: Sql, userCodeDigest: Buffer): Promise<DeviceRequestRow | undefined> =>
  sql.row<DeviceRequestRow>(FIND, [userCodeDigest])

/** The same, locked: who holds it decides alone. */
export const lockDeviceRequest = (sql: Sql, userCodeDigest: Buffer): Promise<DeviceRequestRow | undefined> =>
  sql.row<DeviceRequestRow>(`${FIND} for no key update`, [userCodeDigest])

/** What somebody grants. */
export interface DeviceGrant {
  readonly userId: string
  readonly tokenId: string
  readonly scopes: readonly string[]
  readonly organizationId: string | undefined
  readonly lifeSeconds: number | undefined
}

const APPROVE = `update device_requests as d set state = 'approved', decided_by = $2, token_id = $3, granted_scopes = $4,
    granted_organization_id = $5, token_expires_at = now() + make_interval(secs => $6)
  where d.device_digest = $1 and d.state = 'pending' returning ${REQUEST}`
/** Undefined: somebody decided already. */
export const approveDeviceRequest = (
  sql: Sql,
  deviceDigest: Buffer,
  { userId, tokenId, scopes, organizationId, lifeSeconds }: DeviceGrant,
): Promise<DeviceRequestRow | undefined> =>
  sql.row<DeviceRequestRow>(APPROVE, [deviceDigest, userId, tokenId, scopes, organizationId, lifeSeconds])

const DENY = `update device_requests set state = 'denied', decided_by = $2, token_id = null, granted_scopes = null,
    granted_organization_id = null, token_expires_at = null
  where device_digest = $1 and state in ('pending', 'approved')`
/** Refuses what waits, or takes a grant back that nobody fetched. */
export const denyDeviceRequest = async (sql: Sql, deviceDigest: Buffer, userId: string): Promise<void> => {
  await sql.rows(DENY, [deviceDigest, userId])
}

const DENY_ALL = `update device_requests set state = 'denied', token_id = null, granted_scopes = null,
    granted_organization_id = null, token_expires_at = null
  where state = 'approved' and decided_by = $1 and ($2::text is null or granted_organization_id = $2)`
/** Takes back what a user granted and nobody fetched: all of it, or what is bound to an organization. */
export const takeBackGrants = async (sql: Sql, userId: string, organizationId?: string): Promise<void> => {
  await sql.rows(DENY_ALL, [userId, organizationId])
}

/** A poll of a client. */
export interface DevicePoll extends DeviceRequestRow {
  /** It came before it was allowed to. */
  readonly tooSoon: boolean
  /** When it came, by the database's clock. */
  readonly at: Date
  /** The token that was fetched, as long as it may be told again. */
  readonly sealedToken: Buffer | null
}

// A moment early is forgiven: timers are.
const POLL = `with before as (
    select device_digest, polled_at > now() - make_interval(secs => interval_seconds - 0.5) as soon
    from device_requests where device_digest = $1 for no key update)
  update device_requests as d set polled_at = now(),
    interval_seconds = d.interval_seconds + case when before.soon and d.state in ('pending', 'approved') then $2 else 0 end
  from before where d.device_digest = before.device_digest
  returning ${REQUEST}, coalesce(before.soon, false) as "tooSoon", now() as at,
    case when d.told_until > now() then d.sealed_token end as "sealedToken"`
/** Counts a poll, and locks the request. One that came too soon makes the wait longer for good. Undefined: no such code. */
export const pollDeviceRequest = (
  sql: Sql,
  deviceDigest: Buffer,
  slowDownSeconds: number,
): Promise<DevicePoll | undefined> => sql.row<DevicePoll>(POLL, [deviceDigest, slowDownSeconds])

const REDEEM = `update device_requests as d set state = 'redeemed', sealed_token = $2, told_until = now() + interval '10 minutes'
  where d.device_digest = $1 and d.state = 'approved' and d.expires_at > now() returning 1`
/** Takes what was granted, once, and keeps the token for ten minutes, sealed. */
export const redeemDeviceRequest = async (sql: Sql, deviceDigest: Buffer, sealedToken: Buffer): Promise<boolean> =>
  (await sql.row(REDEEM, [deviceDigest, sealedToken])) !== undefined

const SWEEP = `delete from device_requests where ctid = any (array(
  select ctid from device_requests where expires_at <= now() - interval '1 hour' limit 1000 for update skip locked))`
const FORGET_TOKENS =
  'update device_requests set sealed_token = null where sealed_token is not null and told_until <= now()'
/** Forgets sealed tokens after ten minutes, and requests that ran out an hour ago. */
export const sweepDeviceRequests = async (sql: Sql): Promise<void> => {
  await sql.rows(FORGET_TOKENS)
  await sql.rows(SWEEP)
}
