/** Memberships: who has which role in an organization. */
import type { Role } from '../../lib/model/credential.ts'
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import type { Sql } from './sql.ts'

export interface MemberRow {
  readonly organizationId: string
  readonly userId: string
  readonly role: Role
  readonly createdAt: Date
  readonly email: string | null
  readonly name: string
  /** What audit events name them by; null: `user:<id>`. */
  readonly actor: string | null
  /** Who they are to the organization's own identity provider; null: no account of single sign-on. */
  readonly ssoSubject: string | null
}

const MEMBER = `${columns('m', ['organization_id', 'user_id', 'role', 'created_at'])}, ${columns('u', ['email', 'name', 'actor', 'sso_subject'])}`

const FIND = `select ${MEMBER} from memberships m join users u using (user_id)
  where m.organization_id = $1 and m.user_id = $2`
export const findMember = (sql: Sql, organizationId: string, userId: string): Promise<MemberRow | undefined> =>
  sql.row<MemberRow>(FIND, [organizationId, userId])

const HOLD = `select 1 from memberships where organization_id = $1 and user_id = $2 for key share`
/**
 * Whether a user is a member, who is not removed until this transaction ends: what it gives them as a member is there for
 * whoever removes them and takes it away.
 */
export const holdMembership = async (sql: Sql, organizationId: string, userId: string): Promise<boolean> =>
  (await sql.row(HOLD, [organizationId, userId])) !== undefined

const PUT = `with m as (
    insert into memberships (organization_id, user_id, role) values ($1, $2, $3)
    on conflict (organization_id, user_id) do update set role = excluded.role returning *)
  select ${MEMBER} from m join users u using (user_id)`
/** Adds a member or changes the role. The user must be there. */
export const putMembership = async (
  sql: Sql,
  organizationId: string,
  userId: string,
  role: Role,
): Promise<MemberRow> => {
  const row = await sql.row<MemberRow>(PUT, [organizationId, userId, role])
  if (row === undefined) throw new Error('A membership was not kept')
  return row
}

const REMOVE = 'delete from memberships where organization_id = $1 and user_id = $2'
export const removeMembership = async (sql: Sql, organizationId: string, userId: string): Promise<void> => {
  await sql.rows(REMOVE, [organizationId, userId])
}

const OTHER_OWNERS = `select count(*) as n from memberships m join users u using (user_id)
  where m.organization_id = $1 and m.role = 'owner' and m.user_id <> $2 and u.sso_organization_id is null`
/** How many owners there are beside one user who need no identity provider to get in. Hold the organization's lock, or the answer is old at once. */
export const countOtherOwners = async (sql: Sql, organizationId: string, userId: string): Promise<number> =>
  (await sql.row<{ n: number }>(OTHER_OWNERS, [organizationId, userId]))?.n ?? 0

const LIST = `select ${MEMBER} from memberships m join users u using (user_id)
  where m.organization_id = $1 and ($2::timestamptz is null or (m.created_at, m.user_id) > ($2, $3))
  order by m.created_at, m.user_id limit $4`
/** The members of an organization, oldest first. */
export const listMembers = async (sql: Sql, organizationId: string, request: PageRequest): Promise<Page<MemberRow>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<MemberRow>(LIST, [organizationId, after?.createdAt, after?.id, request.limit + 1])
  return toPage(rows, request.limit, row => ({ createdAt: row.createdAt, id: row.userId }))
}
