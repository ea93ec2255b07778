/** Organizations. */
import type { Role } from '../../lib/model/credential.ts'
import { columns } from './columns.ts'
import { decodeCursor, type Page, type PageRequest, toPage } from './page.ts'
import type { Sql } from './sql.ts'

export interface OrganizationRow {
  readonly organizationId: string
  readonly name: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

const ORGANIZATION = columns('o', ['organization_id', 'name', 'created_at', 'updated_at'])

const FIND = `select ${ORGANIZATION} from organizations o where o.organization_id = $1`
export const findOrganization = (sql: Sql, organizationId: string): Promise<OrganizationRow | undefined> =>
  sql.row<OrganizationRow>(FIND, [organizationId])

const LOCK = `select ${ORGANIZATION} from organizations o where o.organization_id = $1 for no key update`
/** Serializes what must be judged for an organization as a whole: its last owner, its caps. */
export const lockOrganization = (sql: Sql, organizationId: string): Promise<OrganizationRow | undefined> =>
  sql.row<OrganizationRow>(LOCK, [organizationId])

const INSERT = `insert into organizations as o (organization_id, name) values ($1, $2)
  on conflict do nothing returning ${ORGANIZATION}`
/** Undefined when the id is taken. */
export const insertOrganization = (
  sql: Sql,
  organizationId: string,
  name: string,
): Promise<OrganizationRow | undefined> => sql.row<OrganizationRow>(INSERT, [organizationId, name])

const RENAME = `update organizations as o set name = $2, updated_at = now() where o.organization_id = $1
  returning ${ORGANIZATION}`
export const renameOrganization = (
  sql: Sql,
  organizationId: string,
  name: string,
): Promise<OrganizationRow | undefined> => sql.row<OrganizationRow>(RENAME, [organizationId, name])

const LIST = `select ${ORGANIZATION}, m.role from organizations o join memberships m using (organization_id)
  where m.user_id = $1 and ($5::text[] is null or o.organization_id = any($5)) and ($2::timestamptz is null or (o.created_at, o.organization_id) > ($2, $3))
  order by o.created_at, o.organization_id limit $4`
/** The organizations that a user is a member of, oldest first, with the role; `only` narrows them. */
export const listOrganizations = async (
  sql: Sql,
  userId: string,
  only: readonly string[] | undefined,
  request: PageRequest,
): Promise<Page<OrganizationRow & { readonly role: Role }>> => {
  const after = decodeCursor(request.after)
  const rows = await sql.rows<OrganizationRow & { readonly role: Role }>(LIST, [
    userId,
    after?.createdAt,
    after?.id,
    request.limit + 1,
    only ?? null,
  ])
  return toPage(rows, request.limit, row => ({ createdAt: row.createdAt, id: row.organizationId }))
}
