/**
 * Audit events: append-only, numbered per organization without gaps in the order of their commits, by a trigger.
 * Its lock is held from the insert to the commit, so inserting is the last thing that a transaction does.
 */
import type { AccountEventType, AuditAction } from '../../lib/model/audit.ts'
import { columns } from './columns.ts'
import type { Sql } from './sql.ts'

/** An event to be recorded. `metadata` holds the call's key parameters and never a secret. */
export interface NewAuditEvent {
  readonly organizationId: string
  readonly actor: string
  readonly action: AuditAction
  readonly resourceKind:
    | 'organization'
    | 'sso'
    | 'member'
    | 'invitation'
    | 'api_key'
    | 'token'
    | 'project'
    | 'environment'
  readonly resourceId: string
  readonly metadata: Readonly<Record<string, unknown>>
}

export interface AuditEventRow extends NewAuditEvent {
  readonly id: number
  readonly occurredAt: Date
}

/** An event of an account that concerns no organization. */
export interface NewAccountEvent {
  readonly type: AccountEventType
  /** null: no account has the address that was given. */
  readonly userId: string | null
  /** The address that was given at a sign-in. */
  readonly email?: string | undefined
  readonly clientIp: string | null
  /** What the client of the call says it is; undefined: it says nothing, or no call leaves the event. */
  readonly userAgent: string | undefined
  readonly metadata: Readonly<Record<string, unknown>>
}

const INSERT = `insert into audit_events (organization_id, actor, action, resource_kind, resource_id, metadata)
  values ($1, $2, $3, $4, $5, $6::jsonb)`
export const insertAuditEvent = async (sql: Sql, event: NewAuditEvent): Promise<void> => {
  const { organizationId, actor, action, resourceKind, resourceId, metadata } = event
  await sql.rows(INSERT, [organizationId, actor, action, resourceKind, resourceId, JSON.stringify(metadata)])
}

const INSERT_ACCOUNT = `insert into account_events (type, user_id, email, client_ip, user_agent, metadata)
  values ($1, $2, $3, $4, $5, $6::jsonb)`
export const insertAccountEvent = async (sql: Sql, event: NewAccountEvent): Promise<void> => {
  const { type, userId, email, clientIp, userAgent, metadata } = event
  await sql.rows(INSERT_ACCOUNT, [type, userId, email, clientIp, userAgent, JSON.stringify(metadata)])
}

const LIST = `select ${columns('a', ['organization_id', 'id', 'actor', 'action', 'resource_kind', 'resource_id', 'occurred_at', 'metadata'])}
  from audit_events a where a.organization_id = $1 and a.id > $2 order by a.id limit $3`
/** Events with a higher id than `after`, in order. `nextCursor` null: there is no more for now. */
export const listAuditEvents = async (
  sql: Sql,
  organizationId: string,
  after: number,
  limit: number,
): Promise<{ readonly items: readonly AuditEventRow[]; readonly nextCursor: number | null }> => {
  const rows = await sql.rows<AuditEventRow>(LIST, [organizationId, after, limit + 1])
  const items = rows.slice(0, limit)
  return { items, nextCursor: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
}

/** An event of the login as it is read. */
export interface AccountEventRow {
  readonly id: number
  readonly type: AccountEventType
  readonly userId: string | null
  readonly email: string | null
  readonly clientIp: string | null
  readonly userAgent: string | null
  readonly occurredAt: Date
  readonly metadata: Record<string, unknown>
}

const LIST_ACCOUNT = `select ${columns('a', ['id', 'type', 'user_id', 'email', 'client_ip', 'user_agent', 'occurred_at', 'metadata'])}
  from account_events a where a.id > $1 order by a.id limit $2`
/** Events of accounts with a higher id than `after`, in order. `nextCursor` null: there is no more for now. */
export const listAccountEvents = async (
  sql: Sql,
  after: number,
  limit: number,
): Promise<{ readonly items: readonly AccountEventRow[]; readonly nextCursor: number | null }> => {
  const rows = await sql.rows<AccountEventRow>(LIST_ACCOUNT, [after, limit + 1])
  const items = rows.slice(0, limit)
  return { items, nextCursor: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
}
