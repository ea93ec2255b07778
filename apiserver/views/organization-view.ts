import type { Role } from '../../lib/model/credential.ts'
import type { OrganizationRecord, OrganizationWithRole } from '../contract/organizations.ts'
import type { OrganizationRow } from '../store/organizations.ts'

export const organizationView = (row: OrganizationRow): OrganizationRecord => ({
  organization_id: row.organizationId,
  name: row.name,
  created_at: row.createdAt.toISOString(),
  updated_at: row.updatedAt.toISOString(),
})

/** An organization as a member with this role sees it. */
export const organizationWithRoleView = (row: OrganizationRow, role: Role): OrganizationWithRole => ({
  ...organizationView(row),
  role,
})
