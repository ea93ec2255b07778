/** Invitations that are open: to an address, with a role in an organization. Only digests of their links are kept. */
import type { Role } from '../../../lib/model/credential.ts'
import { columns } from '../columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from '../page.ts'
import type { Sql } from '../sql.ts'

export interface InvitationRow {
  readonly id: string
  readonly organizationId: string
  readonly email: string
  readonly role: Role
  /** User who invites. */
  readonly invitedBy: string
  readonly byMail: boolean
  readonly createdAt: Date
  readonly expiresAt: Date
}

const INVITATION = columns('i', [
  'id',
  'organization_id',
  'email',
  'role',
  'invited_by',
  'by_mail',
  'created_at',
  'expires_at',
])
const OPEN = 'i.expires_at > now()'

/** An invitation to keep. */
export type NewInvitation = Omit<InvitationRow, 'createdAt' | 'expiresAt'> & {
  readonly tokenDigest: Buffer
  readonly validSeconds: number
}

const INSERT = `insert into invitations as i (id, organization_id, email, role, invited_by, by_mail, token_digest, expires_at)
  values ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8)) returning ${INVITATION}`
export const insertInvitation = async (sql: Sql, invitation: NewInvitation): Promise<InvitationRow> => {
  const { id, organizationId, email, role, invitedBy, byMail, tokenDigest, validSeconds } = invitation
  const values = [id, organizationId, email, role, invitedBy, byMail, tokenDigest, validSeconds]
  const row = await sql.row<InvitationRow>(INSERT, values)
  if (row === undefined) throw new Error('An invitation was not kept')
  return row
}

const COUNT = `select count(*) as n from invitations i where i.organization_id = $1 and ${OPEN}`
/** How many are open. Hold the organization's lock. */
export const countInvitations = async (sql: Sql, organizationId: string): Promise<number> =>
  (await sql.row<{ n: number }>(COUNT, [organizationId]))?.n ?? 0

const LOCK = `select ${INVITATION} from invitations i where i.organization_id = $1 and i.id = $2 and ${OPEN} for update`
export const lockInvitation = (sql: Sql, organizationId: string, id: string): Promise<InvitationRow | undefined> =>
  sql.row<InvitationRow>(LOCK, [organizationId, id])

const LOCK_BY_EMAIL = `select ${INVITATION} from invitations i where i.organization_id = $1 and i.email = $2 for update`
/** The one that an address has, also when it ran out. */
export const lockInvitationOf = (sql: Sql, organizationId: string, email: string): Promise<InvitationRow | undefined> =>
  sql.row<InvitationRow>(LOCK_BY_EMAIL, [organizationId, email])

const REMOVE = 'delete from invitations where id = $1'
export const removeInvitation = async (sql: Sql, id: string): Promise<void> => {
  await sql.rows(REMOVE, [id])
}

/** An invitation, with what is true of it now. */
export interface OfferedInvitation extends InvitationRow {
  readonly organizationName: string
  /** The role that the inviter has today; null: none. */
  readonly inviterRole: Role | null
  /** The account with its address, if there is one. */
  readonly accountId: string | null
}

const OFFERED = `select ${INVITATION}, o.name as "organizationName", m.role as "inviterRole", a.user_id as "accountId"
  from invitations i join organizations o on o.organization_id = i.organization_id
    join users inviter on inviter.user_id = i.invited_by
    left join memberships m on m.organization_id = i.organization_id and m.user_id = i.invited_by and inviter.disabled_at is null
    left join users a on a.email = i.email
  where i.token_digest = $1 and ${OPEN}`
/** What the bearer of a link is offered. Changes nothing. */
export const findOfferedInvitation = (sql: Sql, tokenDigest: Buffer): Promise<OfferedInvitation | undefined> =>
  sql.row<OfferedInvitation>(OFFERED, [tokenDigest])

const LIST = `select ${INVITATION} from invitations i
  where i.organization_id = $1 and ${OPEN} and ($2::timestamptz is null or (i.created_at, i.id) > ($2, $3))
  order by i.created_at, i.id limit $4`
/** Those of an organization that are open, oldest first. */
export const listInvitations = async (
  sql: Sql,
  organizationId: string,
  request: PageRequest,
): Promise<Page<InvitationRow>> => {
  const after = decodeCursor(request.after)
  const values = [organizationId, after?.createdAt, after?.id, request.limit + 1]
  return toPage(await sql.rows<InvitationRow>(LIST, values), request.limit, row => row)
}

const SWEEP = `delete from invitations where id in (select id from invitations where expires_at <= now()
  limit 1000 for update skip locked)`
/** Forgets those that nobody accepted. */
export const sweepInvitations = async (sql: Sql): Promise<void> => {
  await sql.rows(SWEEP)
}
